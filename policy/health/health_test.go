package health_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/health"
)

const (
	s    = time.Second
	half = uint64(1) << 63 // neither shorter nor longer
)

var usual = health.Config{Kind: health.HTTP, Interval: 4 * s, UnhealthyThreshold: 2, HealthyThreshold: 3}.WithDefaults()

func TestDefaults(t *testing.T) {
	full := health.Config{Kind: health.GRPC, Interval: 5 * s, MaxInterval: 40 * s, Timeout: s, UnhealthyThreshold: 2,
		HealthyThreshold: 2}
	with := func(change func(c *health.Config)) health.Config {
		c := full
		change(&c)
		return c
	}
	for _, tt := range []struct {
		name     string
		in, want health.Config
	}{
		{"off", health.Config{Path: "/healthz", Interval: s}, health.Config{}},
		{"disabled", health.Config{Kind: health.TCP, Disabled: true}, health.Config{Disabled: true}},
		{"on", health.Config{Kind: health.GRPC}, full},
		{"path", health.Config{Kind: health.HTTP}, with(func(c *health.Config) { c.Kind, c.Path = health.HTTP, "/" })},
		{"too low", health.Config{Kind: health.GRPC, Interval: -1, MaxInterval: -1, Timeout: -1, UnhealthyThreshold: -1,
			HealthyThreshold: -1}, health.Config{Kind: health.GRPC, Interval: s / 10, MaxInterval: s / 10,
			Timeout: time.Millisecond, UnhealthyThreshold: 1, HealthyThreshold: 1}},
		{"too high", health.Config{Kind: health.GRPC, Interval: math.MaxInt64, MaxInterval: math.MaxInt64,
			Timeout: math.MaxInt64, UnhealthyThreshold: math.MaxInt, HealthyThreshold: math.MaxInt},
			health.Config{Kind: health.GRPC, Interval: time.Hour, MaxInterval: 24 * time.Hour, Timeout: time.Hour,
				UnhealthyThreshold: 1000, HealthyThreshold: 1000}},
		{"a short interval", health.Config{Kind: health.GRPC, Interval: s / 2, MaxInterval: s / 4},
			with(func(c *health.Config) { c.Interval, c.MaxInterval, c.Timeout = s/2, s/2, s/2 })},
	} {
		got := tt.in.WithDefaults()
		if got != tt.want || got.WithDefaults() != got {
			t.Errorf("%s: %+v, twice %+v, want %+v", tt.name, got, got.WithDefaults(), tt.want)
		}
	}
}

// Each letter is a result: P passing, R refusing, S silent; C before it: a call was answered since the one before.
func TestWhatAnswersMean(t *testing.T) {
	for _, tt := range []struct {
		name, results string
		healthy       bool
		wait          time.Duration // until the next question
	}{
		{"the first yes", "P", true, 4 * s},
		{"the first no counts alone", "R", false, 4 * s},
		{"no answer to the first", "S", false, 4 * s},
		{"what was answered before the first question says nothing", "CS", false, 4 * s},
		{"ever less often", "PPP", true, 16 * s},
		{"not less often than that", "PPPPPPPPPPPP", true, 32 * s},
		{"calls prove more", "PCP", true, 32 * s},
		{"a no is asked again soon", "PPPR", true, s},
		{"two take it out", "PPPRR", false, 4 * s},
		{"silence does, too", "PPSS", false, 4 * s},
		{"one of each", "PPSR", false, 4 * s},
		{"a yes in between begins anew", "PRPRPR", true, s},
		{"after trouble it is asked often again", "PPPPRP", true, 4 * s},
		{"a yes is asked for again soon", "RP", false, s},
		{"three bring it back", "RPPP", true, 4 * s},
		{"a no in between begins anew", "RPPRPP", false, s},
		{"out it stays out", "RRRRRRRR", false, 4 * s},
		{"silence proves nothing while calls are answered", "PCSCSCSCS", true, s},
		{"silence after the last answered call does", "PCSSS", false, 4 * s},
		{"a no is believed although calls are answered", "PCRCR", false, 4 * s},
		{"answered calls bring back who is only silent", "SCSCSCS", true, s},
		{"they do not bring back who says no", "RCRCRCR", false, 4 * s},
	} {
		k, now, answered, changes, last := health.New(usual, 0, half), time.Duration(0), uint64(7), 0, time.Duration(0)
		for _, letter := range tt.results {
			if letter == 'C' {
				answered++
				continue
			}
			was := k.Healthy()
			now = k.Due()
			for !k.Ask(usual, now, health.Calls{Answered: answered}, half) {
				now = k.Due()
			}
			asked := now
			if k.Due() != math.MaxInt64 {
				t.Errorf("%s: due at %v while it is asked", tt.name, k.Due())
			}
			r := map[rune]health.Result{'P': health.Passing, 'R': health.Refusing, 'S': health.Silent}[letter]
			if k.Take(usual, now, r, health.Calls{Answered: answered}, half) != (was != k.Healthy()) {
				t.Errorf("%s: a change is not reported, or one that is none", tt.name)
			}
			if last = 0; was != k.Healthy() {
				changes++
			}
			for next := k; ; {
				if now = next.Due(); next.Ask(usual, now, health.Calls{Answered: answered}, half) {
					last = now - asked
					break
				}
			}
		}
		if k.Healthy() != tt.healthy || last != tt.wait || !k.Known() {
			t.Errorf("%s: healthy %v, next in %v, want %v, %v", tt.name, k.Healthy(), last, tt.healthy, tt.wait)
		}
	}
}

