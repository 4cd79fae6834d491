package exporter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/topology"
)

// Kind says how much of a setting survives a change of format.
type Kind string

// The kinds of a Row.
const (
	Exact        Kind = "exact"
	Approximated Kind = "approximated" // the other format says something else that is near
	Dropped      Kind = "dropped"      // the other format cannot say it, or has no word for it here
	Added        Kind = "added"        // the other program does it although the policy does not say so
)

// Row is one setting in a loss report.
type Row struct {
	Setting string `json:"setting"` // "tries of 502, 503 (safe methods)", "attempt timeout"
	Kind    Kind   `json:"kind"`
	Before  string `json:"before,omitempty"`
	After   string `json:"after,omitempty"`
}

// String is the row in one line.
func (r Row) String() string {
	switch r.Kind {
	case Exact:
		return fmt.Sprintf("%s: %s", r.Setting, r.Before)
	case Dropped:
		return fmt.Sprintf("%s: %s is dropped", r.Setting, r.Before)
	case Added:
		return fmt.Sprintf("%s: %s is added", r.Setting, r.After)
	}
	return fmt.Sprintf("%s: %s becomes %s", r.Setting, r.Before, r.After)
}

// Compare says what becomes of each setting of a layer when another stands in its place: that of what was written, read
// again. Rows stand in the order in which a call meets the settings.
func Compare(before, after *topology.Layer) []Row {
	c := &comparison{}
	c.tries(before, after)
	c.methods(before, after)
	value(c, "attempt timeout", before.PerTry, after.PerTry)
	value(c, "timeout", before.Overall, after.Overall)
	value(c, "connect timeout", before.Connect, after.Connect)
	if n, _ := Tries(before); n > 1 {
		value(c, "first delay", before.Backoff.First, after.Backoff.First)
		value(c, "longest delay", before.Backoff.Max, after.Backoff.Max)
		value(c, "multiplier", before.Backoff.Multiplier, after.Backoff.Multiplier)
		value(c, "jitter", before.Backoff.Jitter, after.Backoff.Jitter)
		value(c, "Retry-After obeyed", before.Backoff.RetryAfter, after.Backoff.RetryAfter)
		c.budget(&before.Budget, &after.Budget)
		value(c, "retry budget, window", before.Budget.Window, after.Budget.Window)
		value(c, "retry budget, per second", before.Budget.PerSecond, after.Budget.PerSecond)
		value(c, "retries at once", before.Budget.Concurrent, after.Budget.Concurrent)
	}
	c.addAny("breaker", adaptive(&before.Breaker), adaptive(&after.Breaker))
	value(c, "breaker, failure rate", before.Breaker.FailureRatio, after.Breaker.FailureRatio)
	value(c, "breaker, failures in a row", before.Breaker.Consecutive, after.Breaker.Consecutive)
	value(c, "breaker, least calls", before.Breaker.MinimumCalls, after.Breaker.MinimumCalls)
	value(c, "breaker, window", before.Breaker.Window, after.Breaker.Window)
	value(c, "breaker, window of calls", before.Breaker.WindowCalls, after.Breaker.WindowCalls)
	value(c, "breaker, slow from", before.Breaker.SlowerThan, after.Breaker.SlowerThan)
	value(c, "breaker, time open", before.Breaker.OpenFor, after.Breaker.OpenFor)
	value(c, "ejection, failures in a row", before.Ejection.Consecutive, after.Ejection.Consecutive)
	value(c, "ejection, time", before.Ejection.Base, after.Ejection.Base)
	value(c, "ejection, share at most", before.Ejection.MaxShare, after.Ejection.MaxShare)
	value(c, "requests at once", before.Limits.Requests, after.Limits.Requests)
	value(c, "requests that wait", before.Limits.Pending, after.Limits.Pending)
	value(c, "connections at once", before.Limits.Connections, after.Limits.Connections)
	value(c, "hedges", before.Hedge.Copies, after.Hedge.Copies)
	value(c, "delay of hedges", before.Hedge.Delay, after.Hedge.Delay)
	value(c, "ends when its caller leaves", before.Cancels, after.Cancels)
	value(c, "retry owner", before.Owner, after.Owner)
	return c.rows
}

type comparison struct{ rows []Row }

// budget compares retries for a first try. Envoy counts retries in flight for one request in flight, which is no rate.
func (c *comparison) budget(before, after *topology.Budget) {
	b, a := word(before.Ratio), word(after.Ratio)
	if s := word(before.Share); b == "" && s != "" {
		b = s + " of requests in flight"
	}
	if s := word(after.Share); a == "" && s != "" {
		a = s + " of requests in flight"
	}
	c.addAny("retry budget", b, a)
}

