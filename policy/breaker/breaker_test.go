package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

const (
	ms = time.Millisecond
	s  = time.Second

	good    = breaker.Success
	bad     = breaker.Failure
	neutral = breaker.Neutral
)

// always returns a source of one number: 0 draws no jitter and admits during ramp-up, the maximum does neither.
func always(u uint64) func() uint64 { return func() uint64 { return u } }

const never = ^uint64(0)

// call makes one call that takes no time, and fails the test when it is not admitted.
func call(t *testing.T, b *breaker.Breaker, now time.Duration, r breaker.Result) {
	t.Helper()
	b.Record(now, allow(t, b, now), r)
}

func calls(t *testing.T, b *breaker.Breaker, now time.Duration, rs ...breaker.Result) {
	t.Helper()
	for _, r := range rs {
		call(t, b, now, r)
	}
}

func times(n int, r breaker.Result) []breaker.Result {
	rs := make([]breaker.Result, n)
	for i := range rs {
		rs[i] = r
	}
	return rs
}

func allow(t *testing.T, b *breaker.Breaker, now time.Duration) breaker.Permit {
	t.Helper()
	p, ok := b.Allow(now)
	if !ok {
		t.Fatalf("at %v: refused in state %v, want admitted", now, b.State())
	}
	return p
}

func refuse(t *testing.T, b *breaker.Breaker, now time.Duration) {
	t.Helper()
	if _, ok := b.Allow(now); ok {
		t.Fatalf("at %v: admitted in state %v, want refused", now, b.State())
	}
}

func wantState(t *testing.T, b *breaker.Breaker, want breaker.State) {
	t.Helper()
	if got := b.State(); got != want {
		t.Fatalf("state %v, want %v", got, want)
	}
}

// opened returns a breaker that opened at 0 and waits one second.
func opened(t *testing.T, c breaker.Config, onChange func(breaker.Change)) *breaker.Breaker {
	t.Helper()
	if c.FailureThreshold == 0 {
		c.FailureThreshold = 1
	}
	b := breaker.New(c, always(0), onChange)
	calls(t, b, 0, times(c.FailureThreshold, bad)...)
	wantState(t, b, breaker.Open)
	return b
}

func TestZeroConfigLetsEveryCallPass(t *testing.T) {
	for _, c := range []breaker.Config{
		{}, {Disabled: true, FailureThreshold: 1, Mode: breaker.ForcedOpen}, {Mode: breaker.Shadow},
	} {
		b := breaker.New(c, nil, nil)
		calls(t, b, 0, times(1000, bad)...)
		wantState(t, b, breaker.Closed)
		if got := b.Snapshot(0).Calls; got != 0 {
			t.Errorf("%+v: counted %d calls while off", c, got)
		}
	}
}

func TestFailuresInARowOpen(t *testing.T) {
	b := breaker.New(breaker.Config{FailureThreshold: 3}, nil, nil)
	calls(t, b, 0, bad, bad, good, bad, bad, neutral)
	wantState(t, b, breaker.Closed)
	call(t, b, 0, bad) // a neutral call does not break the row
	wantState(t, b, breaker.Open)
}

func TestCountWindowOpensAtTheRate(t *testing.T) {
	c := breaker.Config{FailureRateThreshold: 0.5, SlidingWindow: breaker.Window{Calls: 10}, MinimumNumberOfCalls: 4}
	for _, tt := range []struct {
		name    string
		results []breaker.Result
		want    breaker.State
	}{
		{"below the minimum", []breaker.Result{bad, bad, bad}, breaker.Closed},
		{"at the minimum and the rate", []breaker.Result{bad, good, good, bad}, breaker.Open},
		{"below the rate", []breaker.Result{good, bad, good, good, bad}, breaker.Closed},
		{"a success reaches the minimum", []breaker.Result{bad, bad, bad, good}, breaker.Open},
		{"a success reaches the minimum below the rate", []breaker.Result{bad, good, good, good}, breaker.Closed},
		{"neutral does not reach the minimum", []breaker.Result{bad, bad, bad, neutral, neutral}, breaker.Closed},
		{"unknown results are neutral", []breaker.Result{bad, bad, bad, 7, 255}, breaker.Closed},
		{"old calls leave", append(append(times(10, good), times(4, bad)...), append(times(6, good), times(4, bad)...)...),
			breaker.Closed},
		{"a success takes the place of a failure",
			append(times(5, good), append(times(4, bad), append(times(10, good), times(4, bad)...)...)...), breaker.Closed},
		{"the last ten count", append(times(100, good), times(5, bad)...), breaker.Open},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := breaker.New(c, nil, nil)
			calls(t, b, 0, tt.results...)
			wantState(t, b, tt.want)
		})
	}
}

