package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/sim/expect"
)

// checker looks for mistakes that no single value shows.
type checker struct {
	*strictyaml.Positions
	s         *Scenario
	elsewhere strictyaml.Errors // mistakes in policy files

	failed             map[string]bool // paths without a value, because of an earlier mistake
	base               map[string]bool // "path: problem" of what was found in the scenario's own services
	fleets             []string        // names
	services           []string
	isFleet, isService map[string]bool
	called             map[string]bool // services that somebody calls, in any variant
	pooled             map[string]bool // services that somebody calls through a pool, in any variant
	connect            map[string]bool // policies for connections that some call names
	unclear            bool            // a mistake hides who calls whom
}

func newChecker(at *strictyaml.Positions, s *Scenario) *checker {
	c := &checker{Positions: at, s: s, base: map[string]bool{}, called: map[string]bool{}, pooled: map[string]bool{},
		connect: map[string]bool{},
		isFleet: map[string]bool{}, isService: map[string]bool{}}
	for i := range s.Clients {
		c.fleets = append(c.fleets, s.Clients[i].Name)
		c.isFleet[s.Clients[i].Name] = true
	}
	for i := range s.Services {
		c.services = append(c.services, s.Services[i].Name)
		c.isService[s.Services[i].Name] = true
	}
	c.noteFailed()
	return c
}

func (c *checker) noteFailed() {
	c.failed = map[string]bool{}
	for _, path := range c.Failed() {
		c.failed[path] = true
	}
}

// inline reports a mistake of an inline policy, whose place is in this file already.
func (c *checker) inline(e strictyaml.Error) {
	c.Fail(&yaml.Node{Line: e.Line, Column: e.Col}, e.Service, e.Field, e.Problem, e.Fix)
}

// broken reports whether a path, or something around it, has no value because of an earlier mistake.
func (c *checker) broken(path string) bool {
	for path != "" {
		if c.failed[path] {
			return true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return false
}

// rule is one thing that may be wrong. key is where, below the path of what is looked at; needs are the other keys that
// it depends on: with a mistake in one of them nothing is known.
type rule struct {
	wrong             bool
	key, problem, fix string
	needs             []string
}

// obey reports the rules that are broken at a path.
func (c *checker) obey(path string, rules []rule) {
	for _, r := range rules {
		if !r.wrong || slices.ContainsFunc(append(r.needs, r.key), func(key string) bool {
			return c.broken(below(path, key))
		}) {
			continue
		}
		c.Add(below(path, r.key), r.problem, r.fix)
	}
}

// short writes 1m instead of 1m0s.
func short(d time.Duration) string {
	f := strictyaml.Field{Kind: strictyaml.Duration}
	return f.Text(reflect.ValueOf(d))
}

// below joins a path and a key, which may be empty.
func below(path, key string) string {
	switch {
	case key == "":
		return path
	case path == "":
		return key
	}
	return path + "." + key
}

const remove = "remove it"

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
	c.names()
	for i := range s.Clients {
		c.fleet(&s.Clients[i])
	}
	c.everyService("services", s.Services)
	for i := range s.Variants {
		c.variant(&s.Variants[i])
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

// names reports names that two things have, or that no expectation could speak of.
func (c *checker) names() {
	const fix = "allowed: one word of at most 100 bytes without brackets, commas and comparisons, other than all, " +
		"before, during, after and p99"
	for _, list := range []struct {
		path  string
		names []string
	}{{"clients", c.fleets}, {"services", c.services}} {
		for _, name := range list.names {
			problem := ""
			switch {
			case !expect.CanName(name):
				problem = strictyaml.Quote(name) + " cannot stand in an expectation"
			case strings.Contains(name, "->"):
				problem = strictyaml.Quote(name) + " reads like a call"
			}
			if problem != "" {
				c.Add(list.path+"."+name, problem, fix)
			}
		}
	}
	for _, name := range c.services {
		if c.isFleet[name] {
			c.Add("services."+name, strictyaml.Quote(name)+" is the name of a fleet too", "give one of them another name")
		}
	}
}

// unused reports services that nobody calls, and costs that nobody pays.
func (c *checker) unused() {
	if c.unclear || len(c.fleets) == 0 || c.callsFailed() {
		return
	}
	for i := range c.s.Services {
		s := &c.s.Services[i]
		c.obey("services."+s.Name, []rule{
			{!c.called[s.Name], "", "nobody calls it", "add it to the calls of a fleet or service, or remove it", nil},
			{s.RefusalCost > 0 && !c.gated(s.Name), "refusalCost",
				"has no effect, because no variant has a gate in front of " + s.Name,
				"write protect: {" + s.Name + ": {}} in the policy of a variant, or remove it", nil},
			{c.called[s.Name] && !c.pooled[s.Name] && c.Has("services."+s.Name+".connections"), "connections",
				"has no effect, because no caller has a pool", "write the call as {to: " + s.Name + ", pool: 20}", nil},
		})
	}
}

// callsFailed reports whether calls could not be read.
func (c *checker) callsFailed() bool {
	for path := range c.failed {
		if strings.Contains(path, "calls") || path == "clients" || path == "services" || strings.HasPrefix(path, "variants") {
			return true
		}
	}
	return false
}
