package report

import (
	"math"
	"slices"
	"strconv"

	"github.com/abate-go/abate/sim"
)

// serviceColours is how many colours lines of services have, besides that of the focus.
const serviceColours = 5

// focus returns the service that the story is about: where attempts exceed capacity the most, or, if nothing has a
// capacity, where they exceed the requests the most. It is -1 without services.
func focus(run *sim.Series) int {
	best, at := -1.0, -1
	for i := range run.Services {
		s := &run.Services[i]
		pressure := highest(s.Amplification) / 1e6
		if limited(s) {
			pressure = highest(s.Attempts) / s.Capacity
		}
		if pressure > best {
			best, at = pressure, i
		}
	}
	return at
}

// limited tells whether a service has a capacity.
func limited(s *sim.ServiceSeries) bool { return finite(s.Capacity) && s.Capacity > 0 }

// highest returns the largest number, at least 0.
func highest(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		if finite(v) && v > top {
			top = v
		}
	}
	return top
}

// mean returns the mean of the numbers in a part of the bins, given as shares of all of them.
func mean(values []float64, from, to float64) float64 {
	sum, n := 0.0, 0
	for i := int(float64(from * float64(len(values)))); i < min(len(values), int(math.Ceil(float64(to*float64(len(values)))))); i++ {
		if finite(values[i]) {
			sum, n = sum+values[i], n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// serviceClass is the line style of a service: the one the story is about has the colour of trouble, in every chart.
func serviceClass(i, focused int) string {
	switch {
	case i == focused:
		return "s0"
	case i < focused:
		return "s" + strconv.Itoa(i%serviceColours+1)
	}
	return "s" + strconv.Itoa((i-1)%serviceColours+1)
}

// chosen returns the services to draw: those with the highest values, in the order of the scenario.
func (v *view) chosen(values func(*sim.ServiceSeries) []float64) []int {
	run := v.run
	var out []int
	for i := range run.Services {
		rank := 0
		for j := range run.Services {
			a, b := highest(values(&run.Services[i])), highest(values(&run.Services[j]))
			if b > a || b == a && j < i {
				rank++
			}
		}
		if rank < v.stage.services {
			out = append(out, i)
		}
	}
	return out
}

// load draws what was offered, what that became, and what came of it.
func (v *view) load() section {
	run, at := v.run, v.focus
	sec := section{Title: "Load and goodput", ID: "load"}
	top := math.Max(highest(run.Offered), highest(run.Goodput))
	if at >= 0 {
		top = math.Max(top, highest(run.Services[at].Attempts))
	}
	if top == 0 {
		return sec.without("No request was offered.")
	}
	c := v.stage.timeChart("tall", run.BinSeconds, 2, linear(top), unitCount)
	c.Lane = v.stage.lane()
	c.YLabel = "per second"
	if at >= 0 {
		c.YLabel += "; attempts and capacity: " + run.Services[at].Name
	}
	c.add("offered", "offered", unitRate, run.BinSeconds, run.Offered, anything)
	if at >= 0 {
		s := &run.Services[at]
		c.add("attempts", "attempts", unitRate, run.BinSeconds, s.Attempts, anything)
		if limited(s) {
			c.level("capacity", "capacity", unitRate, s.Capacity)
		}
	}
	c.add("goodput", "goodput", unitRate, run.BinSeconds, run.Goodput, anything)
	c.describe("Requests offered, attempts and answers per second over the run.")
	sec.Plots = []*chart{c}
	sec.Notes = v.loadNotes()
	return sec
}

func (v *view) loadNotes() []string {
	var notes []string
	if v.focus >= 0 {
		s := &v.run.Services[v.focus]
		peak, when := peakOf(s.Attempts, v.run.BinSeconds)
		text := "Attempts at " + s.Name + " peak at " + number(peak) + "/s, " + seconds(when) + " into the run"
		if limited(s) && peak > s.Capacity {
			text += ": " + number(peak/s.Capacity) + space + "× what it can do"
		}
		notes = append(notes, text+".")
	}
	if offered := mean(v.run.Offered, 0.75, 1); offered > 0 {
		share := mean(v.run.Goodput, 0.75, 1) / offered
		notes = append(notes, "In the last quarter of the run "+percent(math.Min(share, 1))+" of what is offered is answered.")
	}
	return notes
}

// peakOf returns the largest number and the middle of its bin.
func peakOf(values []float64, bin float64) (top, at float64) {
	for i, v := range values {
		if finite(v) && v > top {
			top, at = v, (float64(i)+0.5)*bin
		}
	}
	return top, at
}

// amplification draws how many attempts one request becomes at each service.
func (v *view) amplification() section {
	run := v.run
	sec := section{Title: "Amplification by layer", ID: "amplification"}
	values := func(s *sim.ServiceSeries) []float64 { return s.Amplification }
	top, low, name := 0.0, 1.0, ""
	for i := range run.Services {
		s := &run.Services[i]
		if h := highest(s.Amplification); h > top {
			top, name = h, s.Name
		}
		for _, a := range s.Amplification {
			if finite(a) && a > 0 {
				low = math.Min(low, a)
			}
		}
	}
	if top == 0 {
		return sec.without("No service was called.")
	}
	c := v.stage.timeChart("mid", run.BinSeconds, 2, logarithmic(math.Max(low, 0.1), math.Max(top, 2)), unitTimes)
	c.YLabel = "attempts per request, log"
	for _, i := range v.chosen(values) {
		s := &run.Services[i]
		c.add(s.Name, serviceClass(i, v.focus), unitTimes, run.BinSeconds, s.Amplification, positive)
	}
	c.level("", "one", unitTimes, 1)
	c.describe("Attempts per request that needs the service, over the run.")
	sec.Plots = []*chart{c}
	sec.Notes = []string{"1" + space + "× is a system without retries. Highest: " + number(top) + space + "× at " + name + "."}
	return sec
}

// waits draws queue waits against the timeouts of those who wait.
func (v *view) waits() section {
	run := v.run
	sec := section{Title: "Queue wait against timeout", ID: "wait"}
	values := func(s *sim.ServiceSeries) []float64 { return s.Wait }
	top := 0.0
	for i := range run.Services {
		top = math.Max(top, highest(run.Services[i].Wait))
	}
	if top < 0.001 {
		return sec.without("In no interval did requests wait longer than 1 ms on average.")
	}
	shown := v.chosen(values)
	for _, i := range shown {
		if t := run.Services[i].Timeout; finite(t) {
			top = math.Max(top, t*1.2)
		}
	}
	c := v.stage.timeChart("mid", run.BinSeconds, 2, logarithmic(0.001, top), unitTime)
	c.YLabel = "mean wait, log"
	for _, i := range shown {
		s := &run.Services[i]
		if highest(s.Wait) >= 0.001 {
			c.add(s.Name, serviceClass(i, v.focus), unitTime, run.BinSeconds, v.waited(s), anything)
		}
	}
	v.timeouts(c, shown)
	c.describe("Mean time in the queue of each service, and the shortest attempt timeout of its callers.")
	sec.Plots = []*chart{c}
	sec.Notes = v.waitNotes(shown)
	return sec
}

// waited returns the waits, with gaps where no work was done, so that nobody is known to have waited.
func (v *view) waited(s *sim.ServiceSeries) []float64 {
	out := slices.Clone(s.Wait)
	for i := range out {
		if out[i] == 0 && at(s.Served, i) == 0 && at(s.Wasted, i) == 0 {
			out[i] = math.NaN()
		}
	}
	return out
}

// timeouts draws each different timeout once.
func (v *view) timeouts(c *chart, shown []int) {
	var seen []float64
	for _, i := range shown {
		s := &v.run.Services[i]
		if !finite(s.Timeout) || s.Timeout <= 0 || highest(s.Wait) < 0.001 {
			continue
		}
		name := "timeout"
		for _, j := range shown {
			other := &v.run.Services[j]
			if other.Timeout > 0 && other.Timeout != s.Timeout && highest(other.Wait) >= 0.001 {
				name = "timeout, " + s.Name
			}
		}
		if !slices.Contains(seen, s.Timeout) {
			c.level(name, "timeout", unitTime, s.Timeout)
			seen = append(seen, s.Timeout)
		}
	}
}

// waitNotes says where waiting outlasts the patience of callers: from there on work is done for nobody.
func (v *view) waitNotes(shown []int) []string {
	var notes []string
	for _, i := range shown {
		s := &v.run.Services[i]
		first, last := -1, -1
		for bin, w := range s.Wait {
			if s.Timeout > 0 && w > s.Timeout {
				if first < 0 {
					first = bin
				}
				last = bin
			}
		}
		if first < 0 {
			continue
		}
		text := "From " + seconds(float64(first)*v.run.BinSeconds)
		if first == 0 {
			text = "From the beginning"
		}
		if last < len(s.Wait)-2 {
			text += " to " + seconds(float64(last+1)*v.run.BinSeconds)
		} else {
			text += " to the end"
		}
		notes = append(notes, text+", a request waits longer at "+s.Name+" than its caller does ("+seconds(s.Timeout)+
			"): what is then finished was finished for nobody.")
	}
	if notes == nil {
		notes = []string{"Where the wait passes the timeout, work is finished for callers that have left. Here it does not."}
	}
	return notes
}
