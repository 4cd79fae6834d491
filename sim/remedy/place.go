package remedy

import (
	"math"
	"slices"
	"time"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim/scenario"
)

// place is where a change may be made: the calls to a service under one policy, and the service itself.
type place struct {
	listed    string            // the name under which the policy file configures the calls
	as        policyfile.Policy // the policy as it is written,
	policy    policyfile.Policy // and with its defaults
	callers   int               // instances that call, in full size
	rate      float64           // calls per second of one of them, on a good day
	latency   time.Duration     // of an answer on a good day, about
	patience  time.Duration     // of the users, the shortest; 0 for no end
	capacity  float64           // of the service, requests per second in full size; +Inf for no limit
	replicas  int               // of the service, in full size
	service   scenario.Service
	gate      policyfile.Protection
	gated     bool
	mayGate   bool // the service speaks the language of gates
	retries   bool // somebody above or below tries again, too: it matters who owns the retries
	consuming bool // the calls are made for messages
}

// layout is what places are made from.
type layout struct {
	s        *scenario.Scenario
	v        *scenario.Variant
	services []scenario.Service
	rates    map[string]float64 // of all instances of a caller, requests per second
}

// placesOf lists the places of a variant, those called by clients first.
func placesOf(s *scenario.Scenario, v *scenario.Variant) []place {
	l := &layout{s: s, v: v, services: s.ServicesOf(v), rates: map[string]float64{}}
	var places []place
	at := map[string]int{}
	add := func(caller string, instances int, c *scenario.Call, f *scenario.Fleet) {
		listed := l.listedAs(caller, c.To)
		i, known := at[listed]
		if !known {
			i = len(places)
			at[listed] = i
			places = append(places, l.place(caller, listed, c))
		}
		p := &places[i]
		calls := l.rate(caller) * c.Often() // of all of them
		total := p.rate*float64(p.callers) + calls
		p.callers += instances
		p.rate = total / float64(p.callers)
		if f != nil && f.Patience > 0 && (p.patience == 0 || f.Patience < p.patience) {
			p.patience = f.Patience
		}
		p.consuming = p.consuming || f != nil && f.Consumes()
	}
	for i := range s.Clients {
		f := &s.Clients[i]
		for k := range f.Calls {
			add(f.Name, max(f.Instances, 1)*l.full(f.Name), &f.Calls[k], f)
		}
	}
	for i := range l.services {
		for k := range l.services[i].Calls {
			add(l.services[i].Name, max(l.services[i].Replicas, 1)*l.full(l.services[i].Name), &l.services[i].Calls[k], nil)
		}
	}
	return places
}

// full is by how much there are more instances of a program in full size.
func (l *layout) full(program string) int {
	instances, _ := l.s.FullSize(program)
	return instances
}

// listedAs is the name under which a policy file configures a call.
func (l *layout) listedAs(caller, callee string) string {
	if l.v.Guards != nil {
		if edge := caller + " -> " + callee; slices.ContainsFunc(l.v.Guards.Services, func(x policyfile.Service) bool {
			return x.Name == edge
		}) {
			return edge
		}
	}
	return callee
}

func (l *layout) place(caller, listed string, c *scenario.Call) place {
	x := l.service(c.To)
	instances, wider := l.s.FullSize(c.To)
	p := place{listed: listed, as: l.v.PolicyOf(caller, c.To), service: *x, latency: l.latency(x),
		replicas: max(x.Replicas, 1) * instances, capacity: x.Capacity() * float64(instances*wider),
		mayGate: !slices.Contains(l.v.Naive, c.To), retries: len(x.Calls) > 0 || l.service(caller) != nil}
	p.policy = p.as.WithDefaults()
	p.gate, p.gated = l.v.ProtectionOf(c.To)
	return p
}

func (l *layout) service(name string) *scenario.Service {
	for i := range l.services {
		if l.services[i].Name == name {
			return &l.services[i]
		}
	}
	return nil
}

// latency is about how long an answer of a service takes on a good day: its own work and its calls.
func (l *layout) latency(x *scenario.Service) time.Duration {
	behind := time.Duration(0)
	for i := range x.Calls {
		one := time.Duration(float64(l.latency(l.service(x.Calls[i].To))+2*x.Calls[i].Latency.Mean()) *
			x.Calls[i].Often())
		if x.Parallel {
			behind = max(behind, one)
		} else {
			behind += one
		}
	}
	return x.ServiceTime.Mean() + behind
}

// rate is how many requests per second a fleet or service works on, in full size, on a good day. There are no cycles.
func (l *layout) rate(program string) float64 {
	if sum, known := l.rates[program]; known {
		return sum
	}
	sum := 0.0
	for i := range l.s.Clients {
		f := &l.s.Clients[i]
		if f.Name == program {
			sum += l.offered(f) * float64(max(l.s.Scale, 1))
		}
		for k := range f.Calls {
			if f.Calls[k].To == program {
				sum += l.rate(f.Name) * f.Calls[k].Often()
			}
		}
	}
	for i := range l.services {
		for k := range l.services[i].Calls {
			if c := &l.services[i].Calls[k]; c.To == program {
				sum += l.rate(l.services[i].Name) * c.Often()
			}
		}
	}
	l.rates[program] = sum
	return sum
}

// offered is what a fleet offers per second.
func (l *layout) offered(f *scenario.Fleet) float64 {
	switch {
	case f.HoldsSessions(): // after all have been cut
		return float64(f.Users) / f.Session.Returns.Mean().Seconds()
	case f.Users > 0:
		answer := time.Duration(0)
		for i := range f.Calls {
			answer += l.latency(l.service(f.Calls[i].To))
		}
		return float64(f.Users) / math.Max((f.Think.Mean()+answer).Seconds(), 0.001)
	case f.Once > 0:
		return float64(f.Once) / math.Max(f.Within.Seconds(), 1)
	case len(f.Curve) > 0:
		highest := 0.0
		for _, p := range f.Curve {
			highest = math.Max(highest, p.Rate)
		}
		return highest
	}
	return f.Rate
}
