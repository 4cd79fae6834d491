package serving

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
)

// Hold is a request's hold on its idempotency key, from Begin until the store has confirmed how it ended: it drives
// an idempotency.Holder, which decides. The gate's observer is told what becomes of the key. Set the first five
// fields before Begin, and do not copy a Hold. One goroutine calls its methods.
type Hold struct {
	Gate   *inbound.Gate
	Store  idempotency.Store
	Config *idempotency.Config
	Ctx    context.Context // of the request, without its end
	Key    string          // in the store

	Token     uint64 // as Begin got it; see idempotency.Begun
	TakenOver bool

	sent    string // the key, as the client has sent it
	fp      idempotency.Fingerprint
	grown   int64      // see Grow
	mu      sync.Mutex // guards what follows
	machine idempotency.Holder
	answer  idempotency.Response
	timer   *time.Timer
	cancel  context.CancelFunc // ends the question under way
	asking  idempotency.Task   // Sleep if none is
	decided chan struct{}      // closed when the fate is known; made when somebody waits for it
	gone    chan struct{}      // closed when the hold is over; made when somebody waits for it
	halted  bool               // the question under way was ended by us
	away    bool               // the last question was not answered
	ended   bool               // the work is over
	counted int64              // bytes of the answer that wait for the store
}

// Begin asks the store, until the deadline of the request (since the origin of core.Now) or for as long as a lease.
// A key that a request of this process holds is asked about there: the store may not know yet how that ended.
func (h *Hold) Begin(fp idempotency.Fingerprint, until time.Duration) (idempotency.Begun, error) {
	h.fp = fp
	limit := h.Config.Lease
	if until != core.NoDeadline {
		limit = min(limit, until-core.Now())
	}
	if other := held.find(h); other != nil {
		if begun, known := other.repeated(fp, limit); known {
			h.Gate.KeyDecided(begun.State.String())
			return begun, nil
		}
	}
	ctx, cancel := context.WithTimeout(h.Ctx, limit)
	defer cancel()
	crashed := false
	for _, store := range h.Gate.EarlierStores(core.Now()) {
		begun, known := h.lookIn(ctx, store)
		if known {
			h.Gate.KeyDecided(begun.State.String())
			return begun, nil
		}
		crashed = crashed || begun.TakenOver
	}
	sent := core.Now()
	begun, err := h.Store.Begin(ctx, h.Key, fp, h.Config.Lease)
	if err == nil && begun.State == idempotency.Run {
		begun.TakenOver = begun.TakenOver || crashed
		h.Token, h.TakenOver = begun.Token, begun.TakenOver
		_, restores := h.Store.(idempotency.Restorer)
		h.machine = idempotency.NewHolder(sent, h.Config.Lease, restores)
		if !h.machine.Holds(core.Now()) { // the answer was so long in coming that another may have begun
			sent = core.Now()
			err = h.Store.Renew(ctx, h.Key, begun.Token, h.Config.Lease)
			h.machine = idempotency.NewHolder(sent, h.Config.Lease, restores)
			if errors.Is(err, idempotency.ErrLost) {
				begun, err = idempotency.Begun{State: idempotency.Running, Lease: h.Config.Lease}, nil
			}
		}
	}
	switch {
	case errors.Is(err, idempotency.ErrFull):
		h.Gate.KeyDecided("full")
	case err != nil:
		h.Gate.KeyDecided("away")
	case begun.State != idempotency.Run:
		h.Gate.KeyDecided(begun.State.String())
	}
	return begun, err
}

// lookIn asks a store in which the keys were kept before the policy moved them elsewhere. It is known there if it is
// running or done. A store that cannot be reached any more is passed over: that may be why the keys have moved.
func (h *Hold) lookIn(ctx context.Context, store idempotency.Store) (b idempotency.Begun, known bool) {
	b, err := store.Begin(ctx, h.Key, h.fp, h.Config.Lease)
	if err != nil {
		return idempotency.Begun{}, false
	}
	if b.State == idempotency.Run {
		_ = store.Fail(ctx, h.Key, b.Token)
		return b, false
	}
	return b, true
}

