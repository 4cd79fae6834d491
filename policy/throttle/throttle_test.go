package throttle_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/throttle"
)

const (
	always = uint64(0)              // is refused when anything is
	never  = uint64(math.MaxUint64) // is refused when everything is, so never
)

// load makes n requests at now, of which the dependency accepts the first accepted.
func load(t *throttle.Throttle, now time.Duration, n, accepted int) {
	for i := range n {
		t.Allow(now, never)
		if i < accepted {
			t.Record(now, now, throttle.Accepted)
		} else {
			t.Record(now, now, throttle.Rejected)
		}
	}
}

func TestRejectionFollowsTheFormula(t *testing.T) {
	for _, tt := range []struct {
		k           float64
		n, accepted int
		want        float64
	}{
		{2, 100, 100, 0},
		{2, 100, 50, 0},
		{2, 100, 49, 2.0 / 101},
		{2, 100, 25, 50.0 / 101},
		{2, 100, 0, 0.9},
		{1.25, 1000, 600, 250.0 / 1001},
		{4, 1000, 200, 200.0 / 1001},
		{2, 19, 0, 0},
		{2, 20, 0, 0.9},
	} {
		th := throttle.New(throttle.Config{K: tt.k})
		load(th, time.Second, tt.n, tt.accepted)
		got := th.State(time.Second)
		if math.Abs(got.Rejection-tt.want) > 1e-12 || got.Requests != float64(tt.n) || got.Accepts != float64(tt.accepted) {
			t.Errorf("K %v, %d of %d accepted: %+v, want rejection %v", tt.k, tt.accepted, tt.n, got, tt.want)
		}
	}
}

func TestTheMinimumIsThatOfTheWindow(t *testing.T) {
	th := throttle.New(throttle.Config{K: 2})
	load(th, 0, 1000, 1000)
	load(th, time.Hour, 19, 0)
	if got := th.State(time.Hour); got.Rejection != 0 {
		t.Errorf("%+v", got)
	}
	load(th, time.Hour, 1, 0)
	if got := th.State(time.Hour); got.Rejection != 0.9 {
		t.Errorf("%+v", got)
	}
}

func TestTheShareOfRejectionIsRefused(t *testing.T) {
	for _, tt := range []struct {
		rnd     float64
		refused bool
	}{{0, true}, {0.49, true}, {0.51, false}, {0.9999, false}} {
		th := throttle.New(throttle.Config{K: 2})
		load(th, 0, 10_000, 2500) // rejection 0.5
		ok, over := th.Allow(0, uint64(tt.rnd*math.MaxUint64))
		if ok == tt.refused || over != tt.refused {
			t.Errorf("random number %v: ok %v, over %v", tt.rnd, ok, over)
		}
	}
}

func TestWhatIsRefusedHereCountsAsARequest(t *testing.T) {
	th := throttle.New(throttle.Config{K: 2})
	load(th, 0, 100, 25)
	before := th.State(0)
	for range 10 {
		if ok, over := th.Allow(0, always); ok || !over {
			t.Fatal("allowed")
		}
	}
	got := th.State(0)
	if got.Requests != before.Requests+10 || got.Refused != 10 || got.Rejection <= before.Rejection {
		t.Errorf("%+v after %+v", got, before)
	}
}

func TestSomeAreAlwaysSent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	th := throttle.New(throttle.Config{K: 2, MaxRejection: 0.99})
	sent := 0
	for i := range 100_000 {
		now := time.Duration(i) * time.Millisecond
		if ok, _ := th.Allow(now, r.Uint64()); ok {
			sent++
			th.Record(now, now, throttle.Rejected)
		}
	}
	if sent < 900 || sent > 1200 {
		t.Errorf("%d of 100000 sent, want one in a hundred", sent)
	}
}

// A client that starts with a burst has sent everything before the first answer comes.
func TestABurstBeforeTheFirstAnswerIsNoOutage(t *testing.T) {
	th := throttle.New(throttle.Config{K: 2, Window: 10 * time.Second})
	for i := range 1000 {
		if ok, _ := th.Allow(time.Duration(i)*time.Millisecond/2, always); !ok {
			t.Fatalf("request %d was refused although nothing failed", i)
		}
	}
	th.Record(time.Second/2, 0, throttle.Accepted)
	if ok, _ := th.Allow(time.Second/2, always); !ok {
		t.Error("refused after the first answer, which was good")
	}
	for range 9 {
		th.Record(time.Second/2, 0, throttle.Rejected)
	}
	if ok, _ := th.Allow(time.Second/2, always); ok {
		t.Error("allowed although nine answers of ten are bad")
	}
}

