package httpdrill

import (
	"fmt"
	"slices"
	"time"

	"github.com/abate-go/abate/sim/scenario"
)

// What one machine can hold. The rate is at least such that some requests fall into every second, so that a share of
// them means something.
const (
	leastRate     = 20
	mostRate      = 5000 // attempts per second, too
	mostInstances = 1000
	mostWorkers   = 10_000
	mostReplicas  = 50
	mostPlaces    = 1_000_000
	leastBefore   = time.Second
	leastTrouble  = 500 * time.Millisecond
	leastAfter    = 2 * time.Second
	longest       = 10 * time.Minute
	mostLoad      = 0.9 // of the capacity
	mostDrain     = time.Minute
)

const notNaive = "what stands between these clients and the service is not naive; run it without --via"

// problems collects what the drill cannot run.
type problems struct {
	file string
	list []string
}

// refuse adds a problem unless ok.
func (p *problems) refuse(ok bool, where, format string, args ...any) {
	text := where + ": " + fmt.Sprintf(format, args...)
	if p.file != "" {
		text = p.file + ": " + text
	}
	if !ok && !slices.Contains(p.list, text) { // variants share most of what they have
		p.list = append(p.list, text)
	}
}

// supports adds a problem unless ok: that the drill supports something else.
func (p *problems) supports(ok bool, where, what string) {
	p.refuse(ok, where, "the drill supports %s; use abate sim", what)
}

// span adds a problem unless a length of time is in a range.
func (p *problems) span(where string, d, low, high time.Duration) {
	p.refuse(d >= low && d <= high, where, "%v is out of range; the drill supports %v to %v, in real time; use abate sim",
		d, low, high)
}

// Problems returns everything about c that one machine cannot hold or the drill does not run, one sentence each that
// begins with the place in the scenario.
func (c Config) Problems() []string {
	s := c.Scenario
	p := &problems{file: s.File}
	p.refuse(s.Scale <= 1, "scale", "%d; the drill runs everything at full size; use abate sim", s.Scale)
	p.span("warmUp", s.WarmUp, 0, time.Minute)
	p.span("model.drain", s.Model.Drain, 0, mostDrain)
	p.supports(s.Model.Cancellation != scenario.CancellationPropagates, "model.cancellation",
		"services that do not notice when their caller leaves (ignored)")
	p.supports(s.Model.ServiceTimeDrawn == scenario.DrawnAtStart, "model.serviceTimeDrawn",
		"service times drawn when the work begins (start)")
	for i := range s.Clients {
		p.fleet(&s.Clients[i])
	}
	p.refuse(len(s.Clients) == 1, "clients", "%d fleets; the drill supports one; use abate sim", len(s.Clients))
	for i := range s.Variants {
		v := &s.Variants[i]
		all := s.ServicesOf(v)
		p.services(s, all)
		for k := range all {
			gate, gated := v.ProtectionOf(all[k].Name)
			p.supports(gate.Shed.CPU == 0, "variants."+v.Name+".policy.protect."+all[k].Name+".shed.cpu",
				"gates that do not look at the processor, which is not the simulated one")
			via := c.Via != nil && slices.Contains(c.Acts, v.Name)
			p.replicated("services."+all[k].Name, &all[k], gated, via)
		}
	}
	p.faults(s)
	for i := range s.Clients {
		for _, call := range s.Clients[i].Calls {
			p.refuse(c.Via == nil || !call.Naive, "clients."+s.Clients[i].Name+".calls."+call.To+".naive", notNaive)
		}
		for k := range s.Variants {
			v := &s.Variants[k]
			p.refuse(c.Via == nil || !slices.Contains(v.Naive, s.Clients[i].Name), "variants."+v.Name+".naive", notNaive)
		}
	}
	for _, name := range c.Acts {
		p.refuse(c.variant(name) != nil, "variants", "there is no %q", name)
	}
	if len(p.list) == 0 {
		for _, name := range c.Acts {
			p.size(c.cast(c.variant(name)), s)
		}
	}
	return p.list
}

func (p *problems) fleet(f *scenario.Fleet) {
	where := "clients." + f.Name
	p.supports(f.Open() && f.Method == "", where, "an open loop with a rate")
	p.refuse(!f.Consumes(), where+".topic", "the drill supports callers, not consumers; abate drill kafka runs those, "+
		"abate sim runs this")
	p.supports(len(f.Curve) == 0, where+".curve", "a constant rate")
	p.supports(f.Daily.Swing == 0, where+".daily", "a constant rate")
	if f.Open() && len(f.Curve) == 0 {
		p.refuse(f.Rate >= leastRate && f.Rate <= mostRate, where+".rate",
			"%.4g is out of range; the drill supports %d to %d requests per second; use abate sim", f.Rate, leastRate, mostRate)
	}
	p.refuse(f.Instances <= mostInstances, where+".instances", "%d is out of range; the drill supports at most %d; use "+
		"abate sim", f.Instances, mostInstances)
	p.refuse(len(f.Calls) == 1, where+".calls", "%d services; the drill supports clients that call one; use abate sim",
		len(f.Calls))
	for i := range f.Calls {
		p.call(where, &f.Calls[i])
	}
}

func (p *problems) call(where string, c *scenario.Call) {
	where += ".calls." + c.To
	p.supports(c.Times <= 1 && (c.Share == 0 || c.Share == 1), where, "one call per request")
	p.supports(!c.Optional, where+".optional", "calls that the request needs")
	p.supports(c.Latency.IsZero(), where+".latency", "this machine's own network, without latency")
	p.supports(c.Pool == 0, where+".pool", "connections without a limit")
	p.supports(len(c.Else) == 0, where+".else", "calls that nobody is asked for instead")
	p.supports(c.Priority == "", where+".priority", "calls that say no priority")
}

