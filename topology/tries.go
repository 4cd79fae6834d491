package topology

import (
	"strconv"
	"strings"
	"time"
)

// mostTries ends the count of tries that nothing but a deadline ends.
const mostTries = 1_000_000

// Count is a number of tries, the first one counted.
type Count struct {
	N     int     // 1 or more; Unbounded when nothing ends them
	Known bool    // false when a value it follows from is unknown; N is then the least that is certain
	By    *Repeat // the rule that allows them; nil when the call is not repeated
	// Cut reports that a limit of time allows fewer tries than the rule does.
	Cut bool
}

// Tries returns how many tries the layer makes at most of a call whose every try ends with o. m is the kind of the
// request, Safe or Unsafe. Caps that all calls share (budgets, breakers, limits) are not part of it.
func (l *Layer) Tries(o Outcome, m Methods) Count {
	c := Count{N: 1, Known: true}
	for i := range l.Repeats {
		r := &l.Repeats[i]
		if !r.About(o, m) {
			continue
		}
		n, ok := r.Tries.Get()
		if !ok {
			c.Known = c.Known && !r.Tries.IsUnknown()
			continue
		}
		if n > c.N {
			c.N, c.By = n, r
		}
	}
	if c.N == 1 {
		return c
	}
	if l.PerTry.IsUnknown() && o == Hang || l.Overall.IsUnknown() {
		c.Known, c.N = false, 1 // it may end the call, or not even one try
		return c
	}
	if n := l.inTime(o, c.N, c.By); n < c.N {
		c.N, c.Cut = n, true
	}
	return c
}

// About reports whether the rule says how often calls of kind m that end with o are tried.
func (r *Repeat) About(o Outcome, m Methods) bool {
	if r.Methods != 0 && r.Methods&m == 0 {
		return false
	}
	for _, on := range r.On {
		if on == o {
			return true
		}
	}
	return false
}

// inTime returns how many of n tries can begin before the layer's limits end the call. A try that hangs ends at its own
// limit; without one it never ends, and nothing is repeated. Others are taken to fail at once.
func (l *Layer) inTime(o Outcome, n int, by *Repeat) int {
	one := time.Duration(0)
	if o == Hang {
		if one = l.PerTry.Or(0); one == 0 {
			return 1
		}
	}
	overall := l.Overall.Or(0)
	if overall == 0 {
		return n
	}
	at := time.Duration(0)
	for i := 1; i < n; i++ {
		if i >= mostTries {
			return n
		}
		least, _ := l.wait(by, i)
		if at += one + least; at >= overall {
			return i
		}
		if one+least == 0 && i > 64 {
			return n // waits that may be nothing never use up the time
		}
	}
	return n
}

// Longest returns how long the layer keeps its caller waiting at most for a call whose every try ends with o, and
// reports whether anything ends it. Tries that do not hang are taken to fail at once.
func (l *Layer) Longest(o Outcome, m Methods) (time.Duration, bool) {
	overall := l.Overall.Or(0)
	ends := overall > 0 && !l.StartsOnly
	c := l.Tries(o, m)
	one := time.Duration(0)
	if o == Hang {
		one = l.PerTry.Or(0)
		if one == 0 || l.Beside.Or(false) {
			return overall, ends
		}
	}
	if c.N >= mostTries || c.Cut && ends {
		return overall, ends
	}
	total := time.Duration(0)
	for i := 1; i <= c.N; i++ {
		total += one
		if i < c.N {
			_, most := l.wait(c.By, i)
			total += most
		}
		if ends && total >= overall {
			return overall, true
		}
		if total < 0 {
			return 0, false
		}
		if l.StartsOnly && overall > 0 && total >= overall+one { // the last try begins before the limit
			return overall + one, true
		}
	}
	return total, true
}

// wait returns the shortest and the longest wait before the n-th retry that a rule allows.
func (l *Layer) wait(by *Repeat, n int) (least, most time.Duration) {
	if by != nil && !by.Wait.IsZero() {
		return by.Wait.Or(0), by.Wait.Or(0)
	}
	return l.Backoff.Wait(n)
}

// Wait returns the shortest and the longest wait before the n-th retry, n from 1.
func (b *Backoff) Wait(n int) (least, most time.Duration) {
	first := b.First.Or(0)
	if first == 0 {
		return 0, 0
	}
	limit, factor := b.Max.Or(0), b.Multiplier.Or(1)
	wait := float64(first)
	for i := 1; i < n && factor > 1 && wait < float64(time.Hour*24*365); i++ {
		wait *= factor
		if limit > 0 && wait >= float64(limit) {
			break
		}
	}
	if limit > 0 && wait > float64(limit) {
		wait = float64(limit)
	}
	low, high := jitter(b.Jitter.Or("none"))
	return time.Duration(wait * low), time.Duration(wait * high)
}

// jitter reads a kind of jitter as the shares of the wait that it draws between. A word that nobody knows counts as
// full jitter, which bounds every kind that draws below the wait.
func jitter(word string) (low, high float64) {
	switch word {
	case "none", "":
		return 1, 1
	case "equal":
		return 0.5, 1
	}
	if share, ok := strings.CutPrefix(word, "±"); ok {
		if p, err := strconv.ParseFloat(strings.TrimSuffix(share, "%"), 64); err == nil && p >= 0 && p <= 100 {
			return 1 - p/100, 1 + p/100
		}
	}
	return 0, 1
}

// Gives returns what the layer's caller sees when its last try ended with o.
func (l *Layer) Gives(o Outcome) Outcome {
	for _, a := range l.Answers {
		if a.After == o {
			return a.Gives
		}
	}
	return o
}
