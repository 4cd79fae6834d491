package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
	"go.yaml.in/yaml/v3"
)

// What a scenario assumes where no file says it. Each use of one is among the assumptions of a Play.
const (
	AssumedRate        = 100                   // requests/s at each root
	AssumedTime        = 20 * time.Millisecond // of a service for one request, exponential
	AssumedUtilisation = 0.6                   // of the service that fails, before it fails
	AssumedPatience    = 10 * time.Second      // of users
	freeWorkers        = 100_000               // of services that do not fail: as many as it takes
)

// The variants of a Play.
const (
	asConfigured = "as-configured"
	withChanges  = "fixed"
)

// Play is one outage to be simulated.
type Play struct {
	Service string           // that fails
	Fails   topology.Outcome // how: Hang, Refused or S503
	For     time.Duration    // how long
	Rate    float64          // requests/s at roots whose rate no file says; 0 means AssumedRate
	// Fixed is the same form with other settings of its layers: a second variant. It may be nil.
	Fixed *topology.Form
}

// Scenario returns the outage as a scenario file for the simulator, and what it assumes. The graph is that of the
// services that lead to the one that fails; other callees count as part of their callers. Each layer of a call is a
// service of its own that does no work, so that layers multiply as they do in production. A layer that does nothing in
// any variant is left out, and so is what never leaves a pod: see lint.Local.
func (p Play) Scenario(f topology.Form) ([]byte, []string, error) {
	s := &staging{play: p, form: f, calls: map[string][]topology.Call{}, rates: map[string]float64{},
		acts: map[string]bool{}}
	if err := s.cut(); err != nil {
		return nil, nil, err
	}
	s.load()
	s.acting(f)
	if p.Fixed != nil {
		s.acting(*p.Fixed)
	}
	out := s.file()
	variants := pairs{asConfigured, s.variant(f, "as the files say")}
	if p.Fixed != nil {
		variants = append(variants, withChanges, s.variant(*p.Fixed, "with the changes that the audit proposes"))
	}
	out = append(out, "variants", variants)
	var b bytes.Buffer
	for _, a := range s.assumed {
		b.WriteString("# Assumed: " + a + "\n")
	}
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(ordered(out)); err != nil {
		return nil, nil, fmt.Errorf("write the scenario: %w", err)
	}
	return b.Bytes(), s.assumed, nil
}

// staging is a scenario as it is made.
type staging struct {
	play    Play
	form    topology.Form
	calls   map[string][]topology.Call // by caller, towards the service that fails
	order   []string                   // the services, callers before callees
	rates   map[string]float64
	acts    map[string]bool // the links that do something, in any variant
	assumed []string
}

func (s *staging) assume(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.assumed, text) {
		s.assumed = append(s.assumed, text)
	}
}

// cut keeps the services that lead to the one that fails, and puts callers before callees.
func (s *staging) cut() error {
	callers := map[string][]topology.Call{}
	for _, c := range s.form.Calls {
		callers[c.To] = append(callers[c.To], c)
	}
	state := map[string]int{} // 1: being visited, 2: done
	var visit func(name string) error
	visit = func(name string) error {
		switch state[name] {
		case 1:
			return fmt.Errorf("%s calls itself by way of others; a cycle cannot be simulated", name)
		case 2:
			return nil
		}
		state[name] = 1
		for _, c := range callers[name] {
			s.calls[c.From] = append(s.calls[c.From], c)
			if c.From != "" {
				if err := visit(c.From); err != nil {
					return err
				}
			}
		}
		state[name] = 2
		s.order = append(s.order, name)
		return nil
	}
	if !slices.ContainsFunc(s.form.Services, func(x topology.Service) bool { return x.Name == s.play.Service }) {
		return fmt.Errorf("there is no service %q", s.play.Service)
	}
	return visit(s.play.Service)
}

func (s *staging) service(name string) topology.Service {
	for _, x := range s.form.Services {
		if x.Name == name {
			return x
		}
	}
	return topology.Service{Name: name}
}

