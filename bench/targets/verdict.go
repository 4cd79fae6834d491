package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// verdict says what became of one promise.
type verdict string

const (
	kept    verdict = "ok"
	missed  verdict = "MISS"
	notRun  verdict = "not run"
	noPeer  verdict = "no peer ran"
	forInfo verdict = "-"
)

// line is one printed row: a promise and what the run says about it. A ratio of 0
// and an empty peer mean that there was nothing to compare.
type line struct {
	promise
	time, allocs float64
	peer         string
	peerTime     float64
	ratio        float64
	verdict      verdict
}

// judge compares every promise with the run.
func judge(promises []promise, run results) []line {
	lines := make([]line, len(promises))
	for i, p := range promises {
		lines[i] = p.judge(run)
	}
	return lines
}

func (p promise) judge(run results) line {
	l := line{promise: p, verdict: notRun}
	if p.byTurns {
		return p.judgeTurns(run)
	}
	floorTime, floorAllocs := 0.0, 0.0
	if p.floor != "" {
		var ran bool
		if floorTime, ran = run.median(p.floor, "ns/op"); !ran {
			return l
		}
		floorAllocs, _ = run.median(p.floor, "allocs/op")
	}
	time, ran := run.median(p.ours, "ns/op")
	if !ran {
		return l
	}
	allocs, _ := run.median(p.ours, "allocs/op")
	l.time, l.allocs = time-floorTime, allocs-floorAllocs
	l.peer, l.peerTime = fastest(p.peers, run)
	if l.peer == "" {
		l.verdict = noPeer
		return l
	}
	l.peerTime -= floorTime
	l.ratio = l.time / l.peerTime
	l.verdict = p.weigh(l)
	return l
}

// judgeTurns is judge for a row that measured both sides.
func (p promise) judgeTurns(run results) line {
	l := line{promise: p, verdict: notRun}
	var ran bool
	if l.ratio, ran = run.median(p.ours, "cpu-ratio"); !ran {
		return l
	}
	l.time, _ = run.median(p.ours, "cpu-ns/op")
	l.peerTime, _ = run.median(p.ours, "peer-cpu-ns/op")
	l.peer = p.peers[0]
	l.verdict = p.weigh(l)
	return l
}

// weigh gives the verdict on a line whose numbers are known.
func (p promise) weigh(l line) verdict {
	switch {
	case p.limit == 0 && p.allocs == anyNumber:
		return forInfo
	case p.limit != 0 && !(l.ratio <= p.limit): // written so that a NaN is a miss
		return missed
	case p.allocs != anyNumber && l.allocs > p.allocs:
		return missed
	}
	return kept
}

// fastest returns the row with the least time of those that ran.
func fastest(names []string, run results) (best string, least float64) {
	for _, name := range names {
		if t, ran := run.median(name, "ns/op"); ran && (best == "" || t < least) {
			best, least = name, t
		}
	}
	return best, least
}

// allMet reports whether no promise was missed and none went unmeasured.
func allMet(lines []line) bool {
	for _, l := range lines {
		if l.verdict != kept && l.verdict != forInfo {
			return false
		}
	}
	return true
}

// write prints the table.
func write(w io.Writer, lines []line) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "what\tabate ns\tpeer ns\tratio\ttarget\tallocs\tat most\tverdict\tfastest peer")
	for _, l := range lines {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.what,
			number("%.1f", l.time, l.verdict != notRun),
			number("%.1f", l.peerTime, l.peer != ""),
			number("%.3f", l.ratio, l.peer != ""),
			number("%.2f", l.limit, l.limit != 0),
			number("%.0f", l.allocs, l.verdict != notRun && !l.byTurns),
			number("%.0f", l.promise.allocs, l.promise.allocs != anyNumber),
			l.verdict, implOf(l.peer))
	}
	return tw.Flush()
}

func number(format string, v float64, known bool) string {
	if !known {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// implOf shortens a row name to the implementation and the dimensions around it.
func implOf(name string) string {
	if name == "" {
		return "-"
	}
	_, rest, _ := strings.Cut(name, "/")
	return strings.TrimSuffix(rest, "/mode=seq")
}
