package httpdrill

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim/distribution"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// Changes are what the flags of the command change of a scenario. nil keeps what the scenario says.
type Changes struct {
	Rate        *float64       // requests per second of the fleet
	Clients     *int           // its instances
	Capacity    *int           // workers of the service that it calls
	ServiceTime *time.Duration // of that service, constant
	Queue       *int           // its limit
	Before      *time.Duration // when the fault begins; only with one fault, as the next two
	Outage      *time.Duration // how long it lasts
	After       *time.Duration // how long the act goes on after it
	Within      *time.Duration // of the expectations on recovery
	Policy      *policyfile.File
}

// Change changes the scenario of c, and returns everything that is wrong with x or, then, with c: see Problems. The
// changes that are wrong are not made.
func (c *Config) Change(x Changes) []string {
	if found := c.Problems(); len(found) > 0 {
		return append(x.check(c.Scenario), found...)
	}
	found := x.check(c.Scenario)
	s := c.Scenario
	if x.Rate != nil {
		s.Clients[0].Rate = *x.Rate
	}
	if x.Clients != nil {
		s.Clients[0].Instances = *x.Clients
	}
	c.changeService(&x)
	if len(s.Faults) == 1 {
		f := &s.Faults[0]
		after := s.Duration - f.At - f.For
		set(&f.At, x.Before)
		set(&f.For, x.Outage)
		set(&after, x.After)
		s.Duration = f.At + f.For + after
	}
	c.expectWithin(&x)
	if x.Policy != nil {
		c.follow(x.Policy)
	}
	return append(found, c.Problems()...)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// changeService changes the service that the clients call, in all variants.
func (c *Config) changeService(x *Changes) {
	s := c.Scenario
	change := func(all []scenario.Service) {
		for i := range all {
			if all[i].Name != s.Clients[0].Calls[0].To {
				continue
			}
			set(&all[i].Workers, x.Capacity)
			if x.ServiceTime != nil {
				all[i].ServiceTime = distribution.Fixed(*x.ServiceTime)
			}
			if x.Queue != nil {
				all[i].Queue.None, all[i].Queue.Limit = false, *x.Queue
			}
		}
	}
	change(s.Services)
	for i := range s.Variants {
		change(s.Variants[i].Overrides)
	}
}

// expectWithin sets the limit of what is expected of recovery: as asked for, and never more than there is time.
func (c *Config) expectWithin(x *Changes) {
	_, end := c.Scenario.Trouble()
	change := func(all []expect.Expectation) {
		for i := range all {
			e := &all[i]
			limit := min(time.Duration(e.Value*float64(time.Second)), c.Scenario.Duration-end)
			set(&limit, x.Within)
			if e.Measure == "recovery" && (x.Within != nil || x.After != nil) {
				e.Value = limit.Seconds()
				e.Text = e.String()
			}
		}
	}
	change(c.Scenario.Expect)
	for i := range c.Scenario.Variants {
		change(c.Scenario.Variants[i].Expect)
	}
	if v := c.Guarded(); x.Within != nil {
		if _, said := c.within(v); !said {
			e := expect.Expectation{Measure: "recovery", Op: expect.AtMost, Value: x.Within.Seconds(),
				Share: expect.DefaultShare}
			e.Text = e.String()
			v.Expect = append(v.Expect, e)
		}
	}
}

// follow lets the clients of the guarded variant follow the policy of a file. What the service does about its own calls
// stays as it is.
func (c *Config) follow(file *policyfile.File) {
	v, fleet := c.Guarded(), &c.Scenario.Clients[0]
	service := fleet.Calls[0].To
	p, listed := file.Policy(service)
	c.Policy, c.unlisted = file.Name, !listed
	guards := &policyfile.File{Defaults: policyfile.DefaultPolicy()}
	if v.Guards != nil {
		*guards = *v.Guards
	}
	edge := fleet.Name + " -> " + service
	guards.Services = slices.DeleteFunc(slices.Clone(guards.Services),
		func(s policyfile.Service) bool { return s.Name == edge })
	guards.Services = append(guards.Services, policyfile.Service{Name: edge, Policy: p})
	v.Guards = guards
}

// check returns what is wrong with the changes themselves, by the names of their flags, and takes it out.
func (x *Changes) check(s *scenario.Scenario) []string {
	var found []string
	wrong := func(flag, format string, args ...any) {
		found = append(found, "--"+flag+": "+fmt.Sprintf(format, args...))
	}
	if x.Rate != nil && !(*x.Rate >= leastRate && *x.Rate <= mostRate) {
		wrong("rate", "%v is out of range; allowed: %d to %d requests per second", *x.Rate, leastRate, mostRate)
		x.Rate = nil
	}
	whole := func(flag string, v **int, most int) {
		if *v != nil && (**v < 1 || **v > most) {
			wrong(flag, "%d is out of range; allowed: 1 to %d", **v, most)
			*v = nil
		}
	}
	whole("clients", &x.Clients, mostInstances)
	whole("capacity", &x.Capacity, mostWorkers)
	whole("queue", &x.Queue, mostPlaces)
	span := func(flag string, v **time.Duration, low, high time.Duration) {
		if *v != nil && (**v < low || **v > high) {
			wrong(flag, "%v is out of range; allowed: %v to %v", **v, low, high)
			*v = nil
		}
	}
	moment := func(flag string, v **time.Duration, low time.Duration) {
		if *v != nil && len(s.Faults) != 1 {
			wrong(flag, "the scenario has %d faults, not one; change it there", len(s.Faults))
			*v = nil
		}
		span(flag, v, low, longest)
	}
	span("service-time", &x.ServiceTime, time.Millisecond, 10*time.Second)
	moment("before", &x.Before, leastBefore)
	moment("outage", &x.Outage, leastTrouble)
	moment("after", &x.After, leastAfter)
	_, end := s.Trouble()
	after := s.Duration - end
	set(&after, x.After)
	span("within", &x.Within, time.Second, after)
	return found
}

// QuickstartPolicy returns the policy of the guarded variant of the scenario of Default: the text of a policy file.
func QuickstartPolicy() string {
	c := Default()
	lines := strings.Split(string(quickstart()), "\n")
	node := &c.Guarded().Policy // a block: its first key stands at the column of all of it
	indent := strings.Repeat(" ", node.Column-1)
	var text strings.Builder
	for _, line := range lines[node.Line-1:] {
		if line != "" && !strings.HasPrefix(line, indent) {
			break
		}
		text.WriteString(strings.TrimPrefix(line, indent) + "\n")
	}
	return text.String()
}
