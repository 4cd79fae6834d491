package abateredis

import (
	"time"

	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/ratelimit"
)

// For tests of what reads answers and messages that anybody may have made.

func ParseTaken(v any, need, want, burst int64) (tokens, left int64, err error) {
	r, err := parseTaken(v, need, want, 0, burst)
	return r.tokens, r.left, err
}

func ParseCount(v any, least, most int64) (int64, error) { return parseCount(v, least, most) }
func ParseBegun(v any) (idempotency.Begun, error)        { return parseBegun(v) }
func Message(instance, g string, w time.Duration) string { return finding{instance, g, w}.message() }
func KeyOf(prefix string, parts ...string) string {
	return (&link{config: Config{Prefix: prefix}}).key(digest(parts...), "")
}

// ParseFinding returns what a message says.
func ParseFinding(message string) (instance, guard string, wait time.Duration, ok bool) {
	f, ok := parseFinding(message)
	return f.instance, f.guard, f.wait, ok
}

// ID is what an instance calls itself.
func ID(f *Fleet) string { return f.id }

// MaxName and MaxSlots are bounds.
const (
	MaxName  = maxName
	MaxSlots = maxSlots
)

// FillTable puts n buckets in a table and returns its places, and whether each bucket was there right after.
func FillTable(maxKeys int, n uint64) (places, buckets int, found bool) {
	table := newTable(maxKeys)
	found = true
	for i := range n {
		id := identity{a: i * 0x9e3779b97f4a7c15, b: i}
		b := table.add(id, [16]byte{})
		found = found && table.find(id) == b && table.add(id, [16]byte{}) == b
	}
	return len(*table.sets.Load()) * setSize, table.n, found
}

// KeepDebts has a bucket that owes, and one more than n of others, at one place in a table. It reports whether the debt
// is still found, and that of a second one is not, which owes nothing.
func KeepDebts(n uint64) (owing, paid bool) {
	table := newTable(0)
	terms := ratelimit.NewTerms(ratelimit.Config{Limit: ratelimit.Rate{Tokens: 0.00001, Per: 24 * time.Hour}, Burst: 10})
	l := &Limiter{buckets: new(buckets), terms: terms}
	ids := [2]identity{{a: 0, b: 1}, {a: 0, b: 2}}
	for i, id := range ids {
		b := table.add(id, [16]byte{})
		b.lease.Answered(0, terms, ratelimit.Question{}, 0, 10*ratelimit.Micro, true, 0) // long ago
		b.by.Store(l)
		b.lease.Alone(0, terms, int64(1-i)*ratelimit.Micro, 1, 0)
	}
	for i := range n + 1 {
		b := table.add(identity{a: 0, b: 3 + i}, [16]byte{})
		b.lease.Answered(time.Duration(i+1), terms, ratelimit.Question{}, 0, 0, true, 0)
	}
	return table.find(ids[0]) != nil, table.find(ids[1]) != nil
}

// BudgetText is the script of the retry budget, TakeText that of a rate limit.
var BudgetText, TakeText = budgetText, takeText

// SameWay reports whether two configurations lead to the same Redis in the same way.
func SameWay(a, b Config) bool { return a.withDefaults().same(b.withDefaults()) }
