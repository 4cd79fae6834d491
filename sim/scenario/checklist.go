package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/internal/strictyaml"
)

// callGraph is what all the calls of a scenario name, in any of its variants.
type callGraph struct {
	called  map[string]bool // services
	first   map[string]bool // services that are called when nothing has failed
	pooled  map[string]bool // services that are called through a pool
	connect map[string]bool // policies for connections
	unclear bool            // a mistake hides who calls whom
}

func newCallGraph() *callGraph {
	return &callGraph{called: map[string]bool{}, first: map[string]bool{}, pooled: map[string]bool{},
		connect: map[string]bool{}}
}

func (g *callGraph) add(call *Call) {
	g.called[call.To] = true
	if call.Pool > 0 {
		g.pooled[call.To] = true
	}
	if call.Connect != "" {
		g.connect[call.Connect] = true
	}
}

// inherited keeps what is wrong with the scenario's own services, which is not reported again of a variant that has
// them as they are.
type inherited struct {
	*mistakes
	own map[string]bool // "path: problem"
}

// found reports a mistake in a list of services, or of fleets: in those of a variant only if those of the scenario do
// not have it already, or the variant says it itself.
func (h *inherited) found(prefix, at, problem, fix string) {
	what := at + ": " + problem
	if prefix == "services" {
		h.own[what] = true
	} else if h.own[what] && !h.Has(prefix+"."+at) {
		return
	}
	if !h.broken(prefix + "." + at) {
		h.Add(prefix+"."+at, problem, fix)
	}
}

// listChecker looks at lists of services, the scenario's own and those of its variants, and at who calls them.
type listChecker struct {
	*inherited
	s     *Scenario
	names *names
	graph *callGraph
}

// everyService reports what is wrong with services, the scenario's own or as a variant has them.
func (c *listChecker) everyService(prefix string, services []Service) {
	own := prefix == "services"
	calls := own
	for i := range services {
		s := &services[i]
		if !own && !c.Has(prefix+"."+s.Name) {
			continue
		}
		c.service(prefix, s)
		if own || c.Has(prefix+"."+s.Name+".calls") {
			calls = true
			c.calls(prefix, s.Name, s.Calls)
		}
	}
	if calls {
		c.cycles(prefix, services)
	}
}

// service reports what is wrong with one service.
func (c *listChecker) service(prefix string, s *Service) {
	q := &s.Queue
	bounded := q.Limit > 0 || q.None || q.Work > 0
	idle := s.Workers == 0 && !c.s.hangs(s.Name)
	none := len(s.Calls) == 0
	for _, r := range []rule{
		{s.Workers > 0 && s.ServiceTime.IsZero() && none, "serviceTime", "workers that need no time have endless capacity",
			"for example serviceTime: exponential 50ms, or remove workers", []string{"workers", "calls"}},
		{s.Parallel && none, "parallel", "has no effect without calls", remove, []string{"calls"}},
		{s.CallsFirst && none, "callsFirst", "has no effect without calls", remove, []string{"calls"}},
		{s.SlowsQueued > 0 && idle, "slowsQueued", "has no effect without workers: nobody waits", "remove it or set workers",
			[]string{"workers"}},
		{s.SlowsQueuedMax > 0 && s.SlowsQueued == 0, "slowsQueuedMax", "has no effect without slowsQueued", remove,
			[]string{"slowsQueued"}},
		{*q != (Queue{}) && idle, "queue", "has no effect without workers: nobody waits", "remove it or set workers",
			[]string{"workers"}},
		{q.None && q.Limit > 0, "queue.none", "excludes limit", "keep one of the two", nil},
		{q.None && q.Work > 0, "queue.none", "excludes work", "keep one of the two", nil},
		{q.Limit > 0 && q.Work > 0, "queue.work", "excludes limit", "keep one of the two", nil},
		{q.Work > 0 && s.ServiceTime.IsZero(), "queue.work", "has no effect without a serviceTime",
			"bound the queue with limit", []string{"serviceTime"}},
		{q.WhenFull != "" && !bounded, "queue.whenFull", "has no effect on a queue without bound",
			"set limit, work or none, or remove it", []string{"queue.limit", "queue.work", "queue.none"}},
		{q.Target > 0 && q.Order != CoDel, "queue.target", "has no effect without order: codel", remove,
			[]string{"queue.order"}},
		{q.Interval > 0 && q.Order != CoDel, "queue.interval", "has no effect without order: codel", remove,
			[]string{"queue.order"}},
		{s.Connections.WhenFull != "" && s.Connections.Max == 0, "connections.whenFull", "has no effect without max", remove,
			[]string{"connections.max"}},
		{s.Connections.Backlog > 0 && s.Connections.Cost.IsZero() && s.Connections.WhenFull != WaitWhenFull,
			"connections.backlog", "has no effect: nobody waits for a connection that costs nothing",
			"set cost, or max with whenFull: wait", []string{"connections.cost", "connections.whenFull"}},
		{s.Connections.Cores > 0 && s.Connections.Cost.IsZero(), "connections.cores", "has no effect without a cost", remove,
			[]string{"connections.cost"}},
	} {
		c.obeyed(prefix, s.Name, r)
	}
	c.reacts(prefix, s)
}

