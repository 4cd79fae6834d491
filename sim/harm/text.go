package harm

import (
	"fmt"
	"strings"
	"time"
)

// Text returns the system as a scenario file, with a variant for each policy. What expect says of a policy, as in a
// scenario file, is added to its variant; it may be nil.
func (s *System) Text(policies []Policy, expect map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: system %d (%s)\n", s.Number, s.Kind)
	fmt.Fprintf(&b, "about: A random system, made by sim/harm from the number %d.\n", s.Number)
	fmt.Fprintf(&b, "duration: %v\nwarmUp: %v\nruns: 40\n", s.Duration, s.WarmUp)
	b.WriteString("clients:\n  users: {" + s.users() + "}\nservices:\n")
	for i := range s.Services {
		fmt.Fprintf(&b, "  %s: {%s}\n", s.Services[i].Name, s.service(&s.Services[i]))
	}
	if len(s.Faults) > 0 {
		b.WriteString("faults:\n")
	}
	for _, f := range s.Faults {
		b.WriteString("  - " + f + "\n")
	}
	cancellation := "ignored"
	if s.Deadlines {
		cancellation = "propagates"
	}
	fmt.Fprintf(&b, "model: {serviceTimeDrawn: request, cancellation: %s, hold: %v}\nvariants:\n", cancellation, s.Hold)
	for i := range policies {
		s.variant(&b, &policies[i], expect[policies[i].Name])
	}
	return b.String()
}

// users is the fleet that requests come from.
func (s *System) users() string {
	keys := []string{"rate: " + number(s.Rate)}
	if s.Curve != "" {
		keys = []string{"curve: " + s.Curve, "between: ramps"}
	}
	keys = append(keys, fmt.Sprintf("instances: %d", s.Instances))
	if s.Patience > 0 {
		keys = append(keys, "patience: "+s.Patience.String())
	}
	return strings.Join(append(keys, "calls: [a]"), ", ")
}

func (s *System) service(x *Service) string {
	keys := []string{fmt.Sprintf("replicas: %d, balancing: %s", x.Replicas, x.Balancing)}
	if x.Workers > 0 {
		keys = append(keys, fmt.Sprintf("workers: %d", x.Workers))
	}
	keys = append(keys, fmt.Sprintf("serviceTime: %q", strings.ReplaceAll(x.Time, "µs", "us")))
	if x.Queue != "" {
		keys = append(keys, "queue: {"+x.Queue+"}")
	}
	if x.ErrorRate > 0 {
		keys = append(keys, "errorRate: "+percent(x.ErrorRate))
	}
	if len(x.Calls) > 0 {
		keys = append(keys, "calls: ["+s.names(x.Calls)+"]")
	}
	if x.Parallel {
		keys = append(keys, "parallel: true")
	}
	return strings.Join(keys, ", ")
}

func (s *System) names(calls []int) string {
	names := make([]string, len(calls))
	for i, c := range calls {
		names[i] = s.Services[c].Name
	}
	return strings.Join(names, ", ")
}

// variant writes the system under one policy.
func (s *System) variant(b *strings.Builder, p *Policy, expect string) {
	fmt.Fprintf(b, "  %s:\n    about: %q\n", p.Name, p.About)
	if p.Callers == Naive || p.Callers == Plain && !s.Deadlines {
		callers := []string{"users"}
		for i := range s.Services {
			if len(s.Services[i].Calls) > 0 {
				callers = append(callers, s.Services[i].Name)
			}
		}
		b.WriteString("    naive: [" + strings.Join(callers, ", ") + "]\n")
	}
	b.WriteString("    policy:\n      defaults: {" + p.Guard + "}\n")
	var timeouts, gates []string
	for i := range s.Services {
		x := &s.Services[i]
		if x.Timeout > 0 {
			keys := "attemptTimeout: " + written(x.Timeout)
			if x.Timeout < p.Slow {
				keys += fmt.Sprintf(", circuitBreaker: {slowCallDurationThreshold: %s}", written(x.Timeout*7/10))
			}
			timeouts = append(timeouts, x.Name+": {"+keys+"}")
		}
		gates = append(gates, x.Name+": "+p.Gate)
	}
	if len(timeouts) > 0 {
		b.WriteString("      services: {" + strings.Join(timeouts, ", ") + "}\n")
	}
	if p.Gate != "" {
		b.WriteString("      protect: {" + strings.Join(gates, ", ") + "}\n")
	}
	if expect != "" {
		b.WriteString("    expect: [" + expect + "]\n")
	}
}

// written is a duration in letters that every keyboard has.
func written(d time.Duration) string { return strings.ReplaceAll(d.String(), "µs", "us") }
