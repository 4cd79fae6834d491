package scenario

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim/expect"
)

// Scenario is one storm to rehearse: who calls whom, how fast they are, what goes wrong, and what should hold. Times
// are virtual, since the start of the run.
type Scenario struct {
	// Name is the title of every report.
	Name string `yaml:"name" example:"checkout outage"`
	// About says in a sentence or two what the scenario shows.
	About string `yaml:"about" example:"A database is away for 30 s; do the retries let it come back?"`
	// Duration of a run, without the warm-up, in virtual time. No request is offered after it.
	Duration time.Duration `yaml:"duration" range:"1s..168h" example:"3m"`
	// WarmUp is the time before the run that is not measured, in which queues and estimates settle. Times of faults
	// count from its end. Default: 5s; 0s for none.
	WarmUp time.Duration `yaml:"warmUp" range:"0s..1h" example:"5s"`
	// Scale divides rates, instances and capacities, which keeps all ratios and waiting times but makes random
	// variation larger. Reports say so. Default: 1, exact.
	Scale int `yaml:"scale" range:"1..1000000" example:"50"`
	// Runs is the largest number of runs per variant, each with its own seed. Fewer are made when every expectation is
	// decided sooner. Default: 400.
	Runs int `yaml:"runs" range:"1..1000000" example:"400"`

	// Clients are the groups of clients that offer load.
	Clients []Fleet `yaml:"clients" keyed:"true"`
	// Services answer calls.
	Services []Service `yaml:"services" keyed:"true"`
	// Faults are what goes wrong, and when.
	Faults []Fault `yaml:"faults"`
	// Expect is what should hold in every variant.
	Expect []expect.Expectation `yaml:"expect" example:"[\"goodput(after) > 95%\"]"`
	// Variants are the policies to compare, on the same random numbers. Without any, one variant called "default" runs
	// under abate's defaults.
	Variants []Variant `yaml:"variants" keyed:"true"`
	// Redis is what lies between instances and the Redis through which those of one client or service share retry
	// budgets, rate limits and what circuit breakers find out, where they say fleet: true.
	Redis Redis `yaml:"redis"`
	// Model holds the choices in which simulators differ.
	Model Model `yaml:"model"`

	File string `yaml:"-"` // where it was read from; empty for one made in Go

	narrowed map[string]int // services whose replicas the scale has made smaller, and by how much
	single   []string       // fleets of one instance, which the scale has made smaller
}

// Variant is one way to run a scenario.
type Variant struct {
	Name string `yaml:"-"`
	// About says what is different here.
	About string `yaml:"about" example:"backoff and jitter alone"`
	// Policy is a policy file, written here: defaults, services, protect. The guard of a call is configured by the
	// service called; a service listed as "caller -> callee" is the policy of that one edge. Each replica of a service
	// listed under protect stands behind a gate of its own. There, caller: ip means the instance that calls, and every
	// other caller, and key: "header:NAME", the client or service that calls.
	Policy yaml.Node `yaml:"policy"`
	// PolicyFile is the path of a policy file, relative to the scenario.
	PolicyFile string `yaml:"policyFile" example:"policy.yaml"`
	// Naive lists the clients and services that do not use Abate's headers in this variant. All their calls are naive,
	// their answers do not say how many attempts were made behind them, and they have no gates.
	Naive []string `yaml:"naive" example:"[payment]"`
	// Services overrides settings of services in this variant.
	Services yaml.Node `yaml:"services"`
	// Expect is what should hold in this variant, besides what should hold in all.
	Expect []expect.Expectation `yaml:"expect" example:"[\"collapse < 10%\"]"`

	Guards    *policyfile.File `yaml:"-"` // the policies, read; nil for abate's defaults
	Overrides []Service        `yaml:"-"` // all services as this variant has them; nil for the scenario's own
}

// ServicesOf returns the services as a variant has them.
func (s *Scenario) ServicesOf(v *Variant) []Service {
	if v.Overrides != nil {
		return v.Overrides
	}
	return s.Services
}

// PolicyOf returns the policy of calls from caller to callee: of the service "caller -> callee" if the policy file
// lists it, else of the callee, else the defaults.
func (v *Variant) PolicyOf(caller, callee string) policyfile.Policy {
	if v.Guards == nil {
		return policyfile.DefaultPolicy()
	}
	if p, ok := v.Guards.Policy(caller + " -> " + callee); ok {
		return p
	}
	p, _ := v.Guards.Policy(callee)
	return p
}