func TestADependencyThatHangsIsNoticed(t *testing.T) {
	th := throttle.New(throttle.Config{K: 2, Window: 10 * time.Second})
	at := time.Duration(0)
	for ; at < time.Minute; at += 10 * time.Millisecond {
		if ok, _ := th.Allow(at, always); !ok {
			break
		}
	}
	if at < time.Second || at > 3*time.Second {
		t.Errorf("noticed after %v, want two tenths of the window", at)
	}
}

func TestNeutralTakesTheRequestOut(t *testing.T) {
	th := throttle.New(throttle.Config{K: 2})
	for range 1000 {
		if ok, _ := th.Allow(0, always); !ok {
			t.Fatal("refused")
		}
		th.Record(0, 0, throttle.Neutral)
	}
	load(th, 0, 50, 30)
	if got := th.State(time.Second); got.Requests != 50 || got.Accepts != 30 || got.Rejection != 0 {
		t.Errorf("%+v", got)
	}
}

func TestResultsBelongToTheTimeOfTheirRequest(t *testing.T) {
	th := throttle.New(throttle.Config{K: 2, Window: 10 * time.Second})
	th.Allow(0, never)
	th.Allow(5*time.Second, never)
	th.Record(9*time.Second, 0, throttle.Accepted)
	th.Record(9*time.Second, 5*time.Second, throttle.Accepted)
	for _, tt := range []struct {
		now  time.Duration
		want float64
	}{{9 * time.Second, 2}, {10 * time.Second, 1}, {14 * time.Second, 1}, {15 * time.Second, 0}, {time.Hour, 0}} {
		if got := th.State(tt.now); got.Accepts != tt.want || got.Requests != tt.want {
			t.Errorf("at %v: %+v, want %v", tt.now, got, tt.want)
		}
	}
	th.Allow(time.Hour, never)
	for _, began := range []time.Duration{0, time.Hour - 11*time.Second, time.Hour - time.Second} {
		th.Record(time.Hour, began, throttle.Accepted) // too late, or never made
		th.Record(time.Hour, began, throttle.Neutral)
	}
	if got := th.State(time.Hour); got.Requests != 1 || got.Accepts != 0 {
		t.Errorf("%+v after results of nobody's requests", got)
	}
}

func TestShadowRefusesNothingAndCountsAsIfItDid(t *testing.T) {
	c := throttle.Config{K: 2, Window: 10 * time.Second}
	real := throttle.New(c)
	c.Shadow = true
	shadow := throttle.New(c)
	r, refused := rand.New(rand.NewPCG(1, 2)), 0
	for i := range 200_000 {
		now := time.Duration(i) * time.Millisecond
		rnd, result := r.Uint64(), throttle.Accepted
		if i > 50_000 && i < 120_000 && r.IntN(4) > 0 {
			result = throttle.Rejected
		}
		ok, over := real.Allow(now, rnd)
		shadowOK, shadowOver := shadow.Allow(now, rnd)
		if !shadowOK || shadowOver != over || ok == over {
			t.Fatalf("request %d: %v, %v, in shadow %v, %v", i, ok, over, shadowOK, shadowOver)
		}
		if over {
			refused++
			continue
		}
		real.Record(now, now, result)
		shadow.Record(now, now, result)
	}
	end := 200_000 * time.Millisecond
	if real.State(end) != shadow.State(end) || refused < 1000 {
		t.Errorf("%d refused; state %+v, in shadow %+v", refused, real.State(end), shadow.State(end))
	}
}