func TestCountWindowSmallerThanTheMinimumIsBelievedWhenFull(t *testing.T) {
	b := breaker.New(breaker.Config{
		FailureRateThreshold: 1, SlidingWindow: breaker.Window{Calls: 5}, MinimumNumberOfCalls: 100,
	}, nil, nil)
	calls(t, b, 0, times(4, bad)...)
	wantState(t, b, breaker.Closed)
	call(t, b, 0, bad)
	wantState(t, b, breaker.Open)
}

func TestRateIsComparedExactly(t *testing.T) {
	// 0.07 * 100 is a little more than 7 in floating point.
	b := breaker.New(breaker.Config{
		FailureRateThreshold: 0.07, SlidingWindow: breaker.Window{Calls: 100}, MinimumNumberOfCalls: 100,
	}, nil, nil)
	calls(t, b, 0, times(93, good)...)
	calls(t, b, 0, times(6, bad)...)
	wantState(t, b, breaker.Closed)
	call(t, b, 0, bad)
	wantState(t, b, breaker.Open)
}

func TestAllOfAnyNumberIsOne(t *testing.T) {
	// 49 * (1.0/49) is a little less than 1 in floating point.
	for n := 1; n <= 200; n++ {
		b := breaker.New(breaker.Config{FailureRateThreshold: 1, MinimumNumberOfCalls: n}, nil, nil)
		calls(t, b, 0, times(n, bad)...)
		wantState(t, b, breaker.Open)
	}
}

func TestTimeWindowForgets(t *testing.T) {
	c := breaker.Config{
		FailureRateThreshold: 0.5, SlidingWindow: breaker.Window{Duration: 10 * s}, MinimumNumberOfCalls: 4,
	}
	type burst struct {
		at      time.Duration
		results []breaker.Result
	}
	for _, tt := range []struct {
		name   string
		bursts []burst
		at     time.Duration
		calls  int
		want   breaker.State
	}{
		{"inside the window", []burst{{0, times(3, bad)}, {9 * s, times(1, bad)}}, 9 * s, 0, breaker.Open},
		{"the oldest leave after ten seconds", []burst{{0, times(3, bad)}, {10 * s, times(1, bad)}}, 10 * s,
			1, breaker.Closed},
		{"everything leaves after a pause", []burst{{0, times(3, bad)}, {time.Hour, times(3, bad)}}, time.Hour, 3,
			breaker.Closed},
		{"steps line up", []burst{{0, times(1, good)}, {1500 * ms, times(1, good)}, {10900 * ms, times(1, good)}}, 10900 * ms,
			2, breaker.Closed},
		{"steps do not drift", []burst{
			{0, times(5, good)}, {1900 * ms, times(1, good)}, {3800 * ms, times(1, good)}, {5700 * ms, times(1, good)},
			{7600 * ms, times(1, good)}, {9500 * ms, times(1, good)}, {11400 * ms, times(1, good)},
		}, 11400 * ms, 5, breaker.Closed},
		{"seen later without a call", []burst{{0, times(2, good)}, {5 * s, times(1, good)}}, 12 * s, 1, breaker.Closed},
		{"seen much later without a call", []burst{{0, times(2, good)}, {5 * s, times(1, good)}}, time.Hour,
			0, breaker.Closed},
		{"a success opens when old successes leave", []burst{
			{0, times(10, good)}, {5 * s, times(9, bad)}, {10 * s, times(1, good)},
		}, 10 * s, 0, breaker.Open},
		{"time a little earlier counts now", []burst{{5 * s, times(2, good)}, {3 * s, times(2, good)}}, 5 * s,
			4, breaker.Closed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := breaker.New(c, nil, nil)
			for _, x := range tt.bursts {
				calls(t, b, x.at, x.results...)
			}
			wantState(t, b, tt.want)
			if got := b.Snapshot(tt.at).Calls; got != tt.calls {
				t.Errorf("window holds %d calls, want %d", got, tt.calls)
			}
		})
	}
}

