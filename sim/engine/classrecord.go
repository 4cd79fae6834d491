package engine

import (
	"math"
	"slices"

	"github.com/abate-go/abate/sim/expect"
)

// classes are what gates made of requests by their priority, from the one refused first on.
type classes [4]class

// class is one of them. Slices have one member per bin.
type class struct {
	came []uint32 // to a gate
	shed []uint32 // of those: refused for overload, or because their deadline had passed
}

func newClasses(bins int) *classes {
	var c classes
	s := series{bins, make([]uint32, 2*len(c)*bins)}
	for i := range c {
		c[i].came, c[i].shed = s.next(), s.next()
	}
	return &c
}

// cut takes the bin away that is outside of the run.
func (c *classes) cut() {
	for i := range c {
		x := &c[i]
		x.came, x.shed = x.came[:len(x.came)-1], x.shed[:len(x.shed)-1]
	}
}

// ofClass is the share of the requests with a priority that gates of a service refused.
func (r *Record) ofClass(x *expect.Expectation, s *ServiceRecord, from, to int) float64 {
	i := slices.Index(expect.Priorities(), x.Priority)
	if i < 0 || s.classes == nil {
		return math.NaN()
	}
	c := &s.classes[i]
	return ratio(sum(c.shed, from, to), sum(c.came, from, to))
}
