package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/internal/strictyaml"
)

// faultForms is what each kind of fault is about, and which keys it takes besides its own and at.
var faultForms = [...]struct {
	service, fleet bool
	takes          []string
}{
	OutageFault:   {service: true, takes: []string{"for", "mode", "share", "zone"}},
	SlowdownFault: {service: true, takes: []string{"for", "factor", "add", "requests", "share", "zone"}},
	ErrorsFault:   {service: true, takes: []string{"for", "rate", "share", "zone"}},
	CapacityFault: {service: true, takes: []string{"for", "factor", "share", "zone"}},
	LossFault:     {service: true, takes: []string{"for", "rate", "share", "zone"}},
	RestartFault:  {service: true, fleet: true, takes: []string{"for", "rollout", "share", "zone"}},
	DeployFault:   {service: true, takes: []string{"for", "factor", "rate", "rollout", "share", "zone"}},
	SurgeFault:    {fleet: true, takes: []string{"for", "factor"}},
	FlushFault:    {service: true, takes: []string{"share", "zone"}},
	RedisFault:    {service: true, fleet: true, takes: []string{"for", "share", "zone"}},
	OperatorFault: {service: true, fleet: true, takes: []string{"action"}},
}

// actionForms is the same for what an operator does.
var actionForms = map[string]struct {
	service, fleet bool
	takes          []string
}{
	DoRestart:   {service: true, fleet: true, takes: []string{"share"}},
	DoShed:      {fleet: true, takes: []string{"for", "rate"}},
	DoScale:     {service: true, takes: []string{"for", "factor", "share"}},
	StopRetries: {service: true, fleet: true, takes: []string{"for"}},
	EmptyQueue:  {service: true, takes: []string{"share"}},
}

// faultKeys are the keys that only some kinds take.
var faultKeys = []string{"for", "mode", "factor", "add", "rate", "requests", "share", "zone", "rollout", "action"}

// faultChecker looks at one fault, whose kind is known and whose target has a value.
type faultChecker struct {
	*mistakes
	s      *Scenario
	names  *names
	f      *Fault
	path   string
	kind   FaultKind
	target string // of a service or fleet, which need not exist
}

// hitsSomething reports a fault that hits nothing it could hit.
func (c *faultChecker) hitsSomething(what string, service, fleet bool) {
	path, target := c.path+"."+c.kind.String(), c.target
	quoted := strictyaml.Quote(target)
	switch {
	case service && c.names.isService[target], fleet && c.names.isFleet[target]:
	case c.names.isFleet[target]:
		c.Add(path, quoted+" is a fleet, but "+what+" hits a service", suggest(target, c.names.services))
	case c.names.isService[target]:
		c.Add(path, quoted+" is a service, but "+what+" hits a fleet", suggest(target, c.names.fleets))
	case service && fleet:
		c.Add(path, "no such service or fleet "+quoted, suggest(target, slices.Concat(c.names.services, c.names.fleets)))
	case service:
		c.Add(path, "no such service "+quoted, suggest(target, c.names.services))
	default:
		c.Add(path, "no such fleet "+quoted, suggest(target, c.names.fleets))
	}
}

