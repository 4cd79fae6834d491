package exporter

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// Policy writes a policy file of Abate with a service for each route. Retry budget and circuit breaker are those of
// Abate's defaults where the route has none: leaving them out is what makes storms.
func Policy(routes []Route) []byte {
	t := &text{}
	t.line("services:")
	for i := range routes {
		r := &routes[i]
		l := &r.Layer
		t.line("  %q:", r.Service)
		if len(r.URLs) > 0 {
			t.line("    upstreams: [%s]", quoted(r.URLs))
		}
		policyLimits(t, l)
		policyRetries(t, l)
		policyBudget(t, &l.Budget)
		policyBreaker(t, &l.Breaker)
		if n := l.Limits.Requests.Or(0); n > 0 && n < topology.Unbounded {
			t.line("    bulkhead: {maxConcurrentCalls: %d}", min(most, n))
		}
		if e := &l.Ejection; e.Consecutive.Or(0) > 0 && len(r.URLs) > 1 {
			t.line("    outlierDetection: {consecutiveFailures: %d, baseEjectionTime: %s}", min(most, e.Consecutive.V),
				within(10*time.Millisecond, e.Base.Or(30*time.Second), time.Hour))
		}
		policyHedge(t, l)
	}
	return []byte(t.String())
}

// most is the largest number of calls, or of failures, that a policy file takes.
const most = 1_000_000

// within returns what is nearest to a value in a range of the policy file.
func within[T cmp.Ordered](least, v, most T) T { return min(max(least, v), most) }

func quoted(texts []string) string {
	all := make([]string, len(texts))
	for i, s := range texts {
		all[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(all, ", ")
}

// policyLimits writes the limits of a call and of an attempt, of which the second is at most the first. Where the first
// only forbids further tries, one that runs has the time that it had.
func policyLimits(t *text, l *topology.Layer) {
	overall, one := l.Overall, l.PerTry
	all, bounded := overall.Get()
	if each, ok := one.Get(); ok && bounded && all > 0 && each > all {
		if l.StartsOnly {
			overall.V = each
		} else {
			one.V = all
		}
	}
	day := func(d time.Duration) string { return min(d, 24*time.Hour).String() }
	set(t, overall, "    timeout: %s", day)
	set(t, one, "    attemptTimeout: %s", day)
}

// policyHedge writes copies, unless they would be sent when the attempt has ended.
func policyHedge(t *text, l *topology.Layer) {
	n, delay := l.Hedge.Copies.Or(0), within(time.Millisecond, l.Hedge.Delay.Or(l.PerTry.Or(0)), time.Hour)
	for _, limit := range []time.Duration{l.PerTry.Or(0), l.Overall.Or(0)} {
		if limit > 0 && limit < delay {
			return
		}
	}
	if n > 0 {
		t.line("    hedge: {maxHedges: %d, delay: %s}", min(3, n), delay)
	}
}

func policyRetries(t *text, l *topology.Layer) {
	tries, safeOnly := Tries(l)
	t.line("    maxRetries: %d", min(100, tries-1))
	if tries < 2 {
		return
	}
	if words := policyWords(l); len(words) > 0 {
		t.line("    retryOn: [%s]", quoted(words))
	}
	switch methods := Listed(l); {
	case slices.Equal(methods, []string{"GET", "HEAD", "OPTIONS", "TRACE"}): // as by default
	case len(methods) > 0:
		t.line("    retryMethods: [%s]", strings.Join(methods, ", "))
	case !safeOnly:
		t.line("    retryMethods: [GET, HEAD, OPTIONS, PUT, DELETE, POST, PATCH]")
	}
	b := &l.Backoff
	first := b.First.Or(0)
	if first < time.Millisecond {
		t.line("    backoff: none")
		return
	}
	if b.Multiplier.Or(1) <= 1 {
		t.line("    backoff: fixed")
	} else {
		t.line("    multiplier: %g", min(100, b.Multiplier.V))
	}
	first = min(first, time.Hour)
	t.line("    initialDelay: %s", first)
	const byDefault = 10 * time.Second
	if m := b.Max.Or(0); m >= first || first > byDefault {
		t.line("    maxDelay: %s", within(first, m, 24*time.Hour))
	}
	switch word := b.Jitter.Or("none"); {
	case word == "none", word == "equal":
		t.line("    jitter: %s", word)
	case strings.HasPrefix(word, "±"):
		least, longest := b.Wait(1)
		factor := math.Round(1000*float64(longest-least)/2/float64(first)) / 1000
		if factor == 0 {
			t.line("    jitter: none")
			break
		}
		t.line("    jitter: factor")
		t.line("    jitterFactor: %g", min(1, factor))
	}
}

// policyWords are the words of retryOn.
func policyWords(l *topology.Layer) []string {
	var words []string
	add := func(word string, on ...topology.Outcome) {
		if slices.ContainsFunc(on, func(o topology.Outcome) bool {
			return repeats(l, o)
		}) {
			words = append(words, word)
		}
	}
	add("connect-failure", topology.Refused)
	add("reset", topology.ResetUnsent, topology.ResetSent)
	add("timeout", topology.Hang)
	words = append(words, statuses(l)...)
	return append(words, codes(l)...)
}

func policyBudget(t *text, b *topology.Budget) {
	if ratio := share(b); ratio > 0 {
		t.line("    retryBudget: {ratio: %g, reserve: %g}", within(0.0001, ratio, 1), within(0, b.PerSecond.Or(0), most))
	}
}

func policyBreaker(t *text, b *topology.Breaker) {
	ratio, row := b.FailureRatio.Or(0), b.Consecutive.Or(0)
	if ratio <= 0 && row <= 0 {
		return
	}
	t.line("    circuitBreaker:")
	if ratio > 0 {
		t.line("      failureRateThreshold: %g", within(0.001, ratio, 1))
	}
	if row > 0 {
		t.line("      failureThreshold: %d", min(most, row))
	}
	const byDefault = 20
	calls := b.WindowCalls.Or(0)
	least := min(most, b.MinimumCalls.Or(0))
	if calls > 0 && (least > calls || least == 0 && calls < byDefault) {
		least = min(most, calls) // a window holds no more
	}
	if least > 0 {
		t.line("      minimumNumberOfCalls: %d", least)
	}
	switch {
	case b.WindowCalls.Or(0) > 0:
		t.line("      slidingWindow: %d", min(most, b.WindowCalls.V))
	case b.Window.Or(0) > 0:
		t.line("      slidingWindow: %s", within(10*time.Millisecond, b.Window.V, 24*time.Hour))
	}
	set(t, b.OpenFor, "      waitDurationInOpenState: %s", func(d time.Duration) string {
		return within(time.Millisecond, d, time.Hour).String()
	})
}
