package exporter

import (
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
		set(t, l.Overall, "    timeout: %s", time.Duration.String)
		set(t, l.PerTry, "    attemptTimeout: %s", time.Duration.String)
		policyRetries(t, l)
		policyBudget(t, &l.Budget)
		policyBreaker(t, &l.Breaker)
		if n := l.Limits.Requests.Or(0); n > 0 && n < topology.Unbounded {
			t.line("    bulkhead: {maxConcurrentCalls: %d}", n)
		}
		if e := &l.Ejection; e.Consecutive.Or(0) > 0 && len(r.URLs) > 1 {
			t.line("    outlierDetection: {consecutiveFailures: %d, baseEjectionTime: %s}", e.Consecutive.V,
				max(time.Second, e.Base.Or(30*time.Second)))
		}
		if n := l.Hedge.Copies.Or(0); n > 0 {
			t.line("    hedge: {maxHedges: %d, delay: %s}", min(3, n), max(time.Millisecond, l.Hedge.Delay.Or(l.PerTry.Or(0))))
		}
	}
	return []byte(t.String())
}

func quoted(texts []string) string {
	all := make([]string, len(texts))
	for i, s := range texts {
		all[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(all, ", ")
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
	if methods := Listed(l); len(methods) > 0 {
		t.line("    retryMethods: [%s]", strings.Join(methods, ", "))
	} else if !safeOnly {
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
	t.line("    initialDelay: %s", first)
	if m := b.Max.Or(0); m >= first {
		t.line("    maxDelay: %s", m)
	}
	switch word := b.Jitter.Or("none"); {
	case word == "none", word == "equal":
		t.line("    jitter: %s", word)
	case strings.HasPrefix(word, "±"):
		least, longest := b.Wait(1)
		t.line("    jitter: factor")
		t.line("    jitterFactor: %g", math.Round(1000*float64(longest-least)/2/float64(first))/1000)
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
		t.line("    retryBudget: {ratio: %g, reserve: %g}", min(1, max(0.0001, ratio)), b.PerSecond.Or(0))
	}
}

func policyBreaker(t *text, b *topology.Breaker) {
	ratio, byRatio := b.FailureRatio.Get()
	row, inRow := b.Consecutive.Get()
	if !byRatio && !inRow {
		return
	}
	t.line("    circuitBreaker:")
	if byRatio {
		t.line("      failureRateThreshold: %g", min(1, ratio))
	}
	if inRow {
		t.line("      failureThreshold: %d", row)
	}
	set(t, b.MinimumCalls, "      minimumNumberOfCalls: %s", show)
	switch {
	case b.WindowCalls.Or(0) > 0:
		t.line("      slidingWindow: %d", b.WindowCalls.V)
	case b.Window.Or(0) > 0:
		t.line("      slidingWindow: %s", b.Window.V)
	}
	set(t, b.OpenFor, "      waitDurationInOpenState: %s", time.Duration.String)
}
