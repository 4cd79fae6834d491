package sim

import (
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// standardMeasures are what every table shows, whatever is expected.
func standardMeasures(s *scenario.Scenario, v *scenario.Variant) []expect.Expectation {
	begin, end := s.Trouble()
	windows := []expect.Window{expect.All}
	if begin < s.Duration {
		windows = []expect.Window{expect.Before, expect.During, expect.After}
		if end == begin {
			windows = []expect.Window{expect.Before, expect.After}
		}
	}
	last := windows[len(windows)-1]
	var all []expect.Expectation
	add := func(measure, subject string, w expect.Window, quantile float64) {
		all = append(all, expect.Expectation{Measure: measure, Subject: subject, Window: w, Quantile: quantile})
	}
	add("userVisible", "", expect.All, 0)
	for _, w := range windows {
		add("goodput", "", w, 0)
	}
	if len(s.Clients) > 1 {
		for i := range s.Clients {
			for _, w := range windows {
				add("goodput", s.Clients[i].Name, w, 0)
			}
		}
	}
	for _, w := range windows {
		add("refused", "", w, 0)
	}
	for _, w := range windows {
		add("latency", "", w, 0.99)
	}
	consumerMeasures(s, v, last, add)
	services := s.ServicesOf(v)
	for i := range services {
		serviceMeasures(s, &services[i], windows, add)
		if name := services[i].Name; gated(s, name) {
			for _, p := range priorities(s, v) {
				all = append(all, expect.Expectation{Measure: "shed", Subject: name, Priority: p})
			}
		}
	}
	return all
}

// serviceMeasures adds what is measured of a service.
func serviceMeasures(s *scenario.Scenario, service *scenario.Service, windows []expect.Window,
	add func(measure, subject string, w expect.Window, quantile float64)) {
	last := windows[len(windows)-1]
	add("amplification", service.Name, expect.All, 0)
	for _, w := range windows {
		if w != expect.All {
			add("amplification", service.Name, w, 0)
		}
	}
	for _, w := range windows {
		add("attempts", service.Name, w, 0)
	}
	add("peak", service.Name, expect.All, 0)
	if service.Workers > 0 {
		add("queueWait", service.Name, last, 0.99)
		add("queue", service.Name, expect.All, 0)
		add("utilization", service.Name, windows[0], 0)
		add("waste", service.Name, last, 0)
	}
	if gated(s, service.Name) {
		gateMeasures(service.Name, windows, add)
	}
	worldMeasures(s, service, windows, add)
	if service.Connections.Max > 0 {
		add("connections", service.Name, expect.All, 0)
		add("connectPeak", service.Name, expect.All, 0)
		add("unopened", service.Name, expect.All, 0)
	}
}

// consumerMeasures adds what is measured of fleets that consume, and how hard the services that they call are hit
// afterwards.
func consumerMeasures(s *scenario.Scenario, v *scenario.Variant, last expect.Window,
	add func(measure, subject string, w expect.Window, quantile float64)) {
	begin, _ := s.Trouble()
	var called []string
	for i := range s.Clients {
		f := &s.Clients[i]
		if !f.Consumes() {
			continue
		}
		for _, measure := range []string{"deadLetters", "deliveries", "lag"} {
			add(measure, f.Name, expect.All, 0)
		}
		if last == expect.After {
			add("drained", f.Name, expect.All, 0)
		}
		to := f.Calls[0].To
		if last == expect.After && begin > 0 && !slices.Contains(called, to) {
			called = append(called, to)
			add("load", to, expect.After, 0)
		}
		if v.PolicyOf(f.Name, to).Kafka.Enabled() {
			add("lateness", f.Name, expect.All, 0.99)
			add("lateness", f.Name, last, 0.99)
		}
	}
}

// gateMeasures adds what is measured at gates, and what they are there for.
func gateMeasures(service string, windows []expect.Window,
	add func(measure, subject string, w expect.Window, quantile float64)) {
	if len(windows) > 1 {
		add("yield", service, expect.All, 0)
		add("shed", service, expect.All, 0)
	}
	for _, w := range windows {
		add("yield", service, w, 0)
		add("response", service, w, 0.99)
		add("shed", service, w, 0)
		add("rateLimited", service, w, 0)
		add("gateWait", service, w, 0.99)
		add("limit", service, w, 0)
	}
}

// gated reports whether a service stands behind gates in any variant.
func gated(s *scenario.Scenario, service string) bool {
	return slices.ContainsFunc(s.Variants, func(v scenario.Variant) bool {
		_, ok := v.ProtectionOf(service)
		return ok
	})
}

// label is how an expectation names the measure: "goodput(after)".
func label(x *expect.Expectation) string {
	name, _, _ := strings.Cut(x.String(), " "+x.Op.String()+" ")
	return name
}

// unitOf names the unit of a measure in JSON.
func unitOf(x *expect.Expectation) string {
	for _, m := range expect.Measures() {
		if m.Name == x.Measure {
			return [...]string{expect.Number: "", expect.Count: "count", expect.Share: "share", expect.Duration: "s",
				expect.Rate: "1/s"}[m.Kind]
		}
	}
	return ""
}

// quantiles of values over the runs. Runs with nothing to measure are left out; where the value was never reached it is
// nil.
func quantiles(values []float64) Quantiles {
	s := expect.NewSample(values)
	at := func(q float64) *float64 {
		if s.N() == 0 {
			return nil
		}
		if v := s.Quantile(q); !math.IsInf(v, 0) {
			return &v
		}
		return nil
	}
	return Quantiles{P05: at(0.05), P50: at(0.5), P95: at(0.95), P99: at(0.99)}
}

// measureOf sums one measure up over the runs.
func measureOf(x *expect.Expectation, values []float64) Measure {
	var finite []float64
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			finite = append(finite, v)
		}
	}
	s := expect.NewSample(finite)
	return Measure{Name: label(x), Unit: unitOf(x), Value: quantiles(values), Mean: s.Mean(), SD: s.SD(), Finite: s.N()}
}

// column is one value of all outcomes.
func column(all []outcome, of func(*outcome) float64) []float64 {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = of(&all[i])
	}
	return values
}

// lookAt keeps of a run what a study needs.
func lookAt(r *engine.Record, expected, standard []expect.Expectation, i int) outcome {
	o := outcome{events: r.Events, attempts: r.Attempts}
	for k := range expected {
		o.values = append(o.values, r.Value(&expected[k]))
	}
	for k := range standard {
		o.measures = append(o.measures, r.Value(&standard[k]))
	}
	o.collapsed = r.Value(&expect.Expectation{Measure: "collapse"}) > 0
	o.recovery = r.Value(&expect.Expectation{Measure: "recovery"})
	o.before = r.Value(&expect.Expectation{Measure: "goodput", Window: expect.Before})
	o.fleets = fleetsOf(r)
	o.goodput = goodputOf(r)
	if i < mostPaths {
		o.path = Path{Seed: r.Seed, Wait: waitsOf(r), Goodput: o.goodput}
	}
	if i == 0 {
		o.record = r
	}
	return o
}