// load works out how many first tries arrive at each service.
func (s *staging) load() {
	called := map[string]bool{}
	for _, list := range s.calls {
		for _, c := range list {
			if c.From != "" {
				called[c.To] = true
			}
		}
	}
	for _, name := range s.order {
		if rate, ok := s.service(name).Rate.Get(); ok && rate > 0 {
			s.rates[name] += rate
		} else if !called[name] {
			s.rates[name] += cmp.Or(s.play.Rate, AssumedRate)
			s.assume("%g requests/s arrive at %s", s.rates[name], name)
		}
		for _, c := range s.calls[name] {
			s.rates[c.To] += s.rates[name] * often(&c)
		}
	}
}

func often(c *topology.Call) float64 { return c.PerRequest.Or(1) }

func (s *staging) file() pairs {
	f := s.play
	before := 15 * time.Second
	mode := map[topology.Outcome]string{topology.Hang: "hang", topology.Refused: "refuse"}[f.Fails]
	return pairs{
		"name", fmt.Sprintf("outage of %s", f.Service),
		"about", fmt.Sprintf("%s fails for %v: %s. Does the system come back by itself?", f.Service, f.For, f.Fails),
		"duration", (before + f.For + max(f.For, time.Minute)).String(),
		"clients", s.fleets(),
		"services", s.services(),
		"faults", []map[string]any{{"at": before.String(), "for": f.For.String(), "outage": f.Service,
			"mode": cmp.Or(mode, "fail")}},
		"expect", []string{"collapse < 10%"},
	}
}

func (s *staging) fleets() pairs {
	var out pairs
	for _, name := range s.order {
		rate := s.rates[name]
		for _, c := range s.form.Calls {
			if c.To == name && c.From != "" {
				rate -= s.rates[c.From] * often(&c)
			}
		}
		if rate < 1e-9 {
			continue
		}
		s.assume("users wait %v", AssumedPatience)
		out = append(out, "users/"+name, pairs{"rate", math.Round(rate*1000) / 1000,
			"patience", AssumedPatience.String(), "calls", []string{s.first("", name)}})
	}
	return out
}

// link is the name of the service that stands for the n-th layer of a call.
func link(from, to string, n int) string {
	return fmt.Sprintf("%s/%s/%d", cmp.Or(from, "users"), to, n+1)
}

// first is the service that a call from a caller reaches first.
func (s *staging) first(from, to string) string {
	for _, c := range s.form.Calls {
		if c.From == from && c.To == to {
			return s.next(&c, 0)
		}
	}
	return to
}

// next is the service that stands for the n-th layer of a call, or for the first one behind it that does something.
func (s *staging) next(c *topology.Call, n int) string {
	for ; n < len(c.Layers); n++ {
		if name := link(c.From, c.To, n); s.acts[name] {
			return name
		}
	}
	return c.To
}

func (s *staging) services() pairs {
	var out pairs
	for _, name := range s.order {
		x := s.service(name)
		settings := pairs{"serviceTime", s.time(&x)}
		if name == s.play.Service {
			settings = append(settings, s.capacity(&x)...)
		} else {
			s.assume("services that do not fail never run out of workers")
			settings = append(settings, "workers", freeWorkers)
		}
		if calls := s.callsOf(name); len(calls) > 0 {
			settings = append(settings, "calls", calls)
		}
		out = append(out, name, settings)
	}
	for _, name := range s.order {
		for _, c := range s.callersOf(name) {
			for n := range c.Layers {
				if name := link(c.From, c.To, n); s.acts[name] {
					out = append(out, name, pairs{"workers", freeWorkers, "calls", []string{s.next(&c, n+1)}})
				}
			}
		}
	}
	return out
}

// callersOf returns the calls of a service, from outside too.
func (s *staging) callersOf(name string) []topology.Call {
	var out []topology.Call
	for _, c := range s.form.Calls {
		if c.To == name {
			out = append(out, c)
		}
	}
	return out
}