// services checks that there is one service with workers, and at most one behind it.
func (p *problems) services(s *scenario.Scenario, all []scenario.Service) {
	front := ""
	if len(s.Clients) == 1 && len(s.Clients[0].Calls) == 1 {
		front = s.Clients[0].Calls[0].To
	}
	p.refuse(len(all) <= 2, "services", "%d; the drill supports the service that the clients call and at most one behind "+
		"it; use abate sim", len(all))
	for i := range all {
		x := &all[i]
		where := "services." + x.Name
		p.service(where, x)
		switch {
		case front == "":
		case x.Name == front:
			p.refuse(x.Workers >= 1 && x.Workers <= mostWorkers, where+".workers",
				"the drill supports 1 to %d workers in the service that the clients call; use abate sim", mostWorkers)
			p.refuse(x.Queue.None || x.Queue.Limit >= 1 && x.Queue.Limit <= mostPlaces, where+".queue",
				"the drill supports a queue with a limit of at most %d, or none; use abate sim", mostPlaces)
			p.refuse(len(x.Calls) <= 1, where+".calls", "%d services; the drill supports one; use abate sim", len(x.Calls))
		default:
			p.supports(x.Workers == 0, where+".workers", "a service without workers behind the one that the clients call")
			p.supports(len(x.Calls) == 0, where+".calls", "one service behind the one that the clients call")
			p.supports(replicas(x) == 1, where+".replicas", "one replica of the service behind the one that the clients call")
		}
		for k := range x.Calls {
			p.call(where, &x.Calls[k])
		}
	}
}

func (p *problems) service(where string, x *scenario.Service) {
	q := x.Queue
	p.supports(x.SlowsDown == 0 && x.SlowsQueued == 0, where+".slowsDown", "service times that do not depend on the load")
	p.supports(q.Work == 0, where+".queue.work", "a queue with a limit")
	p.supports(q.WhenFull != scenario.SilenceWhenFull, where+".queue.whenFull",
		"a queue that answers an error when it is full")
	p.supports(q.Order == "" || q.Order == scenario.FIFO, where+".queue.order", "a queue in order of arrival (fifo)")
	p.supports(!q.DropExpired, where+".queue.dropExpired", "a queue that does not know when its callers give up")
	p.supports(x.Connections.Max == 0 && x.Connections.Cost.IsZero(), where+".connections",
		"connections without a limit or a cost")
	p.supports(!x.OptimisticLock, where+".optimisticLock", "requests that do not depend on each other")
	p.supports(!x.IsCache(), where+".cache", "services that answer everything")
	p.supports(!x.Lives() && x.Start.WarmUp == 0, where,
		"replicas that stay as they are (no crash, probes, autoscale or warm-up)")
	p.supports(x.RetryAfter%time.Second == 0, where+".retryAfter", "whole seconds, which is all that HTTP can say")
}

// faults checks what goes wrong, and that there is time before and after it.
func (p *problems) faults(s *scenario.Scenario) {
	p.refuse(len(s.Faults) > 0, "faults", "there are none, so there is nothing to recover from; use abate sim")
	for i := range s.Faults {
		f := &s.Faults[i]
		kind, target := f.Kind()
		ok := kind == scenario.OutageFault || kind == scenario.SlowdownFault || kind == scenario.ErrorsFault
		p.supports(ok, fmt.Sprintf("faults[%d]: %s of %s", i, kind, target), "outage, slowdown and errors of a service")
		p.supports(f.Zone == "", fmt.Sprintf("faults[%d].zone", i), "faults without a zone: it has none")
	}
	begin, end := s.Trouble()
	p.refuse(s.Duration <= longest, "duration", "%v is out of range; the drill supports at most %v, in real time; use "+
		"abate sim", s.Duration, longest)
	if len(s.Faults) > 0 {
		const real = "%v %s; the drill needs at least %v to measure what is normal and what comes back"
		p.refuse(begin >= leastBefore, "faults", real, begin, "before the first", leastBefore)
		p.refuse(s.Duration-end >= leastAfter, "faults", real, s.Duration-end, "after the last", leastAfter)
	}
}

// size checks that an act is not too much for one machine, or for its own service.
func (p *problems) size(a cast, s *scenario.Scenario) {
	p.refuse(a.work() > 0, "services."+a.service().Name+".serviceTime",
		"it takes no time; the drill needs a capacity to overload")
	if a.work() <= 0 {
		return
	}
	where := "clients." + a.fleet.Name + ".rate"
	p.refuse(a.stormLoad() <= mostRate, where, "%.4g/s × %d attempts in %s is more than the %d attempts per second "+
		"that the drill supports; use abate sim",
		a.fleet.Rate, a.clientPolicy().MaxRetries+1, a.variant.Name, mostRate)
	p.refuse(a.fleet.Rate <= mostLoad*a.capacity(), where, "%.4g/s is more than nine tenths of what %s can do (%d "+
		"workers / %v = %.4g/s): it would be in trouble without any fault; lower the rate or raise the workers",
		a.fleet.Rate, a.service().Name, a.workers(), a.work(), a.capacity())
	begin, _ := s.Trouble()
	p.refuse(a.fleet.Rate*begin.Seconds() >= leastRate, "faults",
		"%.4g requests before the first are too few to know what is normal; at least %d are needed",
		a.fleet.Rate*begin.Seconds(), leastRate)
	if t := a.clientPolicy().AttemptTimeout; t > 0 {
		p.refuse(a.work() < t, "services."+a.service().Name+".serviceTime",
			"%v is not below the attemptTimeout of %v in %s: no request could be answered in time", a.work(), t, a.variant.Name)
	}
}
