package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/topology"
)

// Unsaid returns in words what no file says of a path, as Path returns it, and on which it depends how many attempts of
// the worst case are made: what services answer when a call of theirs fails, and how long layers wait. It is empty
// where only times decide.
func (a *Amplified) Unsaid(hops []Hop) []string {
	var services, waits []string
	repeats := false // a layer further out, which may be shown another failure or leave early
	for i, h := range hops {
		if s, ok := a.g.index[h.Call.From]; ok && i > 0 && repeats {
			if _, known := answers(a.g.services[s].AnswersWith); !known {
				services = append(services, h.Call.From)
			}
		}
		for _, f := range h.Factors {
			repeats = repeats || f.Times > 1
			if wait := unsaidWait(f.Layer, h.Call.To); wait != "" {
				waits = append(waits, wait)
			}
		}
	}
	switch n := len(services); {
	case n == 1:
		return append([]string{"what " + services[0] + " answers when a call of its own fails"}, waits...)
	case n > 1:
		names := strings.Join(services[:n-1], ", ") + " and " + services[n-1]
		return append([]string{"what " + names + " answer when a call of theirs fails"}, waits...)
	}
	return waits
}

// unsaidWait says which of a layer's waits nobody knows, so that its proof counts only what begins at once.
func unsaidWait(l *topology.Layer, to string) string {
	switch {
	case l.PerTry.IsUnknown() || l.Overall.IsUnknown():
		return fmt.Sprintf("how long %s waits for %s", name(l), to)
	case unknownWait(&l.Backoff) && mayRepeat(l):
		return fmt.Sprintf("how long %s waits between tries of %s", name(l), to)
	}
	return ""
}

func mayRepeat(l *topology.Layer) bool {
	return slices.ContainsFunc(l.Repeats, func(r topology.Repeat) bool { return r.Tries.Or(topology.Unbounded) > 1 })
}

// Ceiling returns how often a call is tried at most for one request of its caller, whatever happens and whatever others
// do: numbers that nobody knows count as the least that they can be, and of layers that are alternatives the one with
// most tries counts. It is +Inf when nothing bounds the tries.
func Ceiling(c *topology.Call) float64 {
	known := assumption{worst: true, written: true}
	n := 1.0
	for _, slot := range slots(c.Layers) {
		most := 1.0
		for _, l := range slot {
			most = max(most, known.ceiling(l))
		}
		n *= most
	}
	return n
}