// obeyed reports a rule that a service breaks.
func (c *listChecker) obeyed(prefix, name string, r rule) {
	at := name + "." + r.key
	depends := func(key string) bool { return c.broken(prefix + "." + name + "." + key) }
	// A variant cannot take back what has no effect any more because of what it says.
	inherited := strings.HasPrefix(r.problem, "has no effect") && !c.Has(prefix+"."+at)
	if r.wrong && !inherited && !slices.ContainsFunc(r.needs, depends) {
		c.found(prefix, at, r.problem, r.fix)
	}
}

// calls reports what is wrong with the calls of a fleet or service. prefix is the path of the list that it stands in.
func (c *listChecker) calls(prefix, caller string, calls []Call) {
	seen := map[string]bool{}
	for i, edge := range Edges(calls) {
		call := &edge
		at := caller + "." + edgeAt(calls, i)
		c.graph.add(call)
		if !strings.Contains(at, ".else[") {
			c.graph.first[call.To] = true
		}
		name := strictyaml.Quote(call.To)
		c.connects(prefix, at, call)
		switch {
		case c.broken(prefix + "." + at + ".to"):
		case call.To == "":
			c.graph.unclear = true
			c.found(prefix, at, "the call names no service", "for example {to: payment-db, times: 2}")
		case !c.names.isService[call.To] && c.names.isFleet[call.To]:
			c.graph.unclear = true
			c.found(prefix, at+".to", name+" is a fleet, not a service", "only services are called")
		case len(c.names.services) == 0: // that was said
		case !c.names.isService[call.To]:
			c.graph.unclear = true
			c.found(prefix, at+".to", "no such service "+name, suggest(call.To, c.names.services))
		case seen[call.To]:
			c.found(prefix, at+".to", name+" is called a second time",
				"write one call with times: 2, or with the sum of the times")
		default:
			c.misses(prefix, at, call)
		}
		seen[call.To] = true
	}
}

// connects reports a policy for connections that there is no use for, or that nobody has.
func (c *listChecker) connects(prefix, at string, call *Call) {
	if call.Connect == "" {
		return
	}
	listed := slices.ContainsFunc(c.s.Variants, func(v Variant) bool {
		_, ok := v.ConnectPolicy(call)
		return ok || v.Guards == nil && (v.PolicyFile != "" || !v.Policy.IsZero()) // its policy could not be read
	})
	switch {
	case call.Pool == 0 && !c.broken(prefix+"."+at+".pool"):
		c.found(prefix, at+".connect", "has no effect without a pool", "set pool, for example pool: 20")
	case !listed:
		c.found(prefix, at+".connect", "no variant's policy lists "+strictyaml.Quote(call.Connect),
			"for example policy: {services: {"+call.Connect+": {preset: connections}}}")
	}
}

// cycles reports services that call each other in a circle, which would be endless.
func (c *listChecker) cycles(prefix string, services []Service) {
	index := map[string]int{}
	for i := range services {
		index[services[i].Name] = i
	}
	const onPath, done = 1, 2
	state := make([]int, len(services))
	var path []string
	var visit func(i int)
	visit = func(i int) {
		state[i] = onPath
		path = append(path, services[i].Name)
		for k, call := range Edges(services[i].Calls) {
			next, ok := index[call.To]
			switch {
			case !ok || state[next] == done:
			case state[next] == onPath:
				circle := append(slices.Clone(path[slices.Index(path, call.To):]), call.To)
				at := services[i].Name + "." + edgeAt(services[i].Calls, k) + ".to"
				c.found(prefix, at, "the calls go in a circle: "+shorten(circle), "remove one of them")
			default:
				visit(next)
			}
		}
		path = path[:len(path)-1]
		state[i] = done
	}
	for i := range services {
		if state[i] == 0 {
			visit(i)
		}
	}
}

// shorten writes a circle of calls on one line.
func shorten(circle []string) string {
	const most = 12
	if n := len(circle); n > most {
		circle = slices.Concat(circle[:most/2], []string{fmt.Sprintf("(%d more)", n-most)}, circle[n-most/2:])
	}
	return strings.Join(circle, " -> ")
}

// edgeAt is where the i-th of Edges stands below a caller.
func edgeAt(calls []Call, i int) string {
	for k := range calls {
		if i == 0 {
			return fmt.Sprintf("calls[%d]", k)
		}
		if i--; i < len(calls[k].Else) {
			return fmt.Sprintf("calls[%d].else[%d]", k, i)
		}
		i -= len(calls[k].Else)
	}
	return "calls"
}
