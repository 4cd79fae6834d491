package lint

import (
	"math"

	"github.com/abate-go/abate/topology"
)

// Kept says what tries are not in the number of a layer's tries: those of which each follows a kept connection that
// broke. It is empty where there are none. How many connections nginx has kept is not said by any file, and only a
// server that takes a request on each of them and closes it brings more than one of them.
func Kept(l *topology.Layer, times float64) string {
	if math.IsInf(times, 1) {
		return "" // which is more already
	}
	if l.Product == "ingress-nginx" && times > 1 {
		return "more, and without an end, if more than three kept connections break in a row"
	}
	for i := range l.Repeats {
		// Of several servers none is tried twice, so where each is tried once there are no more.
		r, first := &l.Repeats[i], l.Repeats[0].Tries
		if l.Product == "nginx" && r.Word == "keepalive" && float64(r.Tries.Or(0)) == times &&
			(first.Or(0) == 1 || first.Origin == topology.Written) {
			return "one more for each further kept connection that breaks in a row"
		}
	}
	return ""
}

// keptAssumption is Kept, as what a number rests on.
func keptAssumption(f Factor) []string {
	switch {
	case Kept(f.Layer, f.Times) == "":
		return nil
	case f.Layer.Product == "nginx":
		return []string{"of the connections that nginx keeps, not more than one breaks in a row"}
	}
	return []string{"of the connections that ingress-nginx keeps, not more than three break in a row"}
}
