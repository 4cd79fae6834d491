package engine

import "slices"

// parents finds the span that each span is part of; those that began earlier stand before it, the request itself first.
// A service goes on after its caller has left, so that a span may begin and end after the one it belongs to. What ended
// at the very moment it began shows which one that is; else it is the latest that fits.
func parents(spans []Span, callers map[string][]string) []int {
	n := len(spans)
	f := family{spans: spans, parents: make([]int, n), begun: make([]bool, n), followed: make([]bool, n), callers: callers}
	for i := 1; i < len(spans); i++ {
		switch spans[i].Kind {
		case "call":
			f.parents[i] = f.ofCall(i)
		case "attempt", "backoff":
			f.parents[i] = f.ofAttempt(i)
		default:
			f.parents[i] = f.ofWork(i)
		}
	}
	return f.parents
}

// family is what is known of the spans of one request.
type family struct {
	spans    []Span
	parents  []int
	begun    []bool              // attempts whose wait or work has been found
	followed []bool              // calls, attempts and waits between them, whose next step has been found
	callers  map[string][]string // of each service
}

// ofCall finds the attempt, or the request, for whose work a call is made.
func (f *family) ofCall(i int) int {
	s, latest := &f.spans[i], 0
	for j := i - 1; j >= 0; j-- {
		before := &f.spans[j]
		switch before.Kind {
		case "queue", "work", "call":
			p := f.parents[j]
			if before.To == s.From && slices.Contains(f.callers[s.Where], f.spans[p].Where) {
				return p
			}
		case "attempt", "request":
			if latest == 0 && slices.Contains(f.callers[s.Where], before.Where) {
				latest = j
			}
		}
	}
	return latest
}

// ofAttempt finds the call that an attempt, or a wait before one, is made for.
func (f *family) ofAttempt(i int) int {
	s, latest := &f.spans[i], 0
	for j := i - 1; j >= 0; j-- {
		before, call := &f.spans[j], j
		exact := before.Kind == "call" && before.From == s.From
		if before.Kind == "attempt" || before.Kind == "backoff" {
			call, exact = f.parents[j], before.To == s.From
		}
		if f.spans[call].Kind != "call" || f.spans[call].Where != s.Where || f.spans[call].To < s.From {
			continue
		}
		if exact && !f.followed[j] { // of two that ended at the same moment, each goes on once
			f.followed[j] = true
			return call
		}
		if latest == 0 {
			latest = call
		}
	}
	return latest
}

// ofWork finds the attempt for which a request waits at a service, or is worked on.
func (f *family) ofWork(i int) int {
	s, latest := &f.spans[i], 0
	for j := i - 1; j >= 0; j-- {
		before := &f.spans[j]
		switch before.Kind {
		case "gate", "queue", "call":
			// Work follows a wait, or, where calls come first, the last of them; a wait follows the one at the gate.
			p := f.parents[j]
			follows := (s.Kind == "work" || before.Kind == "gate") && before.To == s.From
			if follows && f.spans[p].Kind == "attempt" && f.spans[p].Where == s.Where {
				return p
			}
		case "attempt":
			if before.Where == s.Where && !f.begun[j] && (latest == 0 || before.From == f.spans[latest].From) {
				latest = j // of several sent at the same moment, the first
			}
		}
	}
	f.begun[latest] = true
	return latest
}
