package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/topology"
)

// refusals are the exceptions that resilience4j's breaker throws when it is open: its own, and those that it
// extends.
var refusals = []string{"CallNotPermittedException", "RuntimeException", "Exception", "Throwable"}

// heedsBreaker reports whether the retries of a layer end when its breaker refuses a try, so that nothing sleeps in
// vain.
func heedsBreaker(l *topology.Layer) bool {
	switch l.Product {
	case "dapr": // it takes the refusal for an error that stays
		return true
	case "resilience4j": // it repeats the exceptions that are listed, and all if none is
		return !slices.ContainsFunc(l.Repeats, func(r topology.Repeat) bool {
			last := r.Word[strings.LastIndexByte(r.Word, '.')+1:]
			return !strings.HasSuffix(last, "Exception") && last != "Throwable" || slices.Contains(refusals, last)
		})
	}
	return false
}

// Sooner says of a factor of a path what may end its tries before all of them are made, "" if nothing does: a breaker
// of the same layer that its retries obey.
func Sooner(f Factor) string {
	if !(f.Times > 1) {
		return ""
	}
	n := topology.Unbounded
	if f.Times < float64(n) {
		n = int(f.Times)
	}
	return strings.TrimPrefix(untilBreaker(f.Layer, n), ", ")
}

// untilBreaker says of a layer of n tries that its breaker ends them sooner where every try fails. Where some succeed
// in between, of this or of other calls, it does not open.
func untilBreaker(l *topology.Layer, n int) string {
	row, known := l.Breaker.Consecutive.Get()
	if !known || row < 1 || row >= n || !l.Breaker.InsideRetry.Or(false) || !heedsBreaker(l) {
		return ""
	}
	many := plural(row, "failure", "failures")
	return fmt.Sprintf(", unless its breaker sees %s in a row, which ends the tries", many)
}
