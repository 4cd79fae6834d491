package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// checker looks for mistakes that no single value shows, once the scenario and its policies have been read.
type checker struct {
	*mistakes
	s     *Scenario
	names *names
	graph *callGraph
	lists *listChecker // writes the graph
}

func newChecker(m *mistakes, s *Scenario) *checker {
	names, graph := namesOf(s), newCallGraph()
	lists := &listChecker{&inherited{m, map[string]bool{}}, s, names, graph}
	return &checker{mistakes: m, s: s, names: names, graph: graph, lists: lists}
}

// check reports everything that is wrong with the scenario as a whole.
func (c *checker) check() {
	s := c.s
	c.obey("", []rule{
		{!c.Has("duration"), "duration", "is missing", "for example duration: 3m", nil},
		{len(s.Clients) == 0, "clients", "no fleet offers load", "for example clients: {shop: {rate: 100, calls: [payment]}}",
			nil},
		{len(s.Services) == 0, "services", "there is no service to call",
			"for example services: {payment: {workers: 50, serviceTime: exponential 50ms}}", nil},
	})
	c.obey("", []rule{
		{c.Has("redis") && !s.shares(""), "redis", "has no effect, because nobody shares anything",
			"write fleet: true in the retryBudget of a policy, or remove it", nil},
	})
	c.names.check(c.mistakes)
	for i := range s.Clients {
		c.fleet(&s.Clients[i])
		c.lists.calls("clients", s.Clients[i].Name, s.Clients[i].Calls)
		if f := &s.Clients[i]; f.HoldsSessions() {
			for k := range f.Calls {
				c.graph.pooled[f.Calls[k].To] = true
			}
		}
	}
	c.lists.everyService("services", s.Services)
	for i := range s.Variants {
		v := &s.Variants[i]
		if v.Overrides != nil {
			c.lists.everyService("variants."+v.Name+".services", v.Overrides)
		}
		(&variantChecker{c.mistakes, s, c.names, v}).check(c.graph)
	}
	c.unused()
	for i := range s.Faults {
		c.fault(&s.Faults[i], fmt.Sprintf("faults[%d]", i))
	}
	c.aftermath()
	c.expectations("expect", s.Expect)
	for i := range s.Variants {
		c.expectations("variants."+s.Variants[i].Name+".expect", s.Variants[i].Expect)
	}
}

// unused reports services that nobody calls, and costs that nobody pays.
func (c *checker) unused() {
	if c.graph.unclear || len(c.names.fleets) == 0 || c.callsFailed() {
		return
	}
	for i := range c.s.Services {
		s := &c.s.Services[i]
		c.obey("services."+s.Name, []rule{
			{!c.graph.called[s.Name], "", "nobody calls it", "add it to the calls of a fleet or service, or remove it", nil},
			{s.RefusalCost > 0 && !c.s.gated(s.Name), "refusalCost",
				"has no effect, because no variant has a gate in front of " + s.Name,
				"write protect: {" + s.Name + ": {}} in the policy of a variant, or remove it", nil},
			{c.graph.called[s.Name] && !c.graph.pooled[s.Name] && c.Has("services."+s.Name+".connections"), "connections",
				"has no effect, because no caller has a pool, and no users hold sessions",
				"write the call as {to: " + s.Name + ", pool: 20}", nil},
		})
	}
}

// fault reports what is wrong with one fault.
func (c *checker) fault(f *Fault, path string) {
	var kinds []FaultKind
	for k := OutageFault; k <= OperatorFault; k++ {
		if c.Has(path + "." + k.String()) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) != 1 {
		if len(kinds) == 0 {
			c.obey(path, []rule{
				{true, "", "the fault does not say what goes wrong", "write one of " + strings.Join(faultNames[1:], ", ") +
					"; for example outage: payment-db", nil},
			})
			return
		}
		c.Add(path+"."+kinds[1].String(), kinds[1].String()+" excludes "+kinds[0].String(), "write two faults")
		return
	}
	kind, target := kinds[0], f.targets()[kinds[0]-1]
	if c.broken(path + "." + kind.String()) {
		return
	}
	form := faultForms[kind]
	what := kind.String()
	if kind == OperatorFault {
		if f.Action == "" {
			c.obey(path, []rule{{true, "action", "is missing", "allowed: restart, shed, scale, stop-retries, empty-queue", nil}})
			return
		}
		form = actionForms[f.Action]
		form.takes = append([]string{"action"}, form.takes...)
		what = "the action " + f.Action
	}
	one := &faultChecker{c.mistakes, c.s, c.names, f, path, kind, target}
	one.hitsSomething(what, form.service, form.fleet)
	for _, key := range faultKeys {
		if c.Has(path+"."+key) && !slices.Contains(form.takes, key) {
			c.obey(path, []rule{
				{true, key, "does not belong to " + what, "remove it; allowed: at, " + strings.Join(form.takes, ", "), nil},
			})
		}
	}
	one.zone()
	one.consumers()
	one.strength()
	one.times()
}

// aftermath reports a last fault after which the run is over too soon to see what comes of it.
func (c *checker) aftermath() {
	s, last := c.s, -1
	for i := range s.Faults {
		f := &s.Faults[i]
		kind, _ := f.Kind()
		if kind == OperatorFault || kind == NoFault || f.For == 0 && kind != RestartFault && kind != FlushFault {
			continue
		}
		if last < 0 || f.End() > s.Faults[last].End() {
			last = i
		}
	}
	if last < 0 || s.Duration == 0 {
		return
	}
	f := &s.Faults[last]
	path, key := fmt.Sprintf("faults[%d]", last), "for"
	if !c.Has(path + ".for") {
		key = "at"
	}
	left, least := s.Duration-f.End(), max(time.Second, s.Model.Hold)
	c.obey(path,
		[]rule{{left >= 0 && left < least, key,
			fmt.Sprintf("the last fault ends %s before the end of the run of %s", short(left), short(s.Duration)),
			fmt.Sprintf("leave at least %s to see what comes after it: raise duration", short(least)), []string{"at"}}})
}

// population reports what a scenario with a population cannot have.
func (c *checker) population() {
	if f := c.s.population(); f != nil {
		(&populationChecker{c.lists.inherited, c.s, f}).check()
	}
}