// strength reports how much goes wrong, where that is missing or makes no sense.
func (c *faultChecker) strength() {
	f, kind, path, target := c.f, c.kind, c.path, c.target
	has := func(key string) bool { return c.Has(path + "." + key) }
	scales := kind == OperatorFault && f.Action == DoScale
	c.obey(path, []rule{
		{kind == SlowdownFault && !has("factor") && !has("add"), "", "the slowdown does not say how much slower",
			"write factor: 10 or add: 2s", nil},
		{kind == DeployFault && !has("factor") && !has("rate"), "", "the deploy does not say what is bad about it",
			"write factor: 3 or rate: 30%", nil},
		{(kind == CapacityFault || kind == SurgeFault || scales) &&
			!has("factor"), "factor", "is missing", "for example factor: 0.5", nil},
		{kind == FlushFault && c.names.isService[target] && !c.s.caches(target), kind.String(),
			strictyaml.Quote(target) + " is no cache", "set its cache, or hit one", nil},
		{kind == RedisFault && (c.names.isService[target] || c.names.isFleet[target]) && !c.s.shares(target), kind.String(),
			strictyaml.Quote(target) + " shares nothing in any variant",
			"write fleet: true in the retryBudget or circuitBreaker of a service that it calls, or in the rateLimit of its " +
				"gates", nil},
		{kind == SurgeFault && c.s.closed(target), kind.String(), strictyaml.Quote(target) +
			" is a closed loop, which has no rate to raise", "write a fleet with rate or curve, or a second fleet with once",
			nil},
		{kind == CapacityFault && f.Factor < 1 && c.s.tooSmall(target, f.Factor), "factor",
			fmt.Sprintf("%v of the workers of one replica of %s is as many as before, rounded", f.Factor, target),
			"give a replica more workers, or hit a share of the replicas", nil},
		{kind == CapacityFault && f.Factor >= 1, "factor", fmt.Sprintf("%v is no loss of capacity", f.Factor),
			"allowed: above 0 and below 1; for example 0.5", nil},
		{(kind == CapacityFault || scales) && c.names.isService[target] &&
			c.unlimited(c.s, target), kind.String(), strictyaml.Quote(target) + " has no workers to change", "set its workers",
			nil},
	})
}

// times reports faults that are not wholly within the run.
func (c *faultChecker) times() {
	f, kind, path, end := c.f, c.kind, c.path, c.s.Duration
	lasting := kind != RestartFault && kind != FlushFault && kind != OperatorFault
	past := end > 0 && f.At >= end
	missing := "is missing"
	if c.Has(path + ".for") {
		missing = "0s is no time"
	}
	last := "for"
	if f.For == 0 {
		last = "rollout"
	}
	c.obey(path, []rule{
		{past, "at", fmt.Sprintf("%s is past the end of the run, %s", short(f.At), short(end)),
			"lower it or raise duration", nil},
		{lasting && f.For == 0, "for", missing, "for example for: 30s", nil},
		{!past && end > 0 && f.End() > end, last, fmt.Sprintf("%s from %s on ends after the run of %s", short(f.End()-f.At),
			short(f.At), short(end)), "lower it or raise duration", []string{"at"}},
		{kind != RestartFault && f.Rollout > f.For, "rollout",
			fmt.Sprintf("%s is longer than the fault, for %s", short(f.Rollout), short(f.For)), "lower it or raise for",
			[]string{"for"}},
	})
}

// consumers reports faults that the simulator does not know of consumers: they would have to hand partitions over.
func (c *faultChecker) consumers() {
	f, kind, path, target := c.f, c.kind, c.path, c.target
	is := func(x Fleet) bool { return x.Name == target && x.Consumes() }
	restarts := kind == RestartFault || kind == OperatorFault && (f.Action == DoRestart || f.Action == DoShed)
	if restarts && slices.ContainsFunc(c.s.Clients, is) {
		key := kind.String()
		if kind == OperatorFault {
			key = "action"
		}
		c.obey(path, []rule{
			{true, key, strictyaml.Quote(target) + " consumes, and partitions that change hands are not modelled",
				"allowed for consumers: surge, and the action stop-retries", nil},
		})
	}
}

// zone reports a zone in which the fault hits nothing.
func (c *faultChecker) zone() {
	if !c.Has(c.path + ".zone") {
		return
	}
	var zones []string
	for i := range c.s.Services {
		if s := &c.s.Services[i]; s.Name == c.target {
			zones = s.Zones[:min(len(s.Zones), max(s.Replicas, 1))]
		}
	}
	for i := range c.s.Clients {
		if f := &c.s.Clients[i]; f.Name == c.target {
			zones = f.Zones[:min(len(f.Zones), max(f.Instances, 1))]
		}
	}
	fix := "write the zones of " + c.target + `, for example zones: ["a", "b", "c"]`
	if len(zones) > 0 {
		fix = "write one of " + strings.Join(slices.Compact(slices.Sorted(slices.Values(zones))), ", ")
	}
	c.obey(c.path, []rule{
		{!slices.Contains(zones, c.f.Zone), "zone",
			"nothing of " + c.target + " is in zone " + strictyaml.Quote(c.f.Zone), fix, nil},
		{c.Has(c.path + ".share"), "zone", "excludes share", "keep one of the two", nil},
	})
}
