package main

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestDaysAreWhatTheirNamesSay(t *testing.T) {
	find := func(name string) day {
		return allDays[slices.IndexFunc(allDays, func(d day) bool { return d.name == name })]
	}
	const inside = faultStart + 100*time.Millisecond
	for name, c := range map[string]struct {
		day      string
		at       time.Duration
		endpoint int
		want     condition
		until    time.Duration
	}{
		"before":                  {"hang", faultStart - 1, 0, condition{}, 0},
		"its first moment":        {"hang", faultStart, 0, condition{hangs: 1}, faultEnd},
		"its last":                {"hang", faultEnd - 1, 0, condition{hangs: 1}, faultEnd},
		"after":                   {"hang", faultEnd, 0, condition{}, 0},
		"a restart is down":       {"restart", inside, 0, condition{down: true}, faultStart + 2*time.Second},
		"then slow":               {"restart", faultEnd - 1, 0, condition{slower: 2}, faultEnd},
		"flapping hangs":          {"flapping", inside, 0, condition{hangs: 1}, faultStart + bucket},
		"and serves":              {"flapping", inside + bucket, 0, condition{}, 0},
		"the sick endpoint":       {"hung endpoint", inside, 0, condition{hangs: 1}, faultEnd},
		"the others are well":     {"hung endpoint", inside, 1, condition{}, 0},
		"a surge is no condition": {"surge", inside, 0, condition{}, 0},
	} {
		if got, until := find(c.day).at(c.at, c.endpoint); got != c.want || until != c.until {
			t.Errorf("%s: %+v until %v, want %+v until %v", name, got, until, c.want, c.until)
		}
	}
}

func TestThereAreTenStormsThreeHealthyDaysAndTheThreeQuickOnes(t *testing.T) {
	storms, healthy, quick := 0, 0, []string(nil)
	for _, d := range allDays {
		if d.healthy {
			healthy++
		} else {
			storms++
		}
		if d.quick {
			quick = append(quick, d.name)
		}
	}
	if storms < 10 || healthy < 3 || !slices.Equal(quick, []string{"hang", "slow", "errors"}) {
		t.Errorf("%d storms, %d healthy days, quick: %v", storms, healthy, quick)
	}
}

func TestAHealthyDayCanBeServed(t *testing.T) {
	for _, d := range allDays {
		if !d.healthy {
			continue
		}
		// A queue of fluid: what waits after each millisecond, in requests.
		waiting, longest := 0.0, time.Duration(0)
		for at := time.Duration(0); at < dayLength; at += time.Millisecond {
			c, _ := d.at(at, 0)
			if c.fails+c.hangs+c.loses > 0 || c.down {
				t.Errorf("%s, %v: %+v is no health", d.name, at, c)
			}
			served := float64(workers) / serviceTime.Seconds() / max(c.slower, 1)
			waiting = max(0, waiting+(d.rateAt(at)-served)/1000)
			longest = max(longest, time.Duration(waiting/served*float64(time.Second)))
		}
		if longest > attemptTimeout/2 {
			t.Errorf("%s: even without chance requests wait for %v", d.name, longest)
		}
	}
}

func TestArrivalsAreTheSameForTheSameSeed(t *testing.T) {
	surge := day{rate: between(faultStart, faultEnd, 3)}
	at := arrivals(surge, 7)
	if !slices.Equal(at, arrivals(surge, 7)) || slices.Equal(at, arrivals(surge, 8)) {
		t.Error("the seed does not decide")
	}
	if !slices.IsSorted(at) || at[len(at)-1] >= dayLength {
		t.Error("they are not in order, or not of one day")
	}
	before, during := 0, 0
	for _, when := range at {
		if when < faultStart {
			before++
		} else if when < faultEnd {
			during++
		}
	}
	// Six standard deviations of a Poisson process.
	for name, c := range map[string]struct{ got, want float64 }{
		"before": {float64(before), 5 * requestRate}, "during": {float64(during), 15 * requestRate},
	} {
		if math.Abs(c.got-c.want) > 6*math.Sqrt(c.want) {
			t.Errorf("%s the surge %v requests, want about %v", name, c.got, c.want)
		}
	}
}
