package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"
)

// daily makes a result of a hundred requests in each bucket, of which all were answered except where it says fewer.
func daily(fewer map[int]int) result {
	n := int(dayLength / bucket)
	r := result{asked: slices.Repeat([]int{100}, n), answered: slices.Repeat([]int{100}, n), sent: make([]int64, n)}
	for i, answered := range fewer {
		r.answered[i] = answered
	}
	return r
}

func TestShareIsOfAllRequests(t *testing.T) {
	r := daily(map[int]int{0: 0, 49: 50})
	if got, want := r.share(), 0.97; got != want {
		t.Errorf("share %v, want %v", got, want)
	}
	r.asked[3], r.answered[3] = 300, 0
	if got, want := r.share(), 4750.0/5200; got != want {
		t.Errorf("share %v, want %v: buckets do not weigh alike", got, want)
	}
	if got := (result{}).share(); got != 1 {
		t.Errorf("share of no request %v", got)
	}
}

func TestBackIsWhenTheLastBadBucketIsOver(t *testing.T) {
	const end = int(faultEnd / bucket)
	for name, c := range map[string]struct {
		fewer map[int]int
		want  time.Duration
	}{
		"never away":                 {nil, 0},
		"bad during the fault only":  {map[int]int{end - 1: 0}, 0},
		"one bucket":                 {map[int]int{end: 10}, bucket},
		"at the limit it is good":    {map[int]int{end: 95}, 0},
		"one below the limit is bad": {map[int]int{end: 94}, bucket},
		"a relapse counts":           {map[int]int{end: 0, end + 7: 90}, 8 * bucket},
		"bad until the day ends":     {map[int]int{49: 94}, never},
	} {
		if got := daily(c.fewer).back(faultEnd); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	empty := daily(nil)
	empty.asked[end], empty.answered[end] = 0, 0
	if got := empty.back(faultEnd); got != 0 {
		t.Errorf("a bucket without requests: %v", got)
	}
}

func TestACellIsTheMedianOfItsPasses(t *testing.T) {
	const end = int(faultEnd / bucket)
	c := cell{results: []result{daily(map[int]int{49: 0}), daily(map[int]int{end: 0, end + 1: 0}), daily(nil)}}
	if got := c.back(); got != 2*bucket {
		t.Errorf("back after %v, want the middle of 0, 1 s and never", got)
	}
	if share, ok := c.share(); !ok || share != 0.98 {
		t.Errorf("share %v, %v", share, ok)
	}
	c.results = c.results[:1]
	if got := c.back(); got != never {
		t.Errorf("never came to %v", got)
	}
	if _, ok := (cell{}).share(); ok {
		t.Error("there is a share of nothing")
	}
	if got := median([]float64{4, 1}); got != 2.5 {
		t.Errorf("the median of two is %v", got)
	}
}

func TestAttemptsAreCountedForEachRequest(t *testing.T) {
	r := daily(nil)
	r.sent[4], r.sent[5] = 5000, 2500
	if got := r.amplification(); got != 1.5 {
		t.Errorf("%v attempts a request, want 1.5", got)
	}
	c := cell{results: []result{r, daily(nil)}}
	if got := c.attempts()[4]; got != 5000 {
		t.Errorf("%v attempts a second in the mean of two passes, want 5000", got)
	}
}

func TestARunIsDisturbedWhenTimersAreLate(t *testing.T) {
	for name, c := range map[string]struct {
		late lateness
		want bool
	}{
		"quiet":           {lateness{time.Millisecond, 5 * time.Millisecond}, false},
		"at both limits":  {lateness{lateOften, lateOnce}, false},
		"often late":      {lateness{lateOften + 1, lateOften + 1}, true},
		"one long pause":  {lateness{0, lateOnce + 1}, true},
		"nothing watched": {lateness{}, false},
	} {
		if got := c.late.disturbs(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	all := make([]time.Duration, 200)
	for i := range all {
		all[i] = time.Duration(200 - i)
	}
	if got, want := latenessOf(all), (lateness{p99: 199, most: 200}); got != want {
		t.Errorf("of 1 to 200: %v, want %v", got, want)
	}
}

// playing is a lab whose runs come from a function.
func playing(opt options, run func(c contender, try int) (result, error)) *lab {
	l := &lab{ctx: context.Background(), opt: opt, log: io.Discard}
	tries := make(map[string]chan int)
	for _, c := range opt.contenders {
		tries[c.name] = make(chan int, 1)
		tries[c.name] <- 0
	}
	l.oneRun = func(c contender, _ day, _ uint64) (result, error) {
		try := <-tries[c.name]
		tries[c.name] <- try + 1
		return run(c, try)
	}
	l.newCells()
	return l
}

func TestADisturbedRunIsRepeatedAndTheLeastDisturbedCounts(t *testing.T) {
	opt := options{repeats: 2, days: allDays[:1], contenders: []contender{{name: "quiet"}, {name: "late"}, {name: "once"}}}
	late := map[string][]time.Duration{"quiet": {0}, "late": {5, 2, 3}, "once": {4, 0}}
	l := playing(opt, func(c contender, try int) (result, error) {
		r := daily(map[int]int{0: try})
		r.late.p99 = late[c.name][try] * lateOften
		return r, nil
	})
	if err := l.batch([]int{0, 1, 2}, 0, 1); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		repeated, counts int
		disturbed        bool
	}{{0, 0, false}, {2, 1, true}, {1, 1, false}} {
		c := l.cell(i, 0)
		if c.repeated != want.repeated || len(c.results) != 1 || c.results[0].answered[0] != want.counts ||
			c.disturbed() != want.disturbed {
			t.Errorf("%s: repeated %d times, %d results, disturbed: %v; want %+v", c.contender, c.repeated, len(c.results),
				c.disturbed(), want)
		}
	}
}

func TestARunThatFailsIsRepeatedAndStopsNobodyElse(t *testing.T) {
	opt := options{repeats: 2, days: allDays[:1], contenders: []contender{
		{name: "good"}, {name: "bad"}, {name: "slow to start"}}}
	l := playing(opt, func(c contender, try int) (result, error) {
		if c.name == "bad" || c.name == "slow to start" && try == 0 {
			return result{}, errors.New("it has ended")
		}
		return daily(nil), nil
	})
	if err := l.batch([]int{0, 1, 2}, 0, 1); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ results, repeated int }{{1, 0}, {0, 2}, {1, 1}} {
		c := l.cell(i, 0)
		if len(c.results) != want.results || c.repeated != want.repeated || (c.failed != nil) != (want.results == 0) {
			t.Errorf("%s: %d results, %d repetitions, %v", c.contender, len(c.results), c.repeated, c.failed)
		}
	}
}

func TestEverybodyPlaysEveryDayInEachPass(t *testing.T) {
	opt := options{passes: 3, beside: 2, days: allDays, out: t.TempDir(),
		contenders: []contender{{name: "a"}, {name: "b"}, {name: "c"}}}
	l := playing(opt, func(contender, int) (result, error) { return daily(nil), nil })
	if err := l.play(); err != nil {
		t.Fatal(err)
	}
	for _, c := range l.cells {
		if len(c.results) != opt.passes {
			t.Errorf("%s, %s: %d results", c.contender, c.day.name, len(c.results))
		}
	}
	if got := rotate([]int{0, 1, 2}, 4); !slices.Equal(got, []int{1, 2, 0}) {
		t.Errorf("rotated by 4: %v", got)
	}
}
