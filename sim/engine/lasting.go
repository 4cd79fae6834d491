package engine

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/expect"
)

// LeastRequests is how many requests of a fleet a verdict on it needs. Of several fleets, one that offers fewer has
// collapsed only if chance does not explain it; see Record.Judged.
const LeastRequests = 100

// leastToBack is how many requests a fleet among several has to offer within a stretch that shows whether its goodput
// is back.
const leastToBack = 20

// mostlyDown is the share of requests below which a fleet had no goodput worth the name before the trouble.
const mostlyDown = 0.5

// ofFleets is collapse or recovery of one fleet or, without a name, of all of them: a run has collapsed when any fleet
// has, and has recovered when the last one has. What cannot be said of a fleet is left out.
func (r *Record) ofFleets(measure, name string) float64 {
	one := r.fleetCollapsed
	if measure == "recovery" {
		one = r.fleetRecovery
	}
	if len(r.Fleets) == 1 || name != "" {
		return one(r.fleet(name))
	}
	worst := math.NaN()
	for i := range r.Fleets {
		if v := one(&r.Fleets[i]); math.IsNaN(worst) || v > worst {
			worst = v
		}
	}
	if measure == "collapse" && math.IsNaN(worst) {
		return 0
	}
	return worst
}

// course is what was wanted and what came of it, summed up from the start of a run to each bin.
type course struct {
	got, came []float64
	needed    []float64 // of a service: what the requests offered need of it; nil for a fleet
	able      float64   // most that can be done in a bin; +Inf for no limit
}

// sumUp returns a course without its needs.
func sumUp(got, came []uint32, able float64) course {
	c := course{got: make([]float64, len(got)+1), came: make([]float64, len(came)+1), able: able}
	for b := range got {
		c.got[b+1], c.came[b+1] = c.got[b]+float64(got[b]), c.came[b]+float64(came[b])
	}
	return c
}

// within returns what was got of what was wanted within some bins.
func (c *course) within(from, to int) (got, wanted float64) {
	wanted = c.came[to] - c.came[from]
	if c.needed != nil { // whom a guard upstream kept away wanted it, too
		wanted = math.Max(wanted, c.needed[to]-c.needed[from])
	}
	if to > from {
		wanted = math.Min(wanted, float64(c.able*float64(to-from)))
	}
	return c.got[to] - c.got[from], wanted
}

// bins is how many bins there are.
func (c *course) bins() int { return len(c.got) - 1 }

func courseOf(f *FleetRecord) course {
	wanted, came := f.Course()
	return sumUp(came, wanted, math.Inf(1))
}

// serviceCourse is the useful work of a service: answers with success to callers that still waited, of the attempts
// that came or, if that is more, that the requests offered need; and never of more than it can do.
func (r *Record) serviceCourse(s *ServiceRecord) course {
	c := sumUp(s.Served, s.Arrived, float64(s.Capacity*r.Bin.Seconds()))
	c.needed = make([]float64, len(c.came))
	for b := range s.Arrived {
		c.needed[b+1] = c.needed[b] + r.demand(s, b, b+1)
	}
	return c
}

// normal is the goodput before the trouble, as a share of what was offered; 1 where nothing was offered before it.
func (r *Record) normal(f *FleetRecord) float64 {
	_, to := r.bins(expect.Before)
	wanted, came := f.Course()
	if share := ratio(sum(came, 0, to), sum(wanted, 0, to)); share >= 0 {
		return share
	}
	return 1
}

// afterwards are the bins by which a course is judged: the last quarter of the time after the trouble. Where nothing
// was wanted then (users who wait for ever offer nothing), it is the time since the trouble began, else the whole run.
func (r *Record) afterwards(c *course) (from, to int) {
	from, to = r.bins(expect.After)
	from = to - (to-from+3)/4
	if _, wanted := c.within(from, to); wanted > 0 {
		return from, to
	}
	if from, _ = r.bins(expect.During); from < to {
		if _, wanted := c.within(from, to); wanted > 0 {
			return from, to
		}
	}
	return 0, to
}

// Judged returns how many requests of a fleet the verdict on it rests on: those that show whether its goodput stays
// down or, if they are fewer, those that show what its goodput was before the trouble.
func (r *Record) Judged(fleet int) int {
	c := courseOf(&r.Fleets[fleet])
	_, wanted := c.within(r.afterwards(&c))
	if begin, _ := r.bins(expect.During); begin > 0 && r.Begin < r.Duration {
		_, before := c.within(0, min(begin, c.bins()))
		wanted = math.Min(wanted, before)
	}
	return int(wanted)
}