func TestSlowCallsOpen(t *testing.T) {
	for _, w := range []breaker.Window{{Calls: 10}, {Duration: 10 * s}} {
		c := breaker.Config{
			SlowCallRateThreshold: 0.5, SlowCallDurationThreshold: 100 * ms, SlidingWindow: w, MinimumNumberOfCalls: 4,
		}
		b := breaker.New(c, nil, nil)
		for i, took := range []time.Duration{99 * ms, 99 * ms, 100 * ms} {
			start := time.Duration(i) * s
			b.Record(start+took, allow(t, b, start), good)
		}
		wantState(t, b, breaker.Closed)
		p := allow(t, b, 5*s)
		b.Record(5*s+200*ms, p, bad) // a failure may be slow, too
		wantState(t, b, breaker.Open)
	}
}

func TestTimeWindowForgetsSlowCalls(t *testing.T) {
	b := breaker.New(breaker.Config{SlowCallRateThreshold: 1, SlidingWindow: breaker.Window{Duration: 10 * s}}, nil, nil)
	for now := time.Duration(0); now < 40*s; now += 500 * ms {
		took := time.Duration(0)
		if now < 5*s {
			took = 2 * s
		}
		b.Record(now+took, allow(t, b, now), good)
	}
	if snap := b.Snapshot(40 * s); snap.SlowRate != 0 || snap.Calls == 0 {
		t.Errorf("slow calls of 30 seconds ago count: %+v", snap)
	}
}

func TestOpenRejectsUntilItsWaitIsOver(t *testing.T) {
	b := opened(t, breaker.Config{}, nil)
	for _, now := range []time.Duration{0, 500 * ms, s - 1} {
		refuse(t, b, now)
		if !b.Rejecting(now) || !b.ClosedOff(now) {
			t.Errorf("at %v: not rejecting", now)
		}
		if got, want := b.RetryIn(now), s-now; got != want {
			t.Errorf("at %v: retry in %v, want %v", now, got, want)
		}
	}
	if b.Rejecting(s) || b.ClosedOff(s) || b.RetryIn(s) != 0 {
		t.Error("rejecting after the wait")
	}
	wantState(t, b, breaker.Open) // asking changed nothing
	allow(t, b, s)
	wantState(t, b, breaker.HalfOpen)
}

func TestWaitGrowsToTheCapAndStartsOverAfterRecovery(t *testing.T) {
	b := opened(t, breaker.Config{SuccessThreshold: 1}, nil)
	now := time.Duration(0)
	// the cap, 10 s, leaves room for the jitter
	for i, want := range []time.Duration{s, 2 * s, 4 * s, 8 * s, 8 * s, 8 * s} {
		if got := b.RetryIn(now); got != want {
			t.Fatalf("opening %d waits %v, want %v", i+1, got, want)
		}
		now += want
		call(t, b, now, bad)
	}
	now += 8 * s
	call(t, b, now, good)
	wantState(t, b, breaker.Closed)
	call(t, b, now, bad)
	if got := b.RetryIn(now); got != s {
		t.Fatalf("after a recovery the wait is %v, want %v", got, s)
	}
	if got := b.Snapshot(now).Openings; got != 8 {
		t.Errorf("%d openings, want 8", got)
	}
}