func TestAThrottleThatIsOffAllowsEverything(t *testing.T) {
	for _, c := range []throttle.Config{
		{}, {Disabled: true, K: 2}, {K: -1}, {K: math.NaN()}, {Window: time.Second, MaxRejection: 0.5},
	} {
		th := throttle.New(c)
		for range 1000 {
			if ok, over := th.Allow(0, always); !ok || over {
				t.Fatalf("%+v: refused", c)
			}
			th.Record(0, 0, throttle.Rejected)
		}
		if got := th.State(0); got != (throttle.State{}) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestReconfigureKeepsTheCounts(t *testing.T) {
	base := throttle.Config{K: 2, Window: 10 * time.Second}
	for _, tt := range []struct {
		name string
		to   []throttle.Config
		want float64 // of 100 requests a second for ten seconds, of which 20 are accepted
	}{
		{"the same", []throttle.Config{base}, 1000},
		{"another K", []throttle.Config{{K: 3, Window: 10 * time.Second}}, 1000},
		{"a longer window", []throttle.Config{{K: 2, Window: 10 * time.Minute}}, 1000},
		{"a longer window and back", []throttle.Config{{K: 2, Window: time.Minute}, base}, 1000},
		{"a shorter window", []throttle.Config{{K: 2, Window: 5 * time.Second}}, 500},
		{"off and on", []throttle.Config{{}, base}, 1000},
		{"shadow", []throttle.Config{{K: 2, Window: 10 * time.Second, Shadow: true}}, 1000},
	} {
		th := throttle.New(base)
		for s := range 10 {
			load(th, time.Duration(s)*time.Second, 100, 20)
		}
		now := 9 * time.Second
		for range 3 {
			for _, c := range tt.to {
				th.Reconfigure(now, c)
			}
		}
		if got := th.State(now); got.Requests != tt.want || got.Accepts != tt.want/5 || got.Rejection == 0 {
			t.Errorf("%s: %+v, want %v requests", tt.name, got, tt.want)
		}
		if got := th.State(now + time.Hour); got.Requests != 0 || got.Rejection != 0 {
			t.Errorf("%s: %+v an hour later", tt.name, got)
		}
	}
}

func TestALongerWindowDoesNotBringOldCountsBack(t *testing.T) {
	th := throttle.New(throttle.Config{K: 2, Window: 10 * time.Second})
	load(th, 0, 100, 0)
	th.Reconfigure(5*time.Minute, throttle.Config{K: 2, Window: 10 * time.Minute})
	if got := th.State(5 * time.Minute); got.Requests != 0 {
		t.Errorf("%+v", got)
	}
}

func TestTheClockMayJump(t *testing.T) {
	th := throttle.New(throttle.Config{K: 2, Window: 10 * time.Second})
	load(th, -time.Hour, 100, 0)
	if got := th.State(-time.Hour + 9*time.Second); got.Requests != 100 {
		t.Errorf("before the origin: %+v", got)
	}
	if got := th.State(-time.Hour + 10*time.Second); got.Requests != 0 {
		t.Errorf("ten seconds later: %+v", got)
	}
	load(th, 0, 100, 100)
	load(th, -time.Hour, 100, 0) // stands still
	if got := th.State(-time.Minute); got.Requests != 200 || got.Accepts != 100 {
		t.Errorf("an hour back: %+v", got)
	}
	// nine steps ago on that clock, when nothing was
	th.Record(-2*time.Minute, -2*time.Minute-9*time.Second, throttle.Neutral)
	if got := th.State(-time.Minute); got.Requests != 200 {
		t.Errorf("a request that was never made was taken out: %+v", got)
	}
	for _, now := range []time.Duration{math.MaxInt64, math.MinInt64, 0, math.MaxInt64} {
		load(th, now, 10, 5)
	}
	if got := th.State(math.MaxInt64); got.Requests != 40 || got.Accepts != 20 {
		t.Errorf("at the end of time: %+v", got)
	}
}

func TestConcurrentUseCountsEverything(t *testing.T) {
	th := throttle.New(throttle.Config{K: 100})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				th.Allow(0, never)
				th.Record(0, 0, throttle.Result((i+g)%3))
				if i%100 == 0 {
					th.State(0)
					th.Reconfigure(0, throttle.Config{K: 100, Window: time.Duration(1+g) * time.Second})
				}
			}
		})
	}
	wg.Wait()
	got := th.State(0)
	if want := 8 * 2000 * 2.0 / 3; math.Abs(got.Requests-want) > 8 || math.Abs(got.Accepts-want/2) > 8 {
		t.Errorf("%+v, want %v requests, half of them accepted", got, want)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	th := throttle.New(throttle.Config{K: 2})
	now := time.Duration(0)
	for _, result := range []throttle.Result{throttle.Accepted, throttle.Rejected} {
		n := testing.AllocsPerRun(1000, func() {
			now += time.Millisecond
			if ok, _ := th.Allow(now, 1<<63); ok {
				th.Record(now, now, result)
			}
		})
		if n != 0 {
			t.Errorf("%v: %v allocations", result, n)
		}
	}
}

func TestAnswersThatCameWhileItWasOffAreNoRejections(t *testing.T) {
	on := throttle.Config{K: 2, Window: 30 * time.Second}
	th := throttle.New(on)
	for range 100 {
		th.Allow(0, 0)
	}
	th.Record(time.Second, 0, throttle.Accepted)
	th.Reconfigure(time.Second, throttle.Config{})
	for range 98 {
		th.Record(2*time.Second, 0, throttle.Accepted)
	}
	th.Reconfigure(10*time.Second, on)
	th.Record(11*time.Second, 0, throttle.Accepted) // the last one
	if st := th.State(11 * time.Second); st.Requests != 1 || st.Accepts != 1 {
		t.Errorf("%+v", st)
	}
	for range 30 {
		if ok, _ := th.Allow(11*time.Second, 0); !ok {
			t.Fatal("refused")
		}
		th.Record(11*time.Second, 11*time.Second, throttle.Accepted)
	}
}