// fleetCollapsed is 1 when the trouble is over and goodput stays down. A run in which most requests failed before the
// trouble has nothing to come back to: it counts as collapsed too. Where there are several fleets, chance gets the
// benefit of the doubt in those with few requests, and of one that offered nothing nothing can be said.
func (r *Record) fleetCollapsed(f *FleetRecord) float64 {
	c := courseOf(f)
	got, wanted := c.within(r.afterwards(&c))
	share, normal, best := ratio(got, wanted), r.normal(f), r.normal(f)
	if len(r.Fleets) > 1 {
		if wanted == 0 {
			return math.NaN()
		}
		if wanted < LeastRequests {
			_, share = expect.Wilson(int(got), int(wanted))
		}
		_, begin := r.bins(expect.Before)
		if got, wanted := c.within(0, begin); wanted > 0 && wanted < LeastRequests {
			normal, best = expect.Wilson(int(got), int(wanted))
		}
	}
	return r.down(share, normal, best)
}

// down is 1 for a share that stays below normal, or a normal, at best, that is none.
func (r *Record) down(share, normal, best float64) float64 {
	if r.Begin >= r.Duration { // nothing went wrong: all should be well
		normal = 1
	}
	if share < r.Model.Collapsed*normal || best < mostlyDown {
		return 1
	}
	return 0
}

// fleetRecovery is the time until a fleet's goodput is back. Where there are several, the stretch that shows it is long
// enough for a few requests (at most a quarter of the time after the trouble), and where there are too few to tell,
// nothing can be said.
func (r *Record) fleetRecovery(f *FleetRecord) float64 {
	c, hold := courseOf(f), r.Model.Hold
	first, last := r.bins(expect.After)
	_, offered := c.within(min(first, last), last)
	few := len(r.Fleets) > 1 && offered < LeastRequests
	if len(r.Fleets) > 1 && offered > 0 {
		each := time.Duration(float64(last-first) / offered * float64(r.Bin))
		hold = max(hold, min(leastToBack*each, time.Duration(last-first)*r.Bin/4))
	}
	back := c.recovery(r.Bin, r.End, r.normal(f), r.Model.Recovered, hold)
	if few && math.IsInf(back, 1) && r.fleetCollapsed(f) == 0 {
		return math.NaN()
	}
	return back
}

// serviceNormal is the useful work of a service before the trouble, as a share of what was wanted of it; 1 where
// nothing was.
func (r *Record) serviceNormal(c *course) float64 {
	_, to := r.bins(expect.Before)
	if share := ratio(c.within(0, to)); share >= 0 {
		return share
	}
	return 1
}

// serviceCollapsed is 1 when the trouble is over and the useful work of a service stays down; NaN where nothing was
// wanted of it.
func (r *Record) serviceCollapsed(s *ServiceRecord) float64 {
	c := r.serviceCourse(s)
	share := ratio(c.within(r.afterwards(&c)))
	if math.IsNaN(share) {
		return share
	}
	normal := r.serviceNormal(&c)
	return r.down(share, normal, normal)
}

// serviceRecovery is the time until the useful work of a service is back.
func (r *Record) serviceRecovery(s *ServiceRecord) float64 {
	c := r.serviceCourse(s)
	return c.recovery(r.Bin, r.End, r.serviceNormal(&c), r.Model.Recovered, r.Model.Hold)
}

// Recovery is the time in seconds from the end of the trouble until goodput is back: the first moment from which on it
// is at the share recovered of normal over the next stretch of hold, and on average until the end of the series. The
// average keeps a lull in a storm from counting as its end. It is +Inf when that never happens, and NaN when there was
// no goodput before to come back to. good is how many of the requests offered in a bin were answered in time.
func Recovery(
	good, offered []uint32, bin, troubleEnd time.Duration, normal, recovered float64, hold time.Duration,
) float64 {
	c := sumUp(good, offered, math.Inf(1))
	return c.recovery(bin, troubleEnd, normal, recovered, hold)
}

// recovery is Recovery of a course.
func (c *course) recovery(bin, troubleEnd time.Duration, normal, recovered float64, hold time.Duration) float64 {
	if normal <= 0 {
		return math.NaN()
	}
	width, end := max(int((hold+bin-1)/bin), 1), c.bins()
	first := int((troubleEnd + bin - 1) / bin)
	if first >= end {
		return math.NaN()
	}
	if _, wanted := c.within(first, end); wanted == 0 {
		return math.NaN()
	}
	back := func(from, to int) bool {
		got, wanted := c.within(from, to)
		return wanted > 0 && got >= recovered*normal*wanted
	}
	for b := first; b+width <= end; b++ {
		if back(b, b+width) && back(b, end) {
			return (time.Duration(b)*bin - troubleEnd).Seconds()
		}
	}
	return math.Inf(1)
}

// DownBefore reports whether a fleet's goodput is down even before the trouble, against what is normal.
func (r *Record) DownBefore(fleet int, normal float64) bool {
	f := &r.Fleets[fleet]
	_, begin := r.bins(expect.Before)
	wanted, came := f.Course()
	got, of := sum(came, 0, begin), sum(wanted, 0, begin)
	share := ratio(got, of)
	if len(r.Fleets) > 1 && of < LeastRequests && of > 0 {
		_, share = expect.Wilson(int(got), int(of))
	}
	return share < r.Model.Collapsed*normal
}