func TestWaitIsJitteredInsideTheCap(t *testing.T) {
	c := breaker.Config{FailureThreshold: 1, WaitDurationJitter: 0.5}
	for _, tt := range []struct {
		reopens, from, to int
	}{{0, 1000, 1500}, {1, 2000, 3000}, {9, 6667, 10000}, {2000, 6667, 10000}} {
		for _, edge := range []struct {
			draw uint64
			want int
		}{{0, tt.from}, {never, tt.to}} {
			draw := uint64(0)
			b := breaker.New(c, func() uint64 { return draw }, nil)
			now := time.Duration(0)
			call(t, b, now, bad)
			for i := range tt.reopens {
				now += b.RetryIn(now)
				if i == tt.reopens-1 {
					draw = edge.draw
				}
				call(t, b, now, bad)
			}
			if tt.reopens == 0 {
				b = breaker.New(c, always(edge.draw), nil)
				call(t, b, now, bad)
			}
			got := b.RetryIn(now)
			if want := time.Duration(edge.want) * ms; (got-want).Abs() > ms || got > 10*s {
				t.Errorf("%d reopenings, draw %d: wait %v, want %v", tt.reopens, edge.draw, got, want)
			}
		}
	}
}

func TestLongFirstWaitIsNotCutByTheDefaultCap(t *testing.T) {
	b := breaker.New(breaker.Config{FailureThreshold: 1, WaitDurationInOpenState: 30 * s}, always(never), nil)
	call(t, b, 0, bad)
	if got := b.RetryIn(0); got < 30*s-ms || got > 30*s {
		t.Errorf("wait %v, want 30s", got)
	}
}

func TestResultsFromAnEarlierStateAreIgnored(t *testing.T) {
	b := breaker.New(breaker.Config{FailureThreshold: 1, SuccessThreshold: 1, RampUp: s}, always(0), nil)
	early := make([]breaker.Permit, 4)
	for i := range early {
		early[i] = allow(t, b, 0)
	}
	call(t, b, 0, bad)
	b.Record(500*ms, early[0], good)
	wantState(t, b, breaker.Open)

	probe := allow(t, b, s)
	b.Record(s, early[1], good) // would close
	b.Record(s, early[2], bad)  // would open
	wantState(t, b, breaker.HalfOpen)
	other := allow(t, b, s)
	b.Record(s, probe, good)
	wantState(t, b, breaker.RampUp)
	b.Record(s, early[3], bad)
	b.Record(s, other, bad)
	b.Record(s, breaker.Permit{}, bad)
	wantState(t, b, breaker.RampUp)
}

func TestRejectionsOfItsOwnAreNotCounted(t *testing.T) {
	b := opened(t, breaker.Config{}, nil)
	for range 100 {
		p, ok := b.Allow(500 * ms)
		if ok {
			t.Fatal("admitted")
		}
		b.Record(500*ms, p, bad)
	}
	snap := b.Snapshot(500 * ms)
	if snap.OpenUntil != s || snap.Openings != 1 {
		t.Errorf("rejections moved the breaker: %+v", snap)
	}
}

func TestCallbackMayUseTheBreaker(t *testing.T) {
	var b *breaker.Breaker
	var seen []string
	b = breaker.New(breaker.Config{FailureThreshold: 1, SuccessThreshold: 1, RampUp: s}, always(0),
		func(c breaker.Change) {
			b.Allow(c.At)
			b.Rejecting(c.At)
			snap := b.Snapshot(c.At)
			seen = append(seen, fmt.Sprintf("%v %v>%v %v %s", c.At, c.From, c.To, snap.State, c.Reason))
			if c.To == breaker.Open {
				b.Reconfigure(c.At, breaker.Config{FailureThreshold: 1, SuccessThreshold: 1, RampUp: 2 * s})
			}
		})
	call(t, b, 0, bad)
	call(t, b, s, good)
	call(t, b, 3*s, good)
	want := []string{
		"0s closed>open open consecutive failures",
		"1s open>half-open half-open wait over",
		"1s half-open>ramp-up ramp-up probes succeeded",
		"3s ramp-up>closed closed ramp-up over",
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("changes\n%q, want\n%q", seen, want)
	}
}