// ConnectPolicy returns the policy under which the pool of a call opens connections, and whether there is one.
func (v *Variant) ConnectPolicy(c *Call) (policyfile.Policy, bool) {
	if v.Guards == nil || c.Connect == "" {
		return policyfile.Policy{}, false
	}
	return v.Guards.Policy(c.Connect)
}

// NaiveCall reports whether a caller is naive about one of its calls: by the call's own word, or because the variant
// says so of all its calls.
func (v *Variant) NaiveCall(caller string, c *Call) bool {
	return c.Naive || slices.Contains(v.Naive, caller)
}

// ProtectionOf returns the protection of the gates in front of a service's replicas, and whether there are any.
func (v *Variant) ProtectionOf(service string) (policyfile.Protection, bool) {
	if v.Guards == nil {
		return policyfile.Protection{}, false
	}
	return v.Guards.Protection(service)
}

// Model holds the choices that make simulators disagree (each changes results near the cliff). Every report prints
// them.
type Model struct {
	// Cancellation: "ignored" (default) means that a request whose caller has left stays in the queue and is worked on;
	// "propagates" means that it leaves the queue and work on it stops.
	Cancellation string `yaml:"cancellation" enum:"ignored|propagates" example:"ignored"`
	// ServiceTimeDrawn is when a request's service time is drawn: at the "start" of work (default), on "arrival", or with
	// the "request" itself. On arrival the slowdowns of that moment apply to it, also if its turn comes after them. With
	// the request, all that chance does to it at a service belongs to it: the time, errors, losses, and the replica it is
	// sent to (or, with balancing: least-request, the two that its caller draws) are the same in every variant, in
	// whatever order requests are worked on.
	ServiceTimeDrawn string `yaml:"serviceTimeDrawn" enum:"start|arrival|request" example:"start"`
	// Ties says what happens first at the same nanosecond: "answer-first" (default) or "timeout-first".
	Ties string `yaml:"ties" enum:"answer-first|timeout-first" example:"answer-first"`
	// Recovered is the share of the goodput before the fault that counts as recovered. Default: 0.95.
	Recovered float64 `yaml:"recovered" range:"0.01..1" percent:"true" example:"95%"`
	// Drain is how long the requests in flight at the end of the run may still take. Default: 30s.
	Drain time.Duration `yaml:"drain" range:"0s..1h" example:"30s"`
	// Hold is how long the recovered goodput has to last. Default: 1s.
	Hold time.Duration `yaml:"hold" range:"100ms..1h" example:"1s"`
	// Collapsed is the share of the goodput before the fault below which the last quarter of the time after it counts
	// as collapsed, of each fleet. Default: 0.9.
	Collapsed float64 `yaml:"collapsed" range:"0.01..1" percent:"true" example:"90%"`
}

// The choices of Model, as words.
const (
	CancellationIgnored    = "ignored"
	CancellationPropagates = "propagates"
	DrawnAtStart           = "start"
	DrawnOnArrival         = "arrival"
	DrawnWithRequest       = "request"
	AnswerFirst            = "answer-first"
	TimeoutFirst           = "timeout-first"
)

// withDefaults returns the empty scenario that a file is read over.
func withDefaults() Scenario {
	return Scenario{
		WarmUp: 5 * time.Second, Scale: 1, Runs: 400,
		Model: Model{
			Cancellation: CancellationIgnored, ServiceTimeDrawn: DrawnAtStart, Ties: AnswerFirst,
			Drain: 30 * time.Second, Recovered: 0.95, Hold: time.Second, Collapsed: 0.9,
		},
	}
}

// Trouble returns from when to when something is wrong: the begin of the first fault and the end of the last. What an
// operator does is a remedy, not a fault. Without faults both are the end of the run.
func (s *Scenario) Trouble() (begin, end time.Duration) {
	begin, end = s.Duration, 0
	for i := range s.Faults {
		if f := &s.Faults[i]; f.Operator == "" {
			begin, end = min(begin, f.At), max(end, f.End())
		}
	}
	if end == 0 {
		end = begin
	}
	return begin, min(end, s.Duration)
}