func TestTheFirstQuestionComesSoonAndNobodyKnowsBefore(t *testing.T) {
	for _, rnd := range []uint64{0, half, math.MaxUint64} {
		k := health.New(usual, 100*s, rnd)
		if wait := k.Due() - 100*s; wait < 0 || wait > s || !k.Healthy() || k.Known() {
			t.Errorf("%x: in %v, healthy %v, known %v", rnd, wait, k.Healthy(), k.Known())
		}
	}
}

func TestWaitsDifferByAQuarterAtMost(t *testing.T) {
	least, most := time.Hour, time.Duration(0)
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		k := health.New(usual, 0, rnd.Uint64())
		k.Take(usual, 0, health.Passing, health.Calls{}, rnd.Uint64())
		least, most = min(least, k.Due()), max(most, k.Due())
	}
	if least < 3*s || least > 3*s+s/10 || most > 5*s || most < 5*s-s/10 {
		t.Errorf("waits between %v and %v, want 3s and 5s", least, most)
	}
}

// Many ask one endpoint that has just come: what it has to answer in any second, and in the long run. The end of the
// time does not pass unnoticed.
func TestManyWhoAskAreNoStorm(t *testing.T) {
	const proxies = 1000
	c := health.Config{Kind: health.HTTP}.WithDefaults()
	for _, answered := range []bool{false, true} {
		rnd := rand.New(rand.NewPCG(2, 2))
		perSecond := make([]int, 600)
		for range proxies {
			k, calls := health.New(c, 0, rnd.Uint64()), uint64(0)
			for now := k.Due(); now < 600*s; now = k.Due() {
				if answered {
					calls++
				}
				if k.Ask(c, now, health.Calls{Answered: calls}, rnd.Uint64()) {
					perSecond[now/s]++
					k.Take(c, now, health.Passing, health.Calls{Answered: calls}, rnd.Uint64())
				}
			}
		}
		late, most := 0, 0
		for at, n := range perSecond {
			if at >= 300 {
				late += n
			}
			if at > 1 {
				most = max(most, n)
			}
		}
		if mean := float64(late) / 300; mean < 24 || mean > 27 {
			t.Errorf("calls answered %v: %v questions per second, want 25", answered, mean)
		}
		if most > proxies/2 {
			t.Errorf("calls answered %v: %d in one second", answered, most)
		}
	}
}

// naive is the check as one would explain it: from all results so far.
type naive struct {
	results []bool // passed
	healthy bool
}

