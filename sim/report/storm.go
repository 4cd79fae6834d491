package report

import (
	"math"
	"slices"
	"strconv"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/figures"
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

// limited reports whether a service has a capacity.
func limited(s *sim.ServiceSeries) bool { return figures.Finite(s.Capacity) && s.Capacity > 0 }

// highest returns the largest number, at least 0.
func highest(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		if figures.Finite(v) && v > top {
			top = v
		}
	}
	return top
}

// mean returns the mean of the numbers in a part of the bins, given as shares of all of them.
func mean(values []float64, from, to float64) float64 {
	sum, n := 0.0, 0
	for i := int(float64(from * float64(len(values)))); i <
		min(len(values), int(math.Ceil(float64(to*float64(len(values)))))); i++ {
		if figures.Finite(values[i]) {
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
		notes = append(
			notes, "In the last quarter of the run "+percent(math.Min(share, 1))+" of what is offered is answered.")
	}
	return notes
}

// peakOf returns the largest number and the middle of its bin.
func peakOf(values []float64, bin float64) (top, at float64) {
	for i, v := range values {
		if figures.Finite(v) && v > top {
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
			if figures.Finite(a) && a > 0 {
				low = math.Min(low, a)
			}
		}
	}
	if top == 0 {
		return sec.without("No service was called.")
	}
	c := v.stage.timeChart("mid", run.BinSeconds, 2, logarithmic(math.Max(low, 0.1), math.Max(top, 2)), unitTimes)
	c.YLabel = "attempts per request, log"
	shown := v.chosen(values)
	for _, i := range shown {
		s := &run.Services[i]
		c.add(s.Name, serviceClass(i, v.focus), unitTimes, run.BinSeconds, s.Amplification, positive)
	}
	c.level("", "one", unitTimes, 1)
	bounded := v.levels(c, "budget", "bound", unitTimes, shown, func(s *sim.ServiceSeries) float64 {
		return s.AmplificationBound
	})
	c.describe("Attempts per request that needs the service, over the run.")
	sec.Plots = []*chart{c}
	sec.Notes = []string{
		"1" + space + "× is a system without retries. Highest: " + number(top) + space + "× at " + name + ".",
	}
	if bounded {
		sec.Notes = append(sec.Notes, "Dashed: the attempts per call that retry budgets allow the direct callers in the "+
			"long run. What a budget has saved up lets a burst pass above the line, and layers multiply.")
	}
	return sec
}

// waits draws queue waits against the timeouts of those who wait.
func (v *view) waits() section {
	run := v.run
	sec := section{Title: "Queue wait against timeout", ID: "wait"}
	values := func(s *sim.ServiceSeries) []float64 { return s.Wait }
	top, measured := 0.0, false
	for i := range run.Services {
		top = math.Max(top, highest(run.Services[i].Wait))
		measured = measured || slices.ContainsFunc(run.Services[i].Wait, func(w float64) bool { return w >= 0 })
	}
	switch {
	case !measured:
		return sec.without("No waiting time was measured.")
	case top < 0.001:
		return sec.without("In no interval did requests wait longer than 1 ms on average.")
	}
	shown := slices.DeleteFunc(v.chosen(values), func(i int) bool { return highest(run.Services[i].Wait) < 0.001 })
	for _, i := range shown {
		if t := run.Services[i].Timeout; figures.Finite(t) {
			top = math.Max(top, t*1.2)
		}
	}
	c := v.stage.timeChart("mid", run.BinSeconds, 2, logarithmic(0.001, top), unitTime)
	c.YLabel = "mean wait, log"
	for _, i := range shown {
		s := &run.Services[i]
		c.add(s.Name, serviceClass(i, v.focus), unitTime, run.BinSeconds, waited(s), anything)
	}
	v.levels(c, "timeout", "timeout", unitTime, shown, func(s *sim.ServiceSeries) float64 { return s.Timeout })
	c.describe("Mean time in the queue of each service, and the shortest attempt timeout of its callers.")
	sec.Plots = []*chart{c}
	sec.Notes = v.waitNotes(shown)
	return sec
}

// waited returns the waits, with gaps where nobody is known to have waited.
func waited(s *sim.ServiceSeries) []float64 {
	out := slices.Clone(s.Wait)
	for i := range out {
		if out[i] < 0 {
			out[i] = math.NaN()
		}
	}
	return out
}

// mostLevels is how many levels of one kind a chart has room for beside its lines.
const mostLevels = 3

// levels draws a bound that services have: each different one once, by the name of its service unless all have the
// same. It reports whether there was one.
func (v *view) levels(c *chart, name, class, unit string, shown []int, of func(*sim.ServiceSeries) float64) bool {
	var values []float64
	for _, i := range shown {
		values = append(values, of(&v.run.Services[i]))
	}
	drawn := 0
	for k, value := range values {
		if !figures.Finite(value) || value <= 0 || slices.Contains(values[:k], value) || drawn == mostLevels {
			continue
		}
		text := name
		if slices.ContainsFunc(values, func(other float64) bool { return other != value }) {
			text += ", " + v.run.Services[shown[k]].Name
		}
		c.level(text, class, unit, value)
		drawn++
	}
	return drawn > 0
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
