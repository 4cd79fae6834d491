//go:build !race

package validation_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/abate-go/abate/sim/validation"
)

// suite runs everything once for all tests.
var suite = sync.OnceValues(func() ([]validation.Row, error) {
	last := 0
	return validation.Run(context.Background(), func(done, of int) {
		if done <= last || done > of {
			panic("progress goes back, or beyond its end")
		}
		last = done
	})
})

func rowsOf(t *testing.T) []validation.Row {
	t.Helper()
	rows, err := suite()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestPublishedNumbersFit(t *testing.T) {
	if testing.Short() {
		return // the suite takes half a minute: make storms
	}
	rows := rowsOf(t)
	if len(rows) < 280 {
		t.Errorf("%d rows, want 280 or more", len(rows))
	}
	for _, r := range rows {
		if !r.Pass {
			t.Errorf("%s (%s, %s): published %v, measured %v; from %v to %v would fit", r.ID, r.Source, r.What, r.Published,
				r.Measured, r.Low, r.High)
		}
	}
}

// A row that nothing can fail says nothing: most published numbers must not fit any more when they are moved by six
// standard errors, none when they are moved by all that fits, either way.
func TestRowsCanFail(t *testing.T) {
	if testing.Short() {
		return // the suite takes half a minute: make storms
	}
	rows := rowsOf(t)
	moved := 0
	for _, r := range rows {
		width := r.High - r.Low
		few, far := 0.75*width, 1.01*width
		if r.Compared == validation.Exact || width == 0 {
			few = 1e-6 * max(1, math.Abs(r.Published))
			far = few
		}
		if r.Fits(r.Published-far) || r.Fits(r.Published+far) {
			t.Errorf("%s: %v fits as well as %v", r.ID, r.Published+far, r.Published)
		}
		inward := few
		if r.Compared == validation.Wilson { // which is lopsided next to 0 and 1
			inward = far
		}
		if r.Published > 0.5 && r.Compared == validation.Wilson {
			inward = -far
		}
		if !r.Fits(r.Published + inward) {
			moved++
		}
	}
	if least := len(rows) * 9 / 10; moved < least {
		t.Errorf("%d of %d rows fail when the published number is moved by a few standard errors, want %d", moved,
			len(rows), least)
	}
}

// Few numbers may be known only roughly.
func TestRowsAreSharp(t *testing.T) {
	if testing.Short() {
		return // the suite takes half a minute: make storms
	}
	rows := rowsOf(t)
	blunt := 0
	for _, r := range rows {
		half := (r.High - r.Low) / 2
		if r.Compared != validation.Wilson && half > 0.1*math.Abs(r.Published) {
			blunt++
			t.Logf("%s: %v ± %.2g", r.ID, r.Published, half)
		}
	}
	if most := len(rows) / 12; blunt > most {
		t.Errorf("%d of %d rows are blunter than a tenth of their value, want at most %d", blunt, len(rows), most)
	}
}

func TestRowsAreDescribed(t *testing.T) {
	if testing.Short() {
		return // the suite takes half a minute: make storms
	}
	seen := map[string]bool{}
	for _, r := range rowsOf(t) {
		if seen[r.ID] || r.ID == "" || strings.ContainsAny(r.ID, " \n") {
			t.Errorf("ID %q is used twice, or none", r.ID)
		}
		seen[r.ID] = true
		if r.Source == "" || utf8.RuneCountInString(r.Source) > 120 {
			t.Errorf("%s: source %q", r.ID, r.Source)
		}
		if n := utf8.RuneCountInString(r.What); n == 0 || n > 66 {
			t.Errorf("%s: %q has %d letters, want at most 66", r.ID, r.What, n)
		}
		if r.Runs < 1 || r.Compared == validation.Mean && r.Runs < 30 || r.Compared == validation.Wilson && r.Runs < 20 {
			t.Errorf("%s: %d runs are too few for %q", r.ID, r.Runs, r.Compared)
		}
	}
}

// What people get wrong about the table of backoffs: which is best depends on what is counted.
func TestNoBackoffIsDoneFirstWithMostCalls(t *testing.T) {
	if testing.Short() {
		return // the suite takes half a minute: make storms
	}
	measured := map[string]float64{}
	for _, r := range rowsOf(t) {
		measured[r.ID] = r.Measured
	}
	for _, n := range []string{"100", "190"} {
		of := func(kind, what string) float64 { return measured["aws-backoff/"+n+"-"+kind+"/"+what] }
		for _, kind := range []string{"exponential", "equal", "full"} {
			if of("none", "time") >= of(kind, "time") || of("none", "calls") <= of(kind, "calls") {
				t.Errorf("%s clients: no backoff takes %v ms and %v calls, %s %v and %v", n, of("none", "time"),
					of("none", "calls"), kind, of(kind, "time"), of(kind, "calls"))
			}
		}
		if of("full", "calls") > of("exponential", "calls")/2 {
			t.Errorf("%s clients: full jitter makes %v calls, want less than half of %v", n, of("full", "calls"),
				of("exponential", "calls"))
		}
	}
}

func quick(id string) bool {
	return strings.HasPrefix(id, "aws-backoff/20-") || strings.HasPrefix(id, "ratio/") ||
		strings.HasPrefix(id, "sregym/") ||
		strings.HasPrefix(id, "little/exact/") || strings.HasPrefix(id, "minute/")
}

func same(model string) string { return model }

func TestSameRowsOnAnyNumberOfProcessors(t *testing.T) {
	if testing.Short() {
		return // the suite takes half a minute: make storms
	}
	procs := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(procs)
	alone, err := validation.RunSome(context.Background(), quick, same)
	if err != nil || len(alone) < 20 {
		t.Fatalf("%d rows, %v", len(alone), err)
	}
	runtime.GOMAXPROCS(5)
	together, err := validation.RunSome(context.Background(), quick, same)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(alone, together) {
		t.Error("five processors give other rows than one")
	}
}

// Other worlds than the published ones must not fit.
func TestAnotherWorldDoesNotFit(t *testing.T) {
	if testing.Short() {
		return // the suite takes half a minute: make storms
	}
	for _, tt := range []struct{ id, was, is string }{
		{"m-m-1-k/0.9-10/", "limit: 9", "limit: 10"},
		{"erlang-b/8-10-constant", "workers: 10", "workers: 11"},
		{"patience/1.5-1-1", "maxWait: 100ms", "maxWait: 110ms"},
		{"attempts/4-0.5/", "errorRate: 0.5", "errorRate: 0.51"},
		{"chain/3-3-1/", "maxRetries: 2", "maxRetries: 3"},
		{"budget/call-0.5/", "ratio: 0.1", "ratio: 0.11"},
		{"breaker/20-10-0.4/", "failureRateThreshold: 0.5", "failureRateThreshold: 0.55"},
		{"aws-backoff/20-equal/", "jitter: equal", "jitter: full"},
		{"sregym/before", "maxRetries: 2", "maxRetries: 1"},
		{"sregym/before", "attemptTimeout: 750ms", "attemptTimeout: 20s"},
		{"hotos/140-2", "rate: 140", "rate: 155"},
		{"outage/attempts", "initialDelay: 1s", "initialDelay: 999ms"},
		{"minute/exponential/", "backoff: exponential", "backoff: linear"},
		{"pool/connects", "max: 100", "max: 101"},
		{"gate/erlang-b/exponential", "maxConcurrency: 10", "maxConcurrency: 11"},
		{"gate/m-m-1-k", "maxQueue: 9", "maxQueue: 10"},
		{"token-bucket/20-50", "burst: 50", "burst: 53"},
		{"sre-21/throttle-2-400", "k: 2", "k: 2.1"},
		{"codel/drops", "interval: 100ms", "interval: 110ms"},
		{"threads/100", "workers: 200", "workers: 204"},
	} {
		changed := false
		rows, err := validation.RunSome(context.Background(), func(id string) bool {
			return strings.HasPrefix(id, tt.id)
		}, func(model string) string {
			changed = strings.Contains(model, tt.was)
			return strings.Replace(model, tt.was, tt.is, 1)
		})
		if err != nil || !changed {
			t.Fatalf("%s: %v; changed: %v", tt.id, err, changed)
		}
		fitting := 0
		for _, r := range rows {
			if r.Pass {
				fitting++
			}
		}
		if fitting == len(rows) {
			t.Errorf("%s: all %d rows fit %s as well as %s", tt.id, len(rows), tt.is, tt.was)
		}
	}
}

func TestStopsWhenToldTo(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	calls := 0
	rows, err := validation.Run(ctx, func(int, int) {
		calls++
		cancel(why)
	})
	if rows != nil || !errors.Is(err, why) || calls == 0 {
		t.Errorf("%d rows, %v after %d reports; want none and the cause", len(rows), err, calls)
	}
}

func TestBrokenModelIsNamed(t *testing.T) {
	_, err := validation.RunSome(context.Background(), func(id string) bool {
		return strings.HasPrefix(id, "minute/")
	}, func(string) string { return "duration: 1 minute" })
	if err == nil || !strings.Contains(err.Error(), "minute/fixed/attempts") ||
		!strings.Contains(err.Error(), "minute/linear/attempts") {
		t.Errorf("%v, want all experiments that cannot be run", err)
	}
}

func TestTableIsNarrowAndCounts(t *testing.T) {
	if testing.Short() {
		return // the suite takes half a minute: make storms
	}
	rows := append([]validation.Row(nil), rowsOf(t)...)
	rows[3].Pass = false
	rows[4].Pass, rows[4].Low, rows[4].High = false, math.Inf(1), math.Inf(-1)
	var b bytes.Buffer
	if err := validation.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if utf8.RuneCountInString(line) > 120 {
			t.Errorf("%q is wider than 120 columns", line)
		}
	}
	for _, want := range []string{
		"\nFAIL " + rows[3].What, rows[3].ID + ": values from ", rows[4].ID + ": some run had nothing to measure",
		"of " + number(len(rows)) + " published numbers fit.\n", "\n" + rows[0].Source + "\n", "1140000", "> 0.",
		"\nTried, not matched, and not counted\nDecorrelated",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table has no %q", want)
		}
	}
	if err := validation.Write(full{}, rows); err == nil {
		t.Error("a table that cannot be written is no error")
	}
}

// full is a writer that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }
