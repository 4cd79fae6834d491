package engine

import (
	"math"

	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/expect"
)

// classes are what gates made of requests by their priority, from the one refused first on.
type classes [len(shed.Priorities)]class

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

// of is the class of a priority.
func (c *classes) of(p shed.Priority) *class { return &c[p-shed.Sheddable] }

// ofClass is the share of the requests with a priority that gates of a service refused.
func (r *Record) ofClass(x *expect.Expectation, s *ServiceRecord, from, to int) float64 {
	p, ok := shed.ParsePriority([]byte(x.Priority))
	if !ok || s.classes == nil {
		return math.NaN()
	}
	c := s.classes.of(p)
	return ratio(sum(c.shed, from, to), sum(c.came, from, to))
}
