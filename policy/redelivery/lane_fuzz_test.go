package redelivery_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// naive is a lane that looks at everything each time: slow, and plain to see that it is right.
type naive struct {
	c       redelivery.LaneConfig
	records []naiveRecord
	stopped time.Duration
}

type naiveRecord struct {
	redelivery.Item
	state string // waiting, held, started, released, finished
}

func (n *naive) count(state string) int {
	found := 0
	for _, r := range n.records {
		if r.state == state {
			found++
		}
	}
	return found
}

// first is the oldest unfinished record.
func (n *naive) first() int {
	for i, r := range n.records {
		if r.state != "finished" {
			return i
		}
	}
	return len(n.records)
}

// hasTurn reports whether nothing unfinished with the same key stands before record i.
func (n *naive) hasTurn(i int) bool {
	if n.c.Order == "" || n.c.Order == redelivery.Unordered || !n.records[i].Keyed {
		return true
	}
	for _, r := range n.records[:i] {
		if r.Keyed && r.Key == n.records[i].Key && r.state != "finished" {
			return false
		}
	}
	return true
}

func (n *naive) next(now time.Duration) (int, bool, time.Duration) {
	if n.count("started") >= n.c.Concurrency {
		return 0, false, redelivery.Forever
	}
	earliest := redelivery.Forever
	for i := n.first(); i < len(n.records); i++ {
		r := &n.records[i]
		if r.state != "waiting" && r.state != "held" || !n.hasTurn(i) {
			continue
		}
		if r.Ready <= now && n.stopped <= now {
			r.state = "started"
			return i, true, 0
		}
		earliest = min(earliest, max(r.Ready, n.stopped))
	}
	if earliest == redelivery.Forever {
		return 0, false, redelivery.Forever
	}
	return 0, false, earliest - now
}

func (n *naive) state() redelivery.LaneState {
	s := redelivery.LaneState{
		InFlight: n.count("started"), Released: n.count("released"), Held: n.count("held"), Oldest: -1,
	}
	s.Unfinished = len(n.records) - n.count("finished")
	if s.Unfinished > 0 {
		s.Oldest = n.records[n.first()].Offset
		s.Ahead = n.records[len(n.records)-1].Offset - s.Oldest
	}
	for _, r := range n.records {
		if r.state == "waiting" || r.state == "held" {
			s.HeadReady = r.Ready
			break
		}
	}
	return s
}

// play drives a lane and the naive one with the same steps, and compares what they say. The lane must never start a
// record twice, overtake within a key, go over its concurrency or let an unfinished offset be committed: the naive one
// cannot.
func play(t *testing.T, c redelivery.LaneConfig, steps []byte) {
	lane, model := redelivery.NewLane(c), &naive{c: c}
	var now time.Duration
	var offset int64
	pick := func(b byte) uint64 {
		if len(model.records) == 0 {
			return uint64(b)
		}
		first := model.first()
		return uint64(max(first-1, 0)) + uint64(b)%uint64(len(model.records)-first+2) // one before and one behind, too
	}
	for i := 0; i+1 < len(steps); i += 2 {
		arg := steps[i+1]
		switch steps[i] % 8 {
		case 0, 1, 2:
			offset += 1 + int64(arg>>6)
			it := redelivery.Item{Offset: offset, Key: uint64(arg % 11), Keyed: arg%7 != 0}
			if steps[i]%8 == 2 {
				it.Ready = max(now+time.Duration(arg)-100, 0)
			}
			model.records = append(model.records, naiveRecord{it, "waiting"})
			if seq := lane.Push(it); seq != uint64(len(model.records)-1) {
				t.Fatalf("step %d: record %d got the number %d", i, len(model.records)-1, seq)
			}
		case 3, 4:
			now += time.Duration(arg % 32)
			seq, ok, wait := lane.Next(now)
			wantSeq, wantOK, wantWait := model.next(now)
			if ok != wantOK || ok && int(seq) != wantSeq || !ok && wait != wantWait {
				t.Fatalf("step %d at %d: started %d, %v, wait %d; want %d, %v, %d", i, now, seq, ok, wait, wantSeq,
					wantOK, wantWait)
			}
		case 5:
			seq := pick(arg)
			lane.Finish(seq)
			if int(seq) < len(model.records) {
				model.records[seq].state = "finished"
			}
		case 6:
			seq, ready := pick(arg), time.Duration(0)
			if arg%3 > 0 {
				ready = now + time.Duration(arg%64) - 5
			}
			lane.Hold(seq, ready)
			if int(seq) < len(model.records) {
				if r := &model.records[seq]; r.state == "started" || r.state == "released" {
					r.state, r.Ready = "held", max(ready, 0)
				}
			}
		case 7:
			if arg%4 == 0 {
				model.stopped = now + time.Duration(arg>>2) - 3
				if arg%8 == 0 {
					model.stopped = 0
				}
				lane.Stop(model.stopped)
				break
			}
			seq := pick(arg)
			lane.Release(seq)
			if int(seq) < len(model.records) && model.records[seq].state == "started" {
				model.records[seq].state = "released"
			}
		}
		compare(t, i, lane, model, offset)
	}
}

func compare(t *testing.T, step int, lane *redelivery.Lane, model *naive, last int64) {
	t.Helper()
	got, want := lane.State(), model.state()
	got.Stopped = 0
	if got != want {
		t.Fatalf("step %d: state %+v, want %+v", step, got, want)
	}
	first := model.first()
	if lane.First() != uint64(first) {
		t.Fatalf("step %d: the first is %d, want %d", step, lane.First(), first)
	}
	if room := max(model.c.Window-(len(model.records)-first), 0); lane.Room() != room {
		t.Fatalf("step %d: room %d, want %d", step, lane.Room(), room)
	}
	offset, ok := last+1, len(model.records) > 0
	if first < len(model.records) {
		offset = model.records[first].Offset
	}
	if at, some := lane.Committable(); some != ok || some && at != offset {
		t.Fatalf("step %d: committable %d, %v; want %d, %v", step, at, some, offset, ok)
	}
}

func FuzzLaneDoesWhatANaiveOneDoes(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		steps := make([]byte, 400)
		for i := range steps {
			steps[i] = byte(r.Uint32())
		}
		f.Add(steps)
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) < 3 || len(steps) > 4000 {
			return
		}
		order := []redelivery.Order{redelivery.Unordered, redelivery.ByKey, redelivery.ParkKey}[steps[0]%3]
		play(t, redelivery.LaneConfig{Concurrency: 1 + int(steps[1]%8), Window: 1 + int(steps[2])}, steps[3:])
		play(t, redelivery.LaneConfig{Concurrency: 1 + int(steps[1]%8), Window: 1 + int(steps[2]), Order: order}, steps[3:])
	})
}

// TestLaneDoesWhatANaiveOneDoes is the same over many random lives.
func TestLaneDoesWhatANaiveOneDoes(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		steps := make([]byte, 2*(50+r.IntN(500)))
		for i := range steps {
			steps[i] = byte(r.Uint32())
		}
		for _, order := range []redelivery.Order{redelivery.Unordered, redelivery.ByKey} {
			play(t, redelivery.LaneConfig{Concurrency: 1 + r.IntN(20), Window: 1 + r.IntN(100), Order: order}, steps)
		}
	}
}