// Keep begins the work that Begin said to run: the lease is renewed from now on, until the work has ended and the store
// has confirmed that. One of Complete, Fail and Leave must follow.
func (h *Hold) Keep() {
	what := "run"
	if h.TakenOver {
		what = "taken-over"
	}
	h.Gate.KeyDecided(what)
	held.add(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, at := h.machine.Next()
	h.timer = time.AfterFunc(at-core.Now(), h.drive) // a Renew
}

// Mark records that the request was done, before a part of the answer goes out that cannot be called back. It returns
// false if that was not confirmed until the end of the request's time or of a lease: then the part must not go out.
// With WhenAway open it may, unless another try has taken over.
func (h *Hold) Mark(status int, until time.Duration) bool {
	h.mu.Lock()
	if h.ended {
		h.mu.Unlock()
		return h.Fate() == idempotency.Recorded
	}
	h.answer = idempotency.Response{Status: status, Truncated: true}
	h.machine.Mark(core.Now())
	h.mu.Unlock()
	fate := h.settle(until)
	if fate != idempotency.Recorded {
		h.mu.Lock()
		h.machine.Unmark(core.Now())
		h.mu.Unlock()
	}
	return fate == idempotency.Recorded || fate == idempotency.Undecided && h.open()
}

// Complete records that the request was done, and its answer, for its repeats. It waits for the store's word until
// the end of the request's time, at most for a lease, and goes on recording in the background after that. It returns
// true when the answer may be given out: see the rule in the comment of package idempotency.
func (h *Hold) Complete(r idempotency.Response, until time.Duration) bool {
	h.mu.Lock()
	if h.ended {
		h.mu.Unlock()
		return h.Fate() == idempotency.Recorded
	}
	h.ended = true
	h.answer = r
	h.machine.Done(core.Now())
	h.mu.Unlock()
	fate := h.settle(until)
	if fate == idempotency.Undecided {
		h.Gate.KeyDecided("unrecorded")
		h.keepLess()
		return h.open()
	}
	return fate == idempotency.Recorded
}

// Fail lets the key go as if nobody had asked for it. What the store does not confirm soon it is told again in the
// background.
func (h *Hold) Fail() {
	h.mu.Lock()
	if h.ended {
		h.mu.Unlock()
		return
	}
	h.ended = true
	h.machine.Failed(core.Now())
	h.interrupt()
	h.mu.Unlock()
	h.driveUntil(h.Soon())
}

// Soon is until when a try waits for the store that has no answer to give out: long enough that a repeat, which may
// come at once, finds what became of it if the store is there.
func (h *Hold) Soon() time.Duration { return core.Now() + h.Config.Lease/10 }

// Leave ends the hold without a word to the store: whether the request was done nobody knows, and its lease runs out.
func (h *Hold) Leave() {
	h.mu.Lock()
	h.ended = true
	h.machine.Leave()
	if h.timer != nil {
		h.timer.Stop()
	}
	h.over()
	h.mu.Unlock()
}

// Fate is what became of the try, as far as is known.
func (h *Hold) Fate() idempotency.Fate {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machine.Fate()
}

// open reports whether answers go out that the store has not confirmed: whoever says so in the policy takes the risk.
func (h *Hold) open() bool { return h.Config.WhenAway == "open" }

// settle has the end recorded, and waits until that is confirmed. If answers go out in any case, it does not wait long.
func (h *Hold) settle(until time.Duration) idempotency.Fate {
	limit := h.Config.Lease
	if h.open() {
		limit /= 10
	}
	if until != core.NoDeadline {
		limit = min(limit, until-core.Now())
	}
	h.mu.Lock()
	h.interrupt()
	h.mu.Unlock()
	end := core.Now() + limit
	h.driveUntil(end)
	return h.wait(end - core.Now())
}

// wait waits for the fate, for limit at most.
func (h *Hold) wait(limit time.Duration) idempotency.Fate {
	h.mu.Lock()
	fate := h.machine.Fate()
	if fate != idempotency.Undecided || limit <= 0 {
		h.mu.Unlock()
		return fate
	}
	if h.decided == nil {
		h.decided = make(chan struct{})
	}
	decided := h.decided
	h.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-decided:
	case <-timer.C:
	}
	return h.Fate()
}

