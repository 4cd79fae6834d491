package storetest

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

// try is an instance's hold on the key, as internal/serving drives it.
type try struct {
	s       *schedule
	in      *instance
	run     int
	begun   idempotency.Begun
	machine idempotency.Holder
	asking  bool
	nth     int // of the question under way; an older one is not waited for any more
	task    idempotency.Task
	waits   bool // a client waits for the answer
	ended   bool
}

// request is one request of a client, which repeats it until it gets an answer, at most times times.
func (s *schedule) request(in *instance, times int) {
	again := func() {
		if times > 0 {
			s.after(lease/4+s.upTo(lease), func() { s.request(s.instances[s.random.IntN(3)], times-1) })
		}
	}
	if h := in.holds; h != nil { // as repeated in internal/serving
		if fate := h.machine.Fate(); h.ended && fate == idempotency.Recorded {
			s.answer(h.run)
			return
		} else if fate != idempotency.Lost && fate != idempotency.LetGo {
			again()
			return
		}
	}
	sent := s.now
	var begun idempotency.Begun
	s.ask(in, "Begin", 3*lease, func() (err error) {
		if begun, err = s.store.Begin(context.Background(), s.key, printA, long); begun.State == idempotency.Run &&
			err == nil {
			s.holder = owner{begun.Token, s.now + lease}
		}
		return err
	}, func(err error) {
		switch {
		case err != nil, begun.State == idempotency.Running:
			again()
		case begun.State == idempotency.Mismatch:
			s.fail("the request is another one")
		case begun.State == idempotency.Replay && begun.Response.Truncated:
			s.answer(begun.Response.Status)
		case begun.State == idempotency.Replay:
			run, _ := strconv.Atoi(string(begun.Response.Body))
			s.answer(run)
		default:
			s.begun(in, sent, begun)
			again()
		}
	})
}

// answer gives a client the answer of a run.
func (s *schedule) answer(run int) {
	s.note("a client got the answer of run %d", run)
	if s.answered != 0 && s.answered != run {
		s.fail("a client got the answer of run %d, another that of %d", run, s.answered)
	}
	s.answered = run
}

// begun got Run.
func (s *schedule) begun(in *instance, sent time.Duration, b idempotency.Begun) {
	_, restores := s.store.(idempotency.Restorer)
	h := &try{s: s, in: in, begun: b, machine: idempotency.NewHolder(sent, lease, restores)}
	if h.machine.Holds(s.now) {
		h.work()
		return
	}
	sent = s.now
	s.ask(in, "Renew before the work", lease/3, h.renew, func(err error) {
		if h.machine = idempotency.NewHolder(sent, lease, restores); err == nil && h.machine.Holds(s.now) {
			h.work()
		}
	})
}

func (h *try) renew() error {
	err := h.s.store.Renew(context.Background(), h.s.key, h.begun.Token, long)
	if err == nil {
		h.s.holder = owner{h.begun.Token, h.s.now + lease}
	}
	return err
}

// work has the effect, once.
func (h *try) work() {
	s := h.s
	s.runs++
	s.count.Runs++
	h.run, h.in.holds = s.runs, h
	s.note("instance %d begins run %d under token %d, taken over %v", h.in.n, h.run, h.begun.Token, h.begun.TakenOver)
	if s.answered != 0 {
		s.fail("run %d begins, and somebody has got the answer of run %d", h.run, s.answered)
	}
	if s.runs > 1 && !s.crashed {
		s.count.Twice++
	}
	life, long := h.in.life, s.upTo(lease/2)
	if s.chance(20) {
		long = s.upTo(3 * lease)
	}
	alive := func(do func()) func() {
		return func() {
			if h.in.life == life && h.in.holds == h {
				do()
			}
		}
	}
	if s.chance(20) { // a stream
		s.after(long/2, alive(func() {
			h.machine.Mark(s.now)
			h.wait(func() { h.machine.Unmark(s.now) })
		}))
	}
	failed := s.chance(15)
	s.after(long, alive(func() {
		h.ended = true
		if failed {
			h.machine.Failed(s.now)
			h.drop()
			h.drive()
			return
		}
		h.machine.Done(s.now)
		h.wait(func() { s.count.Held++ })
	}))
	h.drive()
}

// wait has the end recorded, and answers the client if that is confirmed within a lease.
func (h *try) wait(givenUp func()) {
	h.waits = true
	h.drop()
	life := h.in.life
	h.s.after(lease, func() {
		if h.waits && h.in.life == life && h.machine.Fate() != idempotency.Recorded {
			h.waits = false
			givenUp()
		}
	})
	h.drive()
}

// drop does not wait for a renewal under way.
func (h *try) drop() {
	if h.asking && h.task == idempotency.ToRenew {
		h.asking = false
		h.nth++
	}
}

// drive does what the machine wants.
func (h *try) drive() {
	s := h.s
	if h.asking || h.in.holds != h {
		return
	}
	task, at := h.machine.Next()
	if h.waits && h.machine.Fate() == idempotency.Recorded {
		h.waits = false
		s.answer(h.run)
	}
	switch {
	case task == idempotency.Over:
		h.in.holds = nil
		return
	case at > ending:
		return
	case at > s.now:
		s.at(at, h.drive)
		return
	}
	h.asking, h.task, h.nth = true, task, h.nth+1
	nth, sent := h.nth, s.now
	s.ask(h.in, names[task], lease/3, func() error { return h.put(task) }, func(err error) {
		if h.in.holds != h || h.nth != nth {
			return
		}
		h.asking = false
		h.machine.Record(task, sent, s.now, err, s.random.Float64())
		h.drive()
	})
}

var names = map[idempotency.Task]string{
	idempotency.ToRenew: "Renew", idempotency.ToRestore: "Restore", idempotency.ToComplete: "Complete",
	idempotency.ToMark: "Mark", idempotency.ToFail: "Fail",
}

// put is the question as it comes to the store.
func (h *try) put(task idempotency.Task) error {
	s, ctx := h.s, context.Background()
	r := idempotency.Response{Status: h.run, Body: []byte(strconv.Itoa(h.run))}
	switch task {
	case idempotency.ToRenew:
		return h.renew()
	case idempotency.ToRestore:
		err := s.store.(idempotency.Restorer).Restore(ctx, s.key, printA, h.begun, long)
		if err == nil {
			s.holder = owner{h.begun.Token, s.now + lease}
		}
		return err
	case idempotency.ToMark:
		r = idempotency.Response{Status: h.run, Truncated: true}
	case idempotency.ToFail:
		err := s.store.Fail(ctx, s.key, h.begun.Token)
		if err == nil && !errors.Is(err, idempotency.ErrLost) {
			s.holder = owner{}
		}
		return err
	}
	return s.store.Complete(ctx, s.key, h.begun.Token, r, long)
}