func (n *naive) take(c health.Config, r health.Result, calls bool) {
	first := len(n.results) == 0
	n.results = append(n.results, r == health.Passing || r == health.Silent && calls && !first)
	last := n.results[len(n.results)-1]
	if first {
		n.healthy = last
		return
	}
	row := 0
	for i := len(n.results) - 1; i >= 0 && n.results[i] == last; i-- {
		row++
	}
	switch {
	case last && !n.healthy && row >= c.HealthyThreshold:
		n.healthy = true
	case !last && n.healthy && row >= c.UnhealthyThreshold:
		n.healthy = false
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(byte(0), []byte{0, 1, 1, 0, 0, 2, 2, 6, 6})
	f.Add(byte(7), []byte{2, 0, 4, 5, 6, 1, 1, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, thresholds byte, ops []byte) {
		c := health.Config{Kind: health.TCP, UnhealthyThreshold: 1 + int(thresholds%4),
			HealthyThreshold: 1 + int(thresholds/4%4)}
		c = c.WithDefaults()
		rnd := rand.New(rand.NewPCG(uint64(thresholds), 3))
		k, m, now, calls := health.New(c, 0, rnd.Uint64()), naive{healthy: true}, time.Duration(0), uint64(0)
		for at, op := range ops {
			if op&4 > 0 {
				calls++
			}
			for now = k.Due(); !k.Ask(c, now, health.Calls{Answered: calls}, rnd.Uint64()); now = k.Due() {
			}
			r := health.Result(op % 4 % 3)
			was := k.Healthy()
			changed := k.Take(c, now, r, health.Calls{Answered: calls}, rnd.Uint64())
			m.take(c, r, op&4 > 0)
			if k.Healthy() != m.healthy || changed != (was != k.Healthy()) {
				t.Fatalf("result %d: healthy %v, changed %v, want healthy %v", at, k.Healthy(), changed, m.healthy)
			}
			if wait := k.Due() - now; wait < c.Interval*3/16 || wait > c.MaxInterval*5/4 {
				t.Fatalf("result %d: next in %v", at, wait)
			}
		}
	})
}

func Example() {
	c := health.Config{Kind: health.HTTP, Path: "/healthz", Interval: 4 * time.Second}.WithDefaults()
	k, now := health.New(c, 0, 0), time.Duration(0)
	for _, r := range []health.Result{health.Passing, health.Silent, health.Silent} {
		now = k.Due()
		if k.Ask(c, now, health.Calls{}, 0); k.Take(c, now, r, health.Calls{}, 1<<63) {
			fmt.Println(now, "healthy:", k.Healthy())
		}
	}
	// Output: 5s healthy: false
}

func TestSettingsWithoutEffectAreNamed(t *testing.T) {
	all := health.Config{Path: "/", Service: "x", Interval: s, MaxInterval: s, Timeout: s, UnhealthyThreshold: 1,
		HealthyThreshold: 1}
	for _, tt := range []struct{ kind, want string }{
		{"", "path service interval maxInterval timeout unhealthyThreshold healthyThreshold "},
		{health.HTTP, "service "}, {health.GRPC, "path "}, {health.TCP, "path service "},
	} {
		c, got := all, ""
		c.Kind = tt.kind
		c.Ineffective(func(key string, set bool, _ string) {
			if set {
				got += key + " "
			}
		})
		if got != tt.want {
			t.Errorf("kind %q: %s, want %s", tt.kind, got, tt.want)
		}
	}
}

func TestCallsThatFailHaveItAskedSoon(t *testing.T) {
	for _, tt := range []struct {
		name   string
		during health.Calls
		want   time.Duration
	}{
		{"nothing", health.Calls{}, 32 * s},
		{"some fail, others are answered", health.Calls{Answered: 1, Failed: 9}, 32 * s},
		{"they fail", health.Calls{Failed: 1}, 4 * s},
	} {
		k, calls := health.New(usual, 0, half), health.Calls{Answered: 5, Failed: 3}
		k.Take(usual, 0, health.Passing, calls, half)
		calls.Answered++
		k.Take(usual, 0, health.Passing, calls, half)
		calls.Answered += tt.during.Answered
		calls.Failed += tt.during.Failed
		now := k.Due()
		for !k.Ask(usual, now, calls, half) {
			now = k.Due()
		}
		if now != tt.want {
			t.Errorf("%s: asked after %v, want %v", tt.name, now, tt.want)
		}
	}
}