// interrupt ends a renewal under way, for which nobody should wait at the end of the work. What it came to does not
// matter.
func (h *Hold) interrupt() {
	if h.asking == idempotency.ToRenew {
		h.halted = true
		h.cancel()
	}
}

// drive does in the background what the machine wants now, and sets the timer for what it wants later.
func (h *Hold) drive() { h.driveUntil(core.NoDeadline) }

// driveUntil is drive for one who has time until then. The rest is done in the background.
func (h *Hold) driveUntil(end time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.asking == idempotency.Sleep {
		task, at := h.machine.Next()
		h.tellWaiting()
		if task == idempotency.Over || task == idempotency.Sleep {
			if h.timer != nil {
				h.timer.Stop()
			}
			if task == idempotency.Over {
				h.over()
			}
			return
		}
		if sent := core.Now(); at > sent || sent >= end {
			if wait := max(at-sent, 0); h.timer == nil {
				h.timer = time.AfterFunc(wait, h.drive)
			} else {
				h.timer.Reset(wait)
			}
			return
		}
		h.carryOut(task, end)
	}
}

// carryOut asks the store, without holding the mutex meanwhile. Who waits for the answer has time until end.
func (h *Hold) carryOut(task idempotency.Task, end time.Duration) {
	// A question that is lost must leave time to renew before the lease is over.
	limit := max(h.Config.Lease/3, time.Millisecond)
	hurried := end != core.NoDeadline && end-core.Now() < limit
	if hurried {
		limit = end - core.Now()
	}
	ctx, cancel := context.WithTimeout(h.Ctx, limit)
	defer cancel()
	h.asking, h.cancel = task, cancel
	answer := h.answer
	h.mu.Unlock()
	sent := core.Now()
	err := h.ask(ctx, task, answer)
	h.mu.Lock()
	h.asking = idempotency.Sleep
	if h.halted {
		h.halted = false
		return
	}
	h.machine.Record(task, sent, core.Now(), err, rand.Float64())
	if !hurried || !errors.Is(err, context.DeadlineExceeded) { // else it is not known whether the store is away
		h.tell(err)
	}
}

// ask is one question to the store.
func (h *Hold) ask(ctx context.Context, task idempotency.Task, answer idempotency.Response) error {
	switch task {
	case idempotency.ToRenew:
		return h.Store.Renew(ctx, h.Key, h.Token, h.Config.Lease)
	case idempotency.ToRestore:
		was := idempotency.Begun{Token: h.Token, TakenOver: h.TakenOver}
		return h.Store.(idempotency.Restorer).Restore(ctx, h.Key, h.fp, was, h.Config.Lease)
	case idempotency.ToMark:
		marked := idempotency.Response{Status: answer.Status, Truncated: true}
		return h.Store.Complete(ctx, h.Key, h.Token, marked, h.Config.Retention)
	case idempotency.ToComplete:
		return h.Store.Complete(ctx, h.Key, h.Token, answer, h.Config.Retention)
	}
	return h.Store.Fail(ctx, h.Key, h.Token)
}

// tell tells the gate's observer of an error, once until the store is back.
func (h *Hold) tell(err error) {
	away := err != nil && !errors.Is(err, idempotency.ErrLost)
	switch {
	case away && !h.away:
		h.Gate.KeyDecided("away")
	case err != nil && !away && h.machine.Fate() == idempotency.Lost:
		h.Gate.KeyDecided("lost")
	}
	h.away = away
}

func (h *Hold) tellWaiting() {
	if h.decided != nil && h.machine.Fate() != idempotency.Undecided {
		close(h.decided)
		h.decided = nil
	}
}

// over forgets the hold: repeats ask the store again.
func (h *Hold) over() {
	held.remove(h)
	waiting.Add(-h.counted)
	h.counted = 0
	if h.gone != nil {
		close(h.gone)
		h.gone = nil
	}
}