func (s *staging) callsOf(name string) []map[string]any {
	var out []map[string]any
	for _, c := range s.calls[name] {
		call := map[string]any{"to": s.first(name, c.To)}
		switch n := often(&c); {
		case n >= 1.5:
			call["times"] = int(math.Round(n))
		case n < 0.999 && n > 0:
			call["share"] = n
		}
		out = append(out, call)
	}
	return out
}

func (s *staging) time(x *topology.Service) string {
	median, ok := x.OwnTime.Get()
	if !ok || median <= 0 {
		s.assume("%s works %v on a request", x.Name, AssumedTime)
		return "exponential " + AssumedTime.String()
	}
	if high, ok := x.OwnTime99.Get(); ok && high > median {
		return fmt.Sprintf("lognormal median %v p99 %v", median, high)
	}
	return "exponential " + median.String()
}

// capacity says how much the service that fails can do.
func (s *staging) capacity(x *topology.Service) pairs {
	replicas := max(1, x.Replicas.Or(1))
	if workers, ok := x.Workers.Get(); ok && workers > 0 && workers < freeWorkers {
		return pairs{"replicas", replicas, "workers", workers}
	}
	seconds := AssumedTime.Seconds()
	if own, ok := x.OwnTime.Get(); ok && own > 0 {
		seconds = own.Seconds()
	}
	capacity, ok := x.Capacity.Get()
	if !ok || capacity <= 0 {
		capacity = s.rates[x.Name] / AssumedUtilisation
		s.assume("%s can do %.3g requests/s: it is %.0f %% busy before it fails", x.Name, capacity, 100*AssumedUtilisation)
	}
	return pairs{"workers", max(1, int(math.Ceil(capacity*seconds)))}
}

// variant is the policies of a form, and who does not know of Abate's headers: everybody.
func (s *staging) variant(f topology.Form, about string) pairs {
	var services pairs
	var naive []string
	for _, name := range s.order {
		if name != s.play.Service {
			naive = append(naive, name)
		}
		s.layers(f, name, func(link string, l *topology.Layer, c *topology.Call, o topology.Outcome) {
			if s.acts[link] {
				services = append(services, link, s.settings(l, o, c))
				naive = append(naive, link)
			}
		})
		if rate := s.rates[name]; rate > 0 && slices.ContainsFunc(s.form.Calls,
			func(c topology.Call) bool { return c.To == name }) {
			services = append(services, name, bare())
		}
	}
	for i, fleets := 0, s.fleets(); i < len(fleets); i += 2 {
		naive = append(naive, fleets[i].(string))
	}
	return pairs{"about", about, "naive", naive, "policy", pairs{"defaults", bare(), "services", services}}
}

// layers calls do for each layer of the calls of a service, the innermost first, with what it sees while the one that
// fails does. What never leaves a pod is no layer here, as it is none where attempts are counted.
func (s *staging) layers(f topology.Form, name string,
	do func(link string, l *topology.Layer, c *topology.Call, o topology.Outcome)) {
	for i := range f.Calls {
		c := &f.Calls[i]
		if c.To != name {
			continue
		}
		outcome := s.play.Fails
		if name != s.play.Service {
			outcome = s.answer(name)
		}
		for n := len(c.Layers) - 1; n >= 0; n-- {
			if l := &c.Layers[n]; !lint.Local(l) {
				do(link(c.From, c.To, n), l, c, outcome)
				outcome = l.Gives(outcome)
			}
		}
	}
}

// acting notes the links of a form that do something.
func (s *staging) acting(f topology.Form) {
	for _, name := range s.order {
		s.layers(f, name, func(link string, l *topology.Layer, c *topology.Call, o topology.Outcome) {
			s.acts[link] = s.acts[link] || !s.idle(l, o, c)
		})
	}
}

// answer is what callers of a service see when one of its calls has failed.
func (s *staging) answer(name string) topology.Outcome {
	word, ok := s.service(name).AnswersWith.Get()
	var o topology.Outcome
	switch {
	case ok && word == "same":
		return s.play.Fails
	case ok && o.UnmarshalText([]byte(word)) == nil:
		return o
	}
	s.assume("%s answers 500 when a call of its own has failed", name)
	return topology.S500
}
