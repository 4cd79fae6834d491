package report

import (
	"math"
	"strconv"

	"github.com/abate-go/abate/sim/engine"
)

// lane is one line of a waterfall.
type lane struct {
	Depth             string // 0 to 8
	Kind, Where       string
	Left, Width       string // percent
	From, Took, Ended string
	Failed            bool
}

// waterfall draws one request through layers and attempts.
func (v *view) waterfall() section {
	sec := section{Title: "One request", ID: "request"}
	if v.run.Detail == nil || len(v.run.Detail.Sample) == 0 {
		return sec.without("No request was kept.")
	}
	all := v.run.Detail.Sample
	shown := all[:min(len(all), v.stage.spans)]
	request, from, to, last := all[0], all[0].From, all[0].To, all[0].To
	for _, s := range shown {
		from, to = min(from, s.From), max(to, s.To)
	}
	attempts := 0
	for _, s := range all {
		last = max(last, s.To)
		if s.Kind == "attempt" {
			attempts++
		}
	}
	length := math.Max((to - from).Seconds(), 1e-9)
	for i := range shown {
		sec.Lanes = append(sec.Lanes, newLane(&shown[i], from.Seconds(), length))
	}
	sec.LaneTicks = timeTicks(0, length)
	text := "The most eventful of a few hundred requests, from " + seconds(from.Seconds()) + " into the run on: " +
		plural(attempts, "attempt", "attempts") + ", and an end after " + seconds((request.To - request.From).Seconds())
	if last > request.To {
		text += "; work for it went on until " + seconds((last - request.From).Seconds())
	}
	sec.Notes = []string{text + "."}
	if hidden := len(all) - len(shown); hidden > 0 {
		sec.Notes = append(sec.Notes, "The last "+plural(hidden, "line is", "lines are")+" left out.")
	}
	return sec
}

func newLane(s *engine.Span, from, length float64) lane {
	begin, took := s.From.Seconds()-from, math.Max((s.To-s.From).Seconds(), 0)
	l := lane{
		Depth: strconv.Itoa(max(min(s.Depth, 8), 0)), Kind: s.Kind, Where: s.Where,
		Left: place(begin / length), Width: place(took / length), From: seconds(begin), Took: seconds(took),
	}
	if acts := s.Kind == "request" || s.Kind == "call" || s.Kind == "attempt"; acts && s.End < engine.EndKinds {
		l.Ended, l.Failed = s.End.String(), s.End != engine.Answered
	}
	return l
}
