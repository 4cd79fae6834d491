package breaker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

func adaptive() *breaker.Breaker {
	return breaker.New(breaker.Config{Kind: breaker.Adaptive}, nil, nil)
}

// healthy lets n calls succeed, one after the other, gap apart, and returns the time after them.
func healthy(b *breaker.Breaker, now time.Duration, n int, latency, gap time.Duration) time.Duration {
	for range n {
		if p, ok := b.AllowFor(now, s); ok {
			b.Record(now+latency, p, breaker.Success)
		}
		now += gap
	}
	return now
}

// hang sends calls, gap apart, that are not answered, from a time to another, and returns how many were sent. Each is
// given up after patience, with a result.
func hang(b *breaker.Breaker, from, to, gap, patience time.Duration, r breaker.Result) (sent int, now time.Duration) {
	type flight struct {
		permit breaker.Permit
		until  time.Duration
	}
	var flying []flight
	for now = from; now < to; now += gap {
		for len(flying) > 0 && flying[0].until <= now {
			b.Record(flying[0].until, flying[0].permit, r)
			flying = flying[1:]
		}
		if p, ok := b.AllowFor(now, patience); ok {
			sent++
			flying = append(flying, flight{p, now + patience})
		}
	}
	return sent, now
}

func TestATotalHangIsProbedAndNoMore(t *testing.T) {
	for _, patience := range []time.Duration{25 * ms, 50 * ms, 60 * ms, 100 * ms, 300 * ms, s, 5 * s, 60 * s} {
		for _, r := range []breaker.Result{breaker.Failure, breaker.Abandoned} {
			for _, latency := range []time.Duration{ms, 50 * ms, 55 * ms} {
				t.Run(fmt.Sprint(patience, r, latency), func(t *testing.T) {
					b := adaptive()
					now := healthy(b, 0, 500, latency, 20*ms) + 100*ms
					sent, _ := hang(b, now, now+60*s, 20*ms, patience, r)
					if sent > 200 {
						t.Errorf("%d of 3000 calls were sent into a hang of 60 s, want at most 200", sent)
					}
				})
			}
		}
	}
}

func TestWhatFailsFastIsNotRefused(t *testing.T) {
	b := adaptive()
	now := healthy(b, 0, 200, 20*ms, 20*ms)
	for range 5000 {
		p, ok := b.AllowFor(now, s)
		if !ok {
			t.Fatalf("refused at %v: %+v", now, b.Snapshot(now))
		}
		b.Record(now+2*ms, p, breaker.Failure)
		now += 20 * ms
	}
}

func TestWhatComesBackOpensTheCircuitAlsoIfItFailsFast(t *testing.T) {
	b := adaptive()
	now := healthy(b, 0, 200, 20*ms, 20*ms)
	for range 50 {
		if p, ok := b.AllowFor(now, s); ok {
			b.Record(now+2*ms, p, breaker.Costly)
		}
		now += 20 * ms
	}
	if st := b.State(); st != breaker.Open {
		t.Error(st)
	}
}

func TestABrownOutKeepsItsGoodShare(t *testing.T) {
	b := adaptive()
	now := healthy(b, 0, 500, 20*ms, 20*ms)
	refused := 0
	for n := range 6000 { // six of ten hang until their timeout, the others are answered
		p, ok := b.AllowFor(now, s)
		switch {
		case !ok:
			refused++
		case n*7%10 < 6:
			b.Record(now+s, p, breaker.Failure)
		default:
			b.Record(now+20*ms, p, breaker.Success)
		}
		now += 20 * ms
	}
	if refused > 60 {
		t.Errorf("%d of 6000 refused, while four of ten were answered", refused)
	}
}

func TestOneImpatientCallerIsNoEvidence(t *testing.T) {
	b := adaptive()
	now := healthy(b, 0, 500, 50*ms, 20*ms)
	for range 200 {
		for range 10 {
			p, ok := b.AllowFor(now, s)
			if !ok {
				t.Fatal("refused")
			}
			b.Record(now+10*ms, p, breaker.Abandoned)
			now += 20 * ms
		}
		now = healthy(b, now, 1, 50*ms, 100*ms)
	}
	if st := b.State(); st != breaker.Closed {
		t.Error(st)
	}
}

// hung returns a circuit that a hang has opened: 50 calls a second, 20 ms each.
func hung(t *testing.T) (*breaker.Breaker, time.Duration) {
	t.Helper()
	b := adaptive()
	now := healthy(b, 0, 500, 20*ms, 20*ms)
	_, now = hang(b, now, now+3*s, 20*ms, s, breaker.Failure)
	if st := b.State(); st != breaker.Open {
		t.Fatal(st, "after three seconds of a hang")
	}
	return b, now
}

