package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/sim/distribution"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/population"
)

// guardedClients is how many clients may each have all that a guard knows; larger fleets are populations.
const guardedClients = 500_000

// IsPopulation reports whether the scenario is one very large fleet without guards, for package population: a fleet
// names a method, or has more than 500,000 users or requests.
func (s *Scenario) IsPopulation() bool { return s.population() != nil }

func (s *Scenario) population() *Fleet {
	for i := range s.Clients {
		if f := &s.Clients[i]; f.Method != "" || max(f.Users, f.Once) > guardedClients {
			return f
		}
	}
	return nil
}

// populationChecker looks at a scenario whose only fleet is a population.
type populationChecker struct {
	*inherited
	s     *Scenario
	fleet *Fleet
}

// check reports what a scenario with a very large fleet cannot have.
func (c *populationChecker) check() {
	f := c.fleet
	const why = "a fleet this large runs by itself: it has no room for guards"
	path := "clients." + f.Name
	has := func(key string) bool { return c.Has(path + "." + key) }
	c.obey("", []rule{
		{len(c.s.Clients) > 1, path, "stands beside other fleets", why, nil},
		{len(c.s.Services) > 1, "services", fmt.Sprintf("there are %d services", len(c.s.Services)),
			"a very large fleet calls one service; " + why, nil},
	})
	memoryless := reflect.DeepEqual(f.Think, distribution.Exponential(f.Think.Mean()))
	c.obey(path, []rule{
		{has("instances"), "instances", "has no effect on a very large fleet", remove, nil},
		{has("session"), "session", "a very large fleet holds no sessions",
			fmt.Sprintf("allowed: at most %d users", guardedClients), nil},
		{has("topic"), "topic", "a very large fleet does not consume",
			fmt.Sprintf("allowed: at most %d messages at once", guardedClients), nil},
		{f.Users > 0 && !memoryless && !has("session"), "think", "a very large fleet thinks exponentially",
			"for example think: exponential 60s", nil},
	})
	for i := range f.Calls {
		if call := f.Calls[i]; !reflect.DeepEqual(call, Call{To: call.To}) {
			c.Add(fmt.Sprintf("%s.calls[%d]", path, i), "a very large fleet makes plain calls",
				"write only the name of the service")
		}
	}
	for i := range c.s.Services {
		c.service("services", &c.s.Services[i])
	}
	for i := range c.s.Variants {
		c.variant(&c.s.Variants[i])
	}
	c.faults()
	c.expectations("expect", c.s.Expect)
	for i := range c.s.Variants {
		c.expectations("variants."+c.s.Variants[i].Name+".expect", c.s.Variants[i].Expect)
	}
	m := &c.s.Model
	const problem = "has no effect on a very large fleet"
	c.obey("model", []rule{
		{m.Cancellation == CancellationPropagates, "cancellation", problem, remove, nil},
		{m.ServiceTimeDrawn != DrawnAtStart, "serviceTimeDrawn", problem, remove, nil},
		{m.Ties == TimeoutFirst, "ties", problem, remove, nil},
	})
}

// expectations reports measures that nobody counts in a population: they would read 0, or nothing.
func (c *populationChecker) expectations(path string, list []expect.Expectation) {
	for i := range list {
		if x := &list[i]; (x.Measure == "goodput" || x.Measure == "failures") && x.Window != expect.All {
			c.Add(fmt.Sprintf("%s[%d]", path, i), "a very large fleet counts answers by their own time, not by that of their "+
				"requests", "leave the window away, or expect served(p99) or recovery")
		}
		if x := &list[i]; (x.Measure == "recovery" || x.Measure == "collapse") && x.Subject == c.s.Services[0].Name {
			c.Add(fmt.Sprintf("%s[%d]", path, i), "a very large fleet has one service, and no "+x.Measure+" of it alone",
				"leave the name away")
		}
		switch list[i].Measure {
		case "queue", "queueWait", "utilization", "waste", "latency", "connections", "connects", "connectPeak", "unopened",
			"serving", "refused", "yield", "response", "shed", "rateLimited", "gateWait", "limit", "load":
			c.Add(fmt.Sprintf("%s[%d]", path, i), "a very large fleet has no "+list[i].Measure, "allowed: goodput, recovery, "+
				"collapse, served, userVisible, failures, offered, attempts, retries, amplification and peak")
		}
	}
}

// service reports what the service of a very large fleet cannot have: it is a capacity and a line.
func (c *populationChecker) service(prefix string, s *Service) {
	plain := Service{
		Name:        s.Name,
		Replicas:    s.Replicas,
		Balancing:   s.Balancing,
		Workers:     s.Workers,
		ServiceTime: s.ServiceTime,
		Queue:       Queue{Limit: s.Queue.Limit, None: s.Queue.None},
	}
	given, allowed := reflect.ValueOf(*s), reflect.ValueOf(plain)
	for i := range given.NumField() {
		key := given.Type().Field(i).Tag.Get("yaml")
		if !reflect.DeepEqual(given.Field(i).Interface(), allowed.Field(i).Interface()) {
			c.found(prefix, s.Name+"."+key, "a very large fleet knows nothing of it",
				"remove it; allowed: replicas, workers, serviceTime, queue.limit and queue.none")
		}
	}
}

// variant reports what a variant cannot have.
func (c *populationChecker) variant(v *Variant) {
	f := c.fleet
	path := "variants." + v.Name
	for i := range v.Overrides {
		c.service(path+".services", &v.Overrides[i])
	}
	if len(v.Naive) > 0 {
		c.Add(path+".naive", "a very large fleet has nobody behind it whom it could tell something", remove)
	}
	if len(f.Calls) == 0 {
		return
	}
	if _, ok := v.ProtectionOf(f.Calls[0].To); ok {
		c.Add(path+".policy", "a very large fleet knows no gates", "remove protect")
	}
	var list []*abate.FieldError
	for _, err := range unjoin(population.Supported(v.PolicyOf(f.Name, f.Calls[0].To).Policy)) {
		var one *abate.FieldError
		if errors.As(err, &one) {
			list = append(list, one)
		}
	}
	where := path
	for _, key := range []string{".policy", ".policyFile"} {
		if c.Has(path + key) {
			where = path + key
		}
	}
	if !c.Has(path) {
		where = "variants"
	}
	for _, e := range list {
		c.Add(where, "of the policy of "+strictyaml.Quote(f.Calls[0].To)+", "+e.Path+" "+e.Problem, e.Fix)
	}
}

// unjoin takes apart what errors.Join joined.
func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return nil
}

// faults reports faults that a very large fleet does not know.
func (c *populationChecker) faults() {
	for i := range c.s.Faults {
		f := &c.s.Faults[i]
		path := fmt.Sprintf("faults[%d]", i)
		overlaps := slices.ContainsFunc(c.s.Faults[:i], func(o Fault) bool { return o.At < f.At+f.For && f.At < o.At+o.For })
		kind, _ := f.Kind()
		c.obey(path, []rule{
			{kind != OutageFault, kind.String(), "a very large fleet knows no fault but an outage",
				"write outage, with mode hang or refuse", nil},
			{kind == OutageFault && f.Mode != "" && f.Mode != Hang &&
				f.Mode != Refuse, "mode", "a very large fleet knows no " + f.Mode, "allowed: hang, refuse", nil},
			{kind == OutageFault && f.Share > 0 && f.Share < 1, "share", "a very large fleet knows only the whole service",
				remove, nil},
			{overlaps, "at", "the fault overlaps another one", "join them to one", nil},
		})
	}
}
