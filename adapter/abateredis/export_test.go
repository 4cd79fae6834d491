package abateredis

import (
	"math"
	"time"

	"github.com/abate-go/abate/inbound"
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
	l := &Limiter{buckets: new(buckets)}
	ids := [2]identity{{a: 0, b: 1}, {a: 0, b: 2}}
	for i, id := range ids {
		b := table.add(id, [16]byte{})
		b.known.Store(new(known)) // an answer from long ago
		b.local.by.Store(l)
		b.local.share.Begin(0, 10*micro, 0, 10*micro)
		b.local.share.Take(0, float64((1-i)*micro))
	}
	for i := range n + 1 {
		table.add(identity{a: 0, b: 3 + i}, [16]byte{}).known.Store(&known{at: time.Duration(i + 1)})
	}
	return table.find(ids[0]) != nil, table.find(ids[1]) != nil
}

// Crowd is how many instances one believes in after each of what it saw: what Redis counted, 0 for no answer.
func Crowd(every time.Duration, counted ...int64) (believed []int64) {
	var c census
	for i, n := range counted {
		c.count(time.Duration(i)*every, n)
		believed = append(believed, c.seen.Load())
	}
	return believed
}

// BudgetText is the script of the retry budget.
var BudgetText = budgetText

// SameWay reports whether two configurations lead to the same Redis in the same way.
func SameWay(a, b Config) bool { return a.withDefaults().same(b.withDefaults()) }

// LandBatches has n batches of 100 tokens come out of a bucket that holds that many, while somebody else decides about
// next to nothing. It returns the least and the most tokens that were said to remain.
func LandBatches(tokens int64, n int) (least, most int64) {
	l := &Limiter{
		buckets: new(buckets), limit: newLimit(inbound.ArrivalLimit{
			Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 1, Per: time.Hour}, Burst: int(2 * tokens)},
		}),
	}
	b := new(bucket)
	b.nextAsk.Store(math.MaxInt64)
	batch := func(i int) {
		l.answer(0, question{limiter: l, bucket: b, want: 100 * micro}, taken{
			tokens: 100 * micro, left: (tokens - 100*int64(i)) * micro,
		})
	}
	batch(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 2; i <= n; i++ {
			batch(i)
		}
	}()
	least, most = tokens, 0
	for {
		select {
		case <-done:
			return least, most
		default:
		}
		if d, ok := l.decide(b, 1, 1); ok {
			least, most = min(least, d.Remaining), max(most, d.Remaining)
		}
	}
}