func TestPanicInTheCallbackLeavesTheBreakerUsable(t *testing.T) {
	angry := true
	b := breaker.New(breaker.Config{FailureThreshold: 1, SuccessThreshold: 1}, always(0), func(breaker.Change) {
		if angry {
			panic("callback")
		}
	})
	recovered := func(f func()) {
		defer func() { _ = recover() }()
		f()
		t.Error("no panic came through")
	}
	p := allow(t, b, 0)
	recovered(func() { b.Record(0, p, bad) })
	wantState(t, b, breaker.Open)
	recovered(func() { b.Allow(s) })
	wantState(t, b, breaker.HalfOpen)
	angry = false
	call(t, b, s, good)
	wantState(t, b, breaker.Closed)
}

func TestTimeRunningBackwardsDoesNoHarm(t *testing.T) {
	c := breaker.Config{
		FailureThreshold: 2, SlowCallRateThreshold: 0.9, FailureRateThreshold: 0.9, SuccessThreshold: 2, RampUp: s,
	}
	b := breaker.New(c, always(0), nil)
	p, q := allow(t, b, 10*s), allow(t, b, 9*s)
	b.Record(8*s, p, good)
	b.Record(7*s, q, bad)
	call(t, b, 6*s, bad)
	wantState(t, b, breaker.Open)
	refuse(t, b, 0)
	p = allow(t, b, 7*s)
	b.Record(6*s, p, good)
	p = allow(t, b, 5*s)
	b.Record(5500*ms, p, good)
	wantState(t, b, breaker.RampUp)
	p = allow(t, b, 5*s)
	b.Record(4*s, p, good)
	call(t, b, 20*s, good)
	wantState(t, b, breaker.Closed)
	if snap := b.Snapshot(0); snap.Hanging != 0 || snap.SlowRate != 0 {
		t.Errorf("phantom calls: %+v", snap)
	}
}

func TestExtremeTimesDoNotOverflow(t *testing.T) {
	ends := []time.Duration{-1 << 63, -3 << 61, -1 << 62, -1, 0, 1, 1 << 62, 3 << 61, 1<<63 - 1}
	for _, w := range []breaker.Window{{Calls: 3}, {Duration: 10 * ms}} {
		c := breaker.Config{FailureThreshold: 2, SlowCallRateThreshold: 1, SlowCallDurationThreshold: ms, SlidingWindow: w,
			RampUp: time.Hour}
		for _, first := range ends {
			for _, second := range ends {
				b := breaker.New(c, nil, nil)
				for _, now := range []time.Duration{first, second, first} {
					p, _ := b.Allow(now)
					b.Record(now, p, good)
					p, _ = b.Allow(second)
					b.Record(now, p, bad)
					b.Snapshot(now)
					b.Rejecting(now)
					if b.RetryIn(second) < 0 {
						t.Error("negative retry hint")
					}
				}
			}
		}
	}
}

