package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/strictyaml"
)

// faultForms is what each kind of fault is about, and which keys it takes besides its own and at.
var faultForms = [...]struct {
	service, fleet bool
	takes          []string
}{
	OutageFault:   {service: true, takes: []string{"for", "mode", "share"}},
	SlowdownFault: {service: true, takes: []string{"for", "factor", "add", "requests", "share"}},
	ErrorsFault:   {service: true, takes: []string{"for", "rate", "share"}},
	CapacityFault: {service: true, takes: []string{"for", "factor", "share"}},
	LossFault:     {service: true, takes: []string{"for", "rate", "share"}},
	RestartFault:  {service: true, fleet: true, takes: []string{"for", "rollout", "share"}},
	DeployFault:   {service: true, takes: []string{"for", "factor", "rate", "rollout", "share"}},
	SurgeFault:    {fleet: true, takes: []string{"for", "factor"}},
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
var faultKeys = []string{"for", "mode", "factor", "add", "rate", "requests", "share", "rollout", "action"}

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
	c.target(path+"."+kind.String(), target, what, form.service, form.fleet)
	for _, key := range faultKeys {
		if c.Has(path+"."+key) && !slices.Contains(form.takes, key) {
			c.obey(path, []rule{
				{true, key, "does not belong to " + what, "remove it; allowed: at, " + strings.Join(form.takes, ", "), nil},
			})
		}
	}
	c.consumerFault(f, kind, path, target)
	c.strength(f, kind, path, target)
	c.times(f, kind, path)
}

// target reports a fault that hits nothing it could hit.
func (c *checker) target(path, target, what string, service, fleet bool) {
	quoted := strictyaml.Quote(target)
	switch {
	case service && c.isService[target], fleet && c.isFleet[target]:
	case c.isFleet[target]:
		c.Add(path, quoted+" is a fleet, but "+what+" hits a service", suggest(target, c.services))
	case c.isService[target]:
		c.Add(path, quoted+" is a service, but "+what+" hits a fleet", suggest(target, c.fleets))
	case service && fleet:
		c.Add(path, "no such service or fleet "+quoted, suggest(target, slices.Concat(c.services, c.fleets)))
	case service:
		c.Add(path, "no such service "+quoted, suggest(target, c.services))
	default:
		c.Add(path, "no such fleet "+quoted, suggest(target, c.fleets))
	}
}

// strength reports how much goes wrong, where that is missing or makes no sense.
func (c *checker) strength(f *Fault, kind FaultKind, path, target string) {
	has := func(key string) bool { return c.Has(path + "." + key) }
	scales := kind == OperatorFault && f.Action == DoScale
	c.obey(path, []rule{
		{kind == SlowdownFault && !has("factor") && !has("add"), "", "the slowdown does not say how much slower",
			"write factor: 10 or add: 2s", nil},
		{kind == DeployFault && !has("factor") && !has("rate"), "", "the deploy does not say what is bad about it",
			"write factor: 3 or rate: 30%", nil},
		{(kind == CapacityFault || kind == SurgeFault || scales) &&
			!has("factor"), "factor", "is missing", "for example factor: 0.5", nil},
		{kind == SurgeFault && c.closed(target), kind.String(), strictyaml.Quote(target) +
			" is a closed loop, which has no rate to raise", "write a fleet with rate or curve, or a second fleet with once",
			nil},
		{kind == CapacityFault && f.Factor < 1 && c.tooSmall(target, f.Factor), "factor",
			fmt.Sprintf("%v of the workers of one replica of %s is as many as before, rounded", f.Factor, target),
			"give a replica more workers, or hit a share of the replicas", nil},
		{kind == CapacityFault && f.Factor >= 1, "factor", fmt.Sprintf("%v is no loss of capacity", f.Factor),
			"allowed: above 0 and below 1; for example 0.5", nil},
		{(kind == CapacityFault || scales) && c.isService[target] &&
			c.unlimited(target), kind.String(), strictyaml.Quote(target) + " has no workers to change", "set its workers", nil},
	})
}

// unlimited reports whether a service has workers without number in all variants.
func (c *checker) unlimited(service string) bool {
	is := func(s Service) bool { return s.Name == service && s.Workers > 0 }
	return !c.broken("services."+service+".workers") && !slices.ContainsFunc(c.s.Services, is) &&
		!slices.ContainsFunc(c.s.Variants, func(v Variant) bool { return slices.ContainsFunc(v.Overrides, is) })
}

// times reports faults that are not wholly within the run.
func (c *checker) times(f *Fault, kind FaultKind, path string) {
	end := c.s.Duration
	lasting := kind != RestartFault && kind != OperatorFault
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

// aftermath reports a last fault after which the run is over too soon to see what comes of it.
func (c *checker) aftermath() {
	s, last := c.s, -1
	for i := range s.Faults {
		f := &s.Faults[i]
		if kind, _ := f.Kind(); kind == OperatorFault || kind == NoFault || f.For == 0 && kind != RestartFault {
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

// closed reports whether a fleet is a closed loop, or sends a fixed number of requests.
func (c *checker) closed(fleet string) bool {
	return slices.ContainsFunc(c.s.Clients, func(f Fleet) bool { return f.Name == fleet && !f.Open() })
}

// tooSmall reports whether a replica has so few workers that a part of them is as many.
func (c *checker) tooSmall(service string, factor float64) bool {
	return slices.ContainsFunc(c.s.Services, func(x Service) bool {
		return x.Name == service && x.Workers > 0 && max(1, math.Round(float64(x.Workers)*factor)) >= float64(x.Workers)
	})
}