// adaptive names a breaker that needs no numbers.
func adaptive(b *topology.Breaker) string {
	if !b.InsideRetry.IsZero() && b.Consecutive.IsZero() && b.FailureRatio.IsZero() {
		return "adaptive"
	}
	return ""
}

// addAny adds a row where one side has something.
func (c *comparison) addAny(setting, before, after string) {
	if before != "" || after != "" {
		c.add(setting, before, after)
	}
}

func (c *comparison) add(setting, before, after string) {
	kind := Approximated
	switch {
	case before == after:
		kind = Exact
	case after == "":
		kind = Dropped
	case before == "":
		kind = Added
	}
	c.rows = append(c.rows, Row{setting, kind, before, after})
}

// value compares one setting. What neither side has is no row; a limit of "none" is nothing to have.
func value[T topology.Scalar](c *comparison, setting string, before, after topology.Value[T]) {
	c.addAny(setting, word(before), word(after))
}

func word[T topology.Scalar](v topology.Value[T]) string {
	got, ok := v.Get()
	if !ok {
		if v.IsUnknown() {
			return "unknown"
		}
		return ""
	}
	text := topology.Assume(got, "").String()
	text, _, _ = strings.Cut(text, " (")
	if text == "none" || text == "unbounded" || text == "0" || text == "false" {
		return ""
	}
	return text
}

// methods compares which requests are repeated once they were sent, where one side lists their methods. The other may
// only tell kinds of methods apart.
func (c *comparison) methods(before, after *topology.Layer) {
	b, a := Listed(before), Listed(after)
	if len(b)+len(a) == 0 {
		return
	}
	c.add("methods repeated", methodWords(before, b), methodWords(after, a))
}

func methodWords(l *topology.Layer, listed []string) string {
	if len(listed) > 0 && !everyMethod(listed) {
		return strings.Join(listed, ", ")
	}
	words := ""
	for _, r := range l.Repeats {
		if r.Tries.Or(1) > 1 && slices.ContainsFunc(r.On, sent) {
			if r.Methods != topology.Safe {
				return "all methods"
			}
			words = "all safe methods"
		}
	}
	return words
}

// everyMethod reports whether a list has all methods that clients use.
func everyMethod(listed []string) bool {
	for _, m := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH"} {
		if !slices.Contains(listed, m) {
			return false
		}
	}
	return true
}

// sent reports whether an outcome is that of a request of HTTP that was sent.
func sent(o topology.Outcome) bool {
	return o != topology.Refused && o != topology.ResetUnsent && !o.GRPC()
}

// tries compares how often each outcome is tried. Outcomes with the same two numbers share a row.
func (c *comparison) tries(before, after *topology.Layer) {
	type pair struct {
		b, a int
		m    topology.Methods
	}
	var order []pair
	names := map[pair][]string{}
	for _, m := range []topology.Methods{topology.Safe, topology.Unsafe} {
		for _, o := range topology.AllOutcomes() {
			p := pair{before.Tries(o, m).N, after.Tries(o, m).N, m}
			if p.b == 1 && p.a == 1 {
				continue
			}
			if len(names[p]) == 0 {
				order = append(order, p)
			}
			names[p] = append(names[p], o.String())
		}
	}
	for _, p := range order {
		other := pair{p.b, p.a, p.m ^ topology.AllMethods}
		if alike := slices.Equal(names[p], names[other]); !alike {
			c.add(fmt.Sprintf("tries of %s (%s methods)", listed(names[p]), p.m), tries(p.b), tries(p.a))
		} else if p.m == topology.Safe {
			c.add("tries of "+listed(names[p])+" (all methods)", tries(p.b), tries(p.a))
		}
	}
}

// listed names outcomes, or if they are nearly all, those that are missing.
func listed(names []string) string {
	var missing []string
	for _, o := range topology.AllOutcomes() {
		if !slices.Contains(names, o.String()) {
			missing = append(missing, o.String())
		}
	}
	switch {
	case len(missing) == 0:
		return "every failure"
	case len(missing) <= 3:
		return "every failure but " + strings.Join(missing, ", ")
	}
	return strings.Join(names, ", ")
}

// tries is empty for one try: nothing is repeated.
func tries(n int) string {
	if n == 1 {
		return ""
	}
	if n == topology.Unbounded {
		return "unbounded"
	}
	return fmt.Sprint(n)
}
