package redelivery

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// floodSlots divide a window: what is older than a window is forgotten a slot at a time.
const floodSlots = 12

// FloodGuard stands between a [Plan] and the dead-letter topic. A service that fails a part of what it is asked, too
// small a part for its circuit to open, makes dead letters of messages that nothing is wrong with: at 45 % errors and
// four deliveries, 4 of 100. Nobody is helped by them: each has to be replayed by hand. So while more than a small
// share of the messages that end would end so, those go to the last retry topic once more, excused, and stay there,
// undelivered, as long as the flood lasts. The service goes on getting all others, and none of these.
//
// # What is promised
//
//   - Fewer than Letters messages that are given up in a window are dead letters at once: a poison message, or nine.
//   - A message is held at most until MaxHold after its first failure.
//   - It ends by itself: when in no end of the window with that many the share is above half of Share, or fewer than
//     Letters were given up. Messages that were held do not count again when they fail again: what is wrong with
//     themselves keeps no hold going. While the service's circuit is open, and for a window after that, it does not
//     end: that nothing is given up then says nothing.
//   - Who has just been started, in the middle of a flood perhaps, lets those that it finds held wait for a window: so
//     long it knows nothing.
//   - What is older than the policy's timeout is a dead letter at once: nobody waits for it any more.
//
// It is for all partitions of a consumer; it is safe for concurrent use. Handled costs some 5 ns and allocates nothing.
// It keeps nothing of a message, so that it is as small with a million of them held as with none.
type FloodGuard struct {
	width atomic.Int64 // of a slot
	slot  atomic.Int64 // the number of the one that is counted in
	count [floodSlots]floodSlot
	born  atomic.Int64 // when the first message came, and 1; 0 for none yet

	mu      sync.Mutex
	c       Flood
	holding bool
	since   time.Duration
	held    int64
	ill     bool          // the circuit has been open
	trouble time.Duration // when that was seen last
}

// floodSlot is a part of the window.
type floodSlot struct{ handled, letters atomic.Int64 }

// FloodState is a guard at one moment.
type FloodState struct {
	Holding bool
	Since   time.Duration // when that began or ended
	Share   float64       // of the messages that ended by being given up, or would have, in the worst end of the window
	Letters int64         // those
	Held    int64         // messages that were held instead of given up, since the start
}

// NewFloodGuard makes one. c is a Config.Flood with its defaults.
func NewFloodGuard(c Flood) *FloodGuard {
	g := &FloodGuard{c: c.WithDefaults()}
	g.width.Store(int64(g.c.Window) / floodSlots)
	return g
}

// Reconfigure changes the bounds; what was counted stays, unless the window is another.
func (g *FloodGuard) Reconfigure(c Flood) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c = c.WithDefaults(); c.Window != g.c.Window {
		g.resize(int64(c.Window) / floodSlots)
	}
	g.c = c
}

// resize gives the slots another width. All that the window has seen goes into the newest: whoever changes the policy
// in the middle of a flood does not end it by that. The lock is held.
func (g *FloodGuard) resize(width int64) {
	newest, was := g.slot.Load(), g.width.Load()
	var handled, letters int64
	for i := range g.count {
		handled += g.count[i].handled.Swap(0)
		letters += g.count[i].letters.Swap(0)
	}
	g.width.Store(width)
	if newest == 0 { // nothing was counted yet
		return
	}
	at := (newest-1)*was/width + 1
	g.count[at%floodSlots].handled.Add(handled)
	g.count[at%floodSlots].letters.Add(letters)
	g.slot.Store(at)
}

// Trouble reports that the service's circuit is open. It may be called as often as that is seen.
func (g *FloodGuard) Trouble(now time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ill, g.trouble = true, max(g.trouble, now)
}

// Handled reports that a message was handled.
func (g *FloodGuard) Handled(now time.Duration) { g.meets(now).handled.Add(1) }

