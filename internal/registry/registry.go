// Package registry lists the policies of guards and gates and the reasons for which a guard refuses, once, for whoever
// shows, counts or checks all of them: metrics, dashboards, the admin page, the policy file, the simulator and other
// formats. They loop over the lists. What a policy decides is none of this package's business: packages core and
// inbound ask the policies, one by one.
//
// A new policy of a guard needs four things: its own folder below policy, a field of core.Policy, its lines in core
// (made, reconfigured and read in policies.go, asked in attempt.go or call.go), and its entry here.
package registry

// Policy is one policy as others see it: of a guard, whose settings P are a core.Policy and whose state S is a
// core.State, or of a gate.
type Policy[P, S any] struct {
	// Key is the section of the policy file, and Needs the key in it without which the section is off; empty if there is
	// none.
	Key, Needs string
	// Page is the name of the page in docs/policies.
	Page string
	// Enabled reports whether p has it switched on.
	Enabled func(p *P) bool
	// Gauges are read at every scrape while it is on.
	Gauges []Gauge[P, S]
	// Panels stand on the dashboard beside those of the other policies.
	Panels []Panel
	// Facts says how it stands, for the page of one guard or gate; nil for nothing. It is called while it is off, too.
	Facts func(p *P, s *S, say Say)
	// Learned says in a sentence what it has found out and acts on, "" for nothing; nil if there is never anything. It is
	// called while it is on.
	Learned func(p *P, s *S) string
	// Warning returns what is not as it should be, for the page of all guards, empty while all is well; nil if there is
	// never anything.
	Warning func(s *S) string
}

// Learned says of all policies of a list that are on what they have found out and act on, a sentence each.
func Learned[P, S any](policies []Policy[P, S], p *P, s *S) (all []string) {
	for i := range policies {
		if one := &policies[i]; one.Learned != nil && one.Enabled(p) {
			if text := one.Learned(p, s); text != "" {
				all = append(all, text)
			}
		}
	}
	return all
}

// Gauge is a metric with one label, the service.
type Gauge[P, S any] struct {
	Name string
	Help string // what it means, and what to do about it
	Read func(p *P, s *S) float64
	// Shown reports whether there is such a number under p; nil for always.
	Shown func(p *P) bool
	Grows bool // it is a counter
	// Instrument is the same for OpenTelemetry; without a name it has none.
	Instrument Instrument
}

// Instrument names a gauge as the semantic conventions of OpenTelemetry want it.
type Instrument struct {
	Name, Unit, Description string
	Adds                    bool // it is a whole number, which adds up over instances
}

// Say writes down one fact. Format and args make its value; about says what that is of.
type Say func(name, about, format string, args ...any)

// Panel is a graph with one line per service.
type Panel struct {
	Title, Help string
	Runbook     string // the alert that says the same; empty for none
	Unit        string // as Grafana calls it
	// Metric is what it shows, by service, and Of, if it is not empty, the gauge that it is a share of: the sum of all
	// instances.
	Aggregate  Aggregate
	Metric, Of string
	Max        float64 // of the axis; 0: as it comes
	Warn, Bad  float64 // from where it is yellow and red; 0 for never
}

// Aggregate says how the instances of a service become one line.
type Aggregate int

const (
	// Sum adds up a gauge.
	Sum Aggregate = iota
	// Worst takes the highest of a gauge.
	Worst
	// Rate adds up how fast a counter grows.
	Rate
)
