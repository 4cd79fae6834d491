package budget_test

import (
	"fmt"
	"math"
	"sort"
	"testing"
	"time"
)

// trace records when first attempts were sent and when extra ones were allowed, in
// order of time, and checks the bound of the package comment on it.
type trace struct {
	times        []time.Duration
	first, extra []int64 // so far, including this time
}

func (tr *trace) add(now time.Duration, first, extra int64) {
	n := len(tr.times)
	if n == 0 || tr.times[n-1] < now {
		tr.times = append(tr.times, now)
		var f, e int64
		if n > 0 {
			f, e = tr.first[n-1], tr.extra[n-1]
		}
		tr.first, tr.extra = append(tr.first, f), append(tr.extra, e)
		n++
	}
	tr.first[n-1] += first
	tr.extra[n-1] += extra
}

func (tr *trace) totals() (first, extra int64) {
	n := len(tr.times)
	if n == 0 {
		return 0, 0
	}
	return tr.first[n-1], tr.extra[n-1]
}

// firstUntil counts the first attempts up to and including t.
func (tr *trace) firstUntil(t time.Duration) int64 {
	i := sort.Search(len(tr.times), func(i int) bool { return tr.times[i] > t })
	if i == 0 {
		return 0
	}
	return tr.first[i-1]
}

// check holds every pair of moments t1 < t2 against
//
//	extra(t1, t2] ≤ ratio × first(t1−window, t2] + floor
//
// and the whole life against ratio × first + reserve. Written as a difference of sums,
// the pair bound is: what t2 stands at must not exceed the least that any earlier t1
// allows, so one pass covers all pairs. Between two events the worst t1 is the moment
// just before the second one. Everything is in millionths, so it is exact.
func (tr *trace) check(t *testing.T, ratio, reserve float64, window time.Duration, floor float64) {
	t.Helper()
	if err := tr.over(ratio, reserve, window, floor); err != nil {
		t.Error(err)
	}
}

func (tr *trace) over(ratio, reserve float64, window time.Duration, floor float64) error {
	micro := func(v float64) int64 { return int64(math.Round(v * 1e6)) }
	r := micro(ratio)
	first, extra := tr.totals()
	if extra*1e6 > first*r+micro(reserve) {
		return fmt.Errorf("over its life: %d extra for %d first attempts, more than %v × first + %v", extra, first,
			ratio, reserve)
	}
	least, at := int64(math.MaxInt64), time.Duration(0)
	var before int64 // extra up to t1
	for j, t2 := range tr.times {
		t1 := t2 - 1
		if allowed := before*1e6 - tr.firstUntil(t1-window)*r + micro(floor); allowed < least {
			least, at = allowed, t1
		}
		if got := tr.extra[j]*1e6 - tr.first[j]*r; got > least {
			return fmt.Errorf("in (%v, %v]: extra attempts exceed %v × first(t1−%v, t2] + %v by %v",
				at, t2, ratio, window, floor, float64(got-least)/1e6)
		}
		before = tr.extra[j]
	}
	return nil
}

// The checker itself must be able to say no.
func TestTraceCheckFindsAWindowThatIsOver(t *testing.T) {
	over := func(extra int64) error {
		var tr trace
		for i := range 100 {
			tr.add(time.Duration(i)*time.Second, 1, 0)
		}
		tr.add(100*time.Second, 0, extra)
		return tr.over(0.1, 2, 10*time.Second, 2)
	}
	// The 10 s before the last second hold 10 first attempts, so 1 + 2 are allowed,
	// although the whole life would allow 12.
	if err := over(3); err != nil {
		t.Error(err)
	}
	if over(4) == nil {
		t.Error("4 extra attempts were accepted")
	}
}