func TestConcurrentClosedCallsAreAllCounted(t *testing.T) {
	const callers, each = 8, 2000
	for _, w := range []breaker.Window{{Calls: callers * each}, {Duration: time.Hour}} {
		// Some fail and some are slow, never enough to open.
		c := breaker.Config{FailureRateThreshold: 1, SlowCallRateThreshold: 1, SlidingWindow: w}
		b := breaker.New(c, nil, nil)
		var wg sync.WaitGroup
		var clock atomic.Int64
		for range callers {
			wg.Go(func() {
				for i := range each {
					p, _ := b.Allow(time.Duration(clock.Add(int64(ms))))
					var took time.Duration
					if i%5 == 1 {
						took = 2 * s
					}
					r := good
					if i%4 == 1 {
						r = bad
					}
					b.Record(time.Duration(clock.Load())+took, p, r)
				}
			})
		}
		wg.Wait()
		snap := b.Snapshot(time.Duration(clock.Load()))
		if snap.State != breaker.Closed || snap.Calls != callers*each || snap.Hanging != 0 || snap.FailureRate != 0.25 {
			t.Errorf("window %v: %+v", w, snap)
		}
		if snap.SlowRate < 0.2 { // calls overtaken by the clock may be slow, too
			t.Errorf("window %v: slow rate %v", w, snap.SlowRate)
		}
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	c := breaker.Config{FailureThreshold: 1000, FailureRateThreshold: 0.9, SlowCallRateThreshold: 0.9, RampUp: s}
	open := opened(t, breaker.Config{}, nil)
	for _, w := range []breaker.Window{{Calls: 100}, {Duration: s}} {
		c.SlidingWindow = w
		b := breaker.New(c, nil, nil)
		now := time.Duration(0)
		if n := testing.AllocsPerRun(1000, func() {
			now += 10 * ms
			for _, r := range []breaker.Result{good, bad, neutral} {
				p, _ := b.Allow(now)
				b.Record(now, p, r)
			}
			open.Allow(ms)
			open.Rejecting(ms)
		}); n != 0 {
			t.Errorf("window %v: %v allocations", w, n)
		}
		wantState(t, b, breaker.Closed)
	}
}

// A breaker must not stay shut long after the fault: its own rejections keep nothing alive.
func TestRecoveryTakesNoLongerThanTheLongestWaitAndTheRamp(t *testing.T) {
	for _, outage := range []time.Duration{s, time.Minute, time.Hour} {
		c := breaker.Config{FailureRateThreshold: 0.5, FailureThreshold: 5, RampUp: 5 * s}
		b := breaker.New(c, nil, nil)
		var closed time.Duration
		for now := time.Duration(0); now < outage+30*s; now += 50 * ms {
			p, ok := b.Allow(now)
			if !ok {
				continue
			}
			r := good
			if now < outage {
				r = bad
			}
			b.Record(now, p, r)
			if b.State() == breaker.Closed && now >= outage && closed == 0 {
				closed = now - outage
			}
		}
		if limit := 10*s + 5*s + s; closed == 0 || closed > limit {
			t.Errorf("outage of %v: closed %v after it, want at most %v", outage, closed, limit)
		}
	}
}

func TestEverythingAtOnce(t *testing.T) {
	configs := []breaker.Config{
		{FailureThreshold: 3, SlowCallRateThreshold: 0.5, SlowCallDurationThreshold: ms, RampUp: 20 * ms,
			WaitDurationInOpenState: ms, MaxWaitDurationInOpenState: 2 * ms},
		{FailureRateThreshold: 0.3, SlidingWindow: breaker.Window{Duration: 10 * ms}, MinimumNumberOfCalls: 5,
			WaitDurationInOpenState: ms, SuccessThreshold: 1},
		{FailureThreshold: 3, SlowCallRateThreshold: 0.5, SlowCallDurationThreshold: ms,
			SlidingWindow: breaker.Window{Calls: 20}, Mode: breaker.Shadow},
		{FailureThreshold: 3, Mode: breaker.ForcedOpen},
		{Disabled: true},
	}
	var b *breaker.Breaker
	b = breaker.New(configs[0], nil, func(c breaker.Change) { b.Rejecting(c.At) })
	var clock atomic.Int64
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 2))
			for range 10_000 {
				now := time.Duration(clock.Add(int64(r.IntN(50)) * 1000))
				p, _ := b.Allow(now)
				switch r.IntN(200) {
				case 0:
					b.Reconfigure(now, configs[r.IntN(len(configs))])
				case 1:
					if snap := b.Snapshot(now); snap.Hanging > 8 || snap.FailureRate > 1 || snap.SlowRate > 1 {
						t.Errorf("impossible: %+v", snap)
					}
				}
				b.Record(time.Duration(clock.Load()), p, breaker.Result(r.IntN(3)))
			}
		})
	}
	wg.Wait()
	now := time.Duration(clock.Load()) + time.Hour
	b.Reconfigure(now, breaker.Config{})
	b.Reconfigure(now, configs[0])
	call(t, b, now, good)
	wantState(t, b, breaker.Closed)
}