func TestThoseWhoWaitAreAdmittedOldestFirstIfTheyHaveTime(t *testing.T) {
	b, now := hung(t)
	probe := now + b.RetryIn(now)
	p, ok := b.AllowFor(probe, s)
	if !ok {
		t.Fatal("no probe when it is due")
	}
	var order []int
	waiters := make([]*breaker.Waiter, 4)
	for n := range waiters {
		waiters[n] = &breaker.Waiter{Wake: func() { order = append(order, n) }}
		deadline := probe + s
		if n == 0 {
			deadline = probe + 30*ms // an answer that takes 20 would come 10 too late
		}
		if _, v, _ := b.Hold(probe, deadline, s, waiters[n]); v != breaker.Waits {
			t.Fatal(v)
		}
	}
	order = nil
	b.Record(probe+20*ms, p, breaker.Success)
	if st := b.State(); st != breaker.HalfOpen {
		t.Fatal(st, "after the first answer")
	}
	var admitted []int
	for now = probe + 20*ms; len(order) > 0; now += 20 * ms {
		n := order[0]
		order = order[1:]
		if permit, v, _ := b.Look(now, waiters[n]); v == breaker.Admitted {
			admitted = append(admitted, n)
			b.Record(now+20*ms, permit, breaker.Success)
		}
	}
	if want := []int{1, 2, 3}; !slices.Equal(admitted, want) {
		t.Errorf("admitted %v, want %v", admitted, want)
	}
	b.Leave(now, waiters[0])
	healthy(b, now, 50, 20*ms, 20*ms)
	if st := b.State(); st != breaker.Closed {
		t.Error(st, "a second after the recovery")
	}
}

func TestALateAnswerClosesTheCircuit(t *testing.T) {
	b := adaptive()
	now := healthy(b, 0, 500, 20*ms, 20*ms)
	p, _ := b.AllowFor(now, 10*s)
	_, now = hang(b, now, now+2*s, 20*ms, s, breaker.Failure)
	if st := b.State(); st != breaker.Open {
		t.Fatal(st)
	}
	b.Record(now, p, breaker.Success)
	if st := b.State(); st != breaker.Closed {
		t.Error(st, "though the service is slow, not dead")
	}
}

func TestWhoLeavesGivesItsPermitBack(t *testing.T) {
	b, now := hung(t)
	probe := now + b.RetryIn(now)
	p, _ := b.AllowFor(probe, s)
	woken := 0
	w := &breaker.Waiter{Wake: func() { woken++ }}
	b.Hold(probe, probe+s, s, w)
	b.Record(probe+20*ms, p, breaker.Success)
	permit, admitted := b.Leave(probe+20*ms, w)
	if !admitted || woken == 0 {
		t.Fatal("woken", woken, "admitted", admitted)
	}
	before := b.Snapshot(probe + 20*ms).Probes
	b.Record(probe+21*ms, permit, breaker.Neutral)
	if after := b.Snapshot(probe + 21*ms).Probes; after != before-1 {
		t.Errorf("%d probes out, %d before", after, before)
	}
	if _, again := b.Leave(probe+22*ms, w); again {
		t.Error("its permit was given twice")
	}
}

func TestOneOfThoseWhoWaitLooksOut(t *testing.T) {
	b, now := hung(t)
	for !b.Rejecting(now) { // a probe is due: send it
		b.AllowFor(now, s)
	}
	looks := map[*breaker.Waiter]time.Duration{}
	var first *breaker.Waiter
	for range 3 {
		w := new(breaker.Waiter)
		_, _, looks[w] = b.Hold(now, now+s, s, w)
		if first == nil {
			first = w
		}
	}
	for w, at := range looks {
		if (at != breaker.Never) != (w == first) {
			t.Errorf("looks: %v", looks)
		}
	}
	woken := 0
	for w := range looks {
		if w != first {
			w.Wake = func() { woken++ }
		}
	}
	b.Leave(now, first)
	if woken != 1 {
		t.Errorf("the one who looked out has left, and %d others were woken, want 1", woken)
	}
}

func TestAChangeOfKindLetsThoseWhoWaitGo(t *testing.T) {
	b, now := hung(t)
	for !b.Rejecting(now) {
		b.AllowFor(now, s)
	}
	woken := false
	w := &breaker.Waiter{Wake: func() { woken = true }}
	b.Hold(now, now+s, s, w)
	b.Reconfigure(now, breaker.Config{FailureThreshold: 3})
	if !woken {
		t.Fatal("not woken")
	}
	permit, v, _ := b.Look(now, w)
	if v != breaker.Admitted {
		t.Fatal(v)
	}
	b.Record(now+ms, permit, breaker.Success)
	if st := b.Snapshot(now + ms); st.State != breaker.Closed || st.Learned.Held != 0 {
		t.Errorf("%+v", st)
	}
}

func TestARetryNeedsASignOfLife(t *testing.T) {
	b := adaptive()
	now := healthy(b, 0, 500, 20*ms, 20*ms)
	p, _ := b.AllowFor(now, s)
	b.Record(now+2*ms, p, breaker.Failure)
	if b.Discourages(now+2*ms, now, false) != breaker.NoDoubt {
		t.Error("the first failure, and quick: nothing speaks against another attempt")
	}
	p, _ = b.AllowFor(now+3*ms, s)
	b.Record(now+4*ms, p, breaker.Failure)
	if b.Discourages(now+4*ms, now+3*ms, false) == breaker.NoDoubt {
		t.Error("two failures where one in a hundred is usual, and nothing was answered since: the next is no better")
	}
	now = healthy(b, now+20*ms, 1, 20*ms, 20*ms)
	p, _ = b.AllowFor(now, s)
	b.Record(now+2*ms, p, breaker.Failure)
	if b.Discourages(now+2*ms, now, false) != breaker.NoDoubt {
		t.Error("there was an answer since")
	}
	slow, _ := b.AllowFor(now, s)
	b.Record(now+s, slow, breaker.Failure)
	if b.Discourages(now+s, now, true) == breaker.NoDoubt {
		t.Error("a slow attempt is tried again where workers are scarce")
	}
}