// meets is the slot of a moment in which a message comes.
func (g *FloodGuard) meets(now time.Duration) *floodSlot {
	if g.born.Load() == 0 {
		g.born.CompareAndSwap(0, int64(max(now, 0))+1)
	}
	return g.at(now)
}

// Next decides as plan.Next does, but that a message which would be given up is held while there is a flood.
func (g *FloodGuard) Next(now time.Duration, plan *Plan, f Failure) Verdict {
	v := plan.Next(f)
	if v.Action != DeadLetter && v.Action != Drop || v.Reason == "timeout" {
		return v
	}
	if slot := g.meets(now); !f.Flooded {
		slot.letters.Add(1)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look(now)
	if !g.holding || len(plan.hops) == 0 || f.Since >= g.c.MaxHold {
		return v
	}
	g.held++
	last := len(plan.hops) - 1
	return Verdict{Action: Forward, Tier: last, Delay: plan.hops[last].Delay, Excused: true, Reason: "flood"}
}

// FloodAgain is how often a driver looks whether a message that is held may be delivered.
const FloodAgain = 10 * time.Second

// Waits reports whether a message that was held stays undelivered: the flood lasts, and since its first failure less
// than MaxHold has passed.
func (g *FloodGuard) Waits(now, since time.Duration) bool {
	g.meets(now)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look(now)
	unknown := now-time.Duration(g.born.Load()-1) < g.c.Window && !g.c.Disabled
	return (g.holding || unknown) && since < g.c.MaxHold
}

// State reads it.
func (g *FloodGuard) State(now time.Duration) FloodState {
	g.at(now)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look(now)
	s := g.sum()
	return FloodState{Holding: g.holding, Since: g.since, Share: s.share, Letters: s.letters, Held: g.held}
}

// look begins a hold, or ends it. The lock is held.
func (g *FloodGuard) look(now time.Duration) {
	s := g.sum()
	was := g.holding
	switch {
	case g.c.Disabled:
		g.holding = false
	case g.holding && g.ill && now-g.trouble < g.c.Window:
	case g.holding:
		g.holding = s.share > g.c.Share/2 && s.letters >= int64(g.c.Letters)
	default:
		g.holding = s.flood
	}
	if was != g.holding {
		g.since = now
	}
}

// counted is what the window has seen.
type counted struct {
	letters int64   // given up
	share   float64 // of the messages that ended
	flood   bool    // that is more than chance makes of Share
}

// sum counts the ends of the window, the last slot, the last two, ...: a flood that has just begun is not excused by
// what was before. The share is that of the worst with enough dead letters to judge. A flood is three standard
// deviations above Share, so that chance holds nothing.
func (g *FloodGuard) sum() (c counted) {
	handled, newest := int64(0), g.slot.Load()
	enough := false
	for back := range int64(floodSlots) {
		s := &g.count[(newest-back+floodSlots)%floodSlots]
		handled += s.handled.Load()
		c.letters += s.letters.Load()
		if c.letters < int64(g.c.Letters) {
			continue
		}
		enough = true
		n := float64(handled + c.letters)
		c.share = max(c.share, float64(c.letters)/n)
		c.flood = c.flood || float64(c.letters) > g.c.Share*n+3*math.Sqrt(g.c.Share*n)
	}
	if !enough && c.letters > 0 {
		c.share = float64(c.letters) / float64(handled+c.letters)
	}
	return c
}

// at is the slot of a moment. The first who comes in a new one empties it, and those that nobody came by.
func (g *FloodGuard) at(now time.Duration) *floodSlot {
	for {
		last := g.slot.Load()
		at := int64(max(now, 0))/g.width.Load() + 1 // 0 is none
		if at <= last {
			return &g.count[last%floodSlots] // also for who is a little late
		}
		if !g.slot.CompareAndSwap(last, at) {
			continue
		}
		for i := max(last+1, at-floodSlots+1); i <= at; i++ {
			s := &g.count[i%floodSlots]
			s.handled.Store(0)
			s.letters.Store(0)
		}
		return &g.count[at%floodSlots]
	}
}
