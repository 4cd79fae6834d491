//go:build !race

package rehearse

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// scraping is how often Prometheus asks the simulated programs.
const scraping = 15 * time.Second

// simulated runs a scenario in virtual time and returns what Prometheus would have scraped: of each fleet one program,
// whose guards tell metrics.Metrics as they do in production. Whenever a fleet is restarted its counters begin at
// zero again.
func simulated(t *testing.T, text string, seed uint64) []inputSeries {
	t.Helper()
	s, err := scenario.Parse("alerts.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v := &s.Variants[0]
	var programs []*simProgram
	for i := range s.Clients {
		p := &simProgram{name: s.Clients[i].Name, warmUp: s.WarmUp, series: map[string][]float64{}}
		for f := range s.Faults {
			if kind, target := s.Faults[f].Kind(); kind == scenario.RestartFault && target == p.name {
				p.downs = append(p.downs, outOfService{s.Faults[f].At, s.Faults[f].End()})
			}
		}
		p.start(t)
		for _, call := range s.Clients[i].Calls {
			policy := v.PolicyOf(p.name, call.To)
			p.under(t, call.To, policy.Policy)
			policy.Observer = abate.ObserverFunc(func(e abate.Event) { p.observe(t, call.To, e) })
			v.Guards.Services = append(v.Guards.Services, policyfile.Service{Name: p.name + " -> " + call.To, Policy: policy})
		}
		programs = append(programs, p)
	}
	world, err := engine.New(s, v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := world.Run(seed, false, nil); err != nil {
		t.Fatal(err)
	}
	var all []inputSeries
	for _, p := range programs {
		p.until(t, s.Duration+scraping)
		all = append(all, p.input()...)
	}
	return all
}

// simProgram is one simulated process with its own metrics.
type simProgram struct {
	name    string
	warmUp  time.Duration
	downs   []outOfService
	metrics *metrics.Metrics
	from    *series.Registry
	told    map[string]abate.Observer // by service
	state   map[string]float64        // of the circuit, by service
	policy  []*series.Registry        // what it shows of its policies
	scraped time.Duration             // the next time
	series  map[string][]float64      // a value for each scrape; NaN where there was none
}

// outOfService is when a program is not there.
type outOfService struct{ from, to time.Duration }

// start gives the program new metrics, as a process that starts has.
func (p *simProgram) start(t *testing.T) {
	p.metrics, p.from = registered(t)
	p.told, p.state = map[string]abate.Observer{}, map[string]float64{}
}

// registered makes metrics with a registry of their own.
func registered(t testing.TB) (*metrics.Metrics, *series.Registry) {
	t.Helper()
	m, registry := metrics.New(), new(series.Registry)
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	return m, registry
}

// under shows the policy of a service, as the program's own guard would.
func (p *simProgram) under(t *testing.T, service string, policy abate.Policy) {
	p.policy = append(p.policy, shownPolicies(t, map[string]abate.Policy{service: policy}, nil))
}

// shownPolicies shows what is shown of policies and protections, by service.
func shownPolicies(t testing.TB, guards map[string]abate.Policy,
	gates map[string]inbound.Protection) *series.Registry {
	t.Helper()
	metrics, registry := registered(t)
	for name, p := range guards {
		g, err := abate.New(name, p)
		if err != nil {
			t.Fatal(err)
		}
		metrics.Add(g)
	}
	for name, p := range gates {
		g, err := inbound.NewGate(name, p)
		if err != nil {
			t.Fatal(err)
		}
		metrics.AddGate(g)
	}
	return registry
}

func (p *simProgram) observe(t *testing.T, service string, e abate.Event) {
	p.until(t, e.At-p.warmUp)
	if e.Kind == core.BreakerChanged {
		p.state[service] = map[string]float64{"closed": 0, "open": 2}[e.To.String()]
		if name := e.To.String(); name != "closed" && name != "open" {
			p.state[service] = 1
		}
	}
	observer := p.told[service]
	if observer == nil {
		var policy abate.Policy
		p.metrics.Adjust(service, &policy)
		observer, p.told[service] = policy.Observer, policy.Observer
		p.state[service] += 0
	}
	observer.Observe(e)
}

// until makes the scrapes that come before now.
func (p *simProgram) until(t *testing.T, now time.Duration) {
	for ; p.scraped < now; p.scraped += scraping {
		if len(p.downs) > 0 && p.scraped >= p.downs[0].from {
			if p.scraped < p.downs[0].to {
				continue
			}
			p.downs = p.downs[1:]
			p.start(t)
		}
		p.scrape(t)
	}
}

func (p *simProgram) scrape(t *testing.T) {
	p.gather(t, p.from, "")
	for _, policy := range p.policy {
		p.gather(t, policy, "abate_policy_")
	}
	for service, state := range p.state {
		labels := []string{"service=" + strconv.Quote(service)}
		p.note("circuit_breaker_state", labels, state)
		open := 0.0
		if state == 2 {
			open = 1
		}
		p.note("abate_circuit_breaker_open", labels, open)
	}
}

// gather notes the metrics whose names begin with prefix.
func (p *simProgram) gather(t *testing.T, from *series.Registry, prefix string) {
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		// one is by the clock of this machine
		name := family.Desc.Name
		if name == "abate_amplification_ratio" || !strings.HasPrefix(name, prefix) {
			continue
		}
		for _, s := range family.Samples {
			labels := make([]string, 0, len(s.Values))
			for i, value := range s.Values {
				labels = append(labels, s.Desc.Labels[i]+"="+strconv.Quote(value))
			}
			if s.Kind == series.CounterKind || s.Kind == series.GaugeKind {
				p.note(name, labels, s.Value)
			}
		}
	}
}

func (p *simProgram) note(name string, labels []string, value float64) {
	labels = append(slices.Clone(labels), `job="checkout"`, "instance="+strconv.Quote(p.name))
	key := name + "{" + strings.Join(labels, ",") + "}"
	list := p.series[key]
	for time.Duration(len(list))*scraping < p.scraped {
		list = append(list, math.NaN())
	}
	p.series[key] = append(list, value)
}

// input is what promtool is given.
func (p *simProgram) input() []inputSeries {
	var all []inputSeries
	for _, key := range slices.Sorted(maps.Keys(p.series)) {
		values := make([]string, len(p.series[key]))
		for i, v := range p.series[key] {
			if values[i] = strconv.FormatFloat(v, 'g', -1, 64); math.IsNaN(v) {
				values[i] = "_"
			}
		}
		all = append(all, inputSeries{key, strings.Join(values, " ")})
	}
	return all
}

// checkoutPods writes the clients of a scenario: three programs that share a rate.
func checkoutPods(rate float64) string {
	var text strings.Builder
	for i := range 3 {
		fmt.Fprintf(&text, "  checkout-%d: {rate: %v, calls: [payment-service]}\n", i+1, rate/3)
	}
	return text.String()
}
