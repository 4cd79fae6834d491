package tracedraw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// drawing is the spans of a trace as lines, from top to bottom.
type drawing struct {
	trace string
	begin int64
	took  time.Duration
	lines []line
}

// line is a span, or a wait between two attempts.
type line struct {
	depth        int
	label, about string
	from, to     time.Duration // since the beginning of the trace
	wait, failed bool
}

// choose returns the spans of a trace whose id begins with prefix; without one, of the trace with the most attempts,
// and of several the first.
func choose(all []*span, prefix string) ([]*span, error) {
	attempts, first := map[string]int{}, map[string]int{}
	var traces []string
	for i, s := range all {
		if !strings.HasPrefix(s.trace, prefix) {
			continue
		}
		if attempts[s.trace]++; attempts[s.trace] == 1 {
			first[s.trace] = i
			traces = append(traces, s.trace)
		}
	}
	if len(traces) == 0 {
		return nil, fmt.Errorf("no trace has an id that begins with %q; the first is %s", prefix, all[0].trace)
	}
	chosen := slices.MaxFunc(traces, func(a, b string) int {
		return cmp.Or(cmp.Compare(attempts[a], attempts[b]), cmp.Compare(first[b], first[a]))
	})
	return slices.DeleteFunc(slices.Clone(all), func(s *span) bool { return s.trace != chosen }), nil
}

// draw puts the spans of one trace in order.
func draw(spans []*span) drawing {
	byID := map[string]*span{}
	for _, s := range spans {
		byID[s.id] = s
	}
	d := drawing{trace: spans[0].trace, begin: spans[0].begin}
	end := spans[0].end
	var roots []*span
	for _, s := range spans {
		d.begin, end = min(d.begin, s.begin), max(end, s.end)
		if above := byID[s.parent]; above != nil && above != s {
			above.below = append(above.below, s)
		} else {
			roots = append(roots, s)
		}
	}
	d.took = time.Duration(end - d.begin)
	d.add(roots, 0, map[*span]bool{})
	return d
}

// add adds spans of one depth, those below each, and the waits before a repeat.
func (d *drawing) add(spans []*span, depth int, seen map[*span]bool) {
	slices.SortStableFunc(spans, func(a, b *span) int { return cmp.Compare(a.begin, b.begin) })
	var last *span
	for _, s := range spans {
		if seen[s] { // spans that are each other's parents
			continue
		}
		seen[s] = true
		if again := s.attributes["http.request.resend_count"]; again != "" && last != nil && s.begin > last.end {
			d.lines = append(d.lines, line{depth: depth, label: "wait", wait: true, from: d.since(last.end),
				to: d.since(s.begin), about: round(time.Duration(s.begin - last.end))})
		}
		d.lines = append(d.lines, line{depth: depth, label: label(s), about: about(s), failed: s.failed,
			from: d.since(s.begin), to: d.since(s.end)})
		d.add(s.below, depth+1, seen)
		last = s
	}
}

func (d *drawing) since(at int64) time.Duration { return time.Duration(at - d.begin) }

// label names a span: an attempt by its number and its endpoint.
func label(s *span) string {
	n := s.attributes["abate.attempt"]
	if n == "" {
		return s.name
	}
	what := "attempt " + n
	if s.attributes["abate.hedge"] != "" {
		what = "hedge " + n
	}
	if at := s.attributes["server.address"]; at != "" {
		what += " to " + at
		if port := s.attributes["server.port"]; port != "" {
			what += ":" + port
		}
	}
	return what
}

// about is what came of a span.
func about(s *span) string {
	words := []string{round(time.Duration(s.end - s.begin))}
	if code := s.attributes["rpc.grpc.status_code"]; code != "" {
		words = append(words, "grpc "+code)
	} else if status := s.attributes["http.response.status_code"]; status != "" {
		words = append(words, status)
	}
	what := s.attributes["error.type"]
	if _, isStatus := s.attributes["http.response.status_code"]; what != "" && (!isStatus || len(what) > 3) {
		words = append(words, what)
	}
	if reason := s.attributes["abate.reason"]; reason != "" {
		words = append(words, reason)
	}
	if n := s.attributes["abate.attempts"]; n != "" && n != "1" {
		words = append(words, n+" attempts")
	}
	return strings.Join(words, ", ")
}

// round is d with three digits.
func round(d time.Duration) string {
	unit := time.Nanosecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}
