package export

import (
	"math"

	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policyfile"
)

// limit is where a panel turns yellow and red. Zero means never. With below it is small values that are bad.
type limit struct {
	warn, bad float64
	below     bool
}

// thresholds writes the limit out.
func (l limit) thresholds() fieldThresholds {
	t := fieldThresholds{Mode: "absolute", Steps: []fieldStep{{Color: "green"}}}
	from := func(colour string, v float64) {
		if v != 0 {
			t.Steps = append(t.Steps, fieldStep{colour, &v})
		}
	}
	if l.below {
		t.Steps[0].Color = "red"
		if l.bad == 0 {
			t.Steps[0].Color = "yellow"
		}
		if l.warn != 0 {
			from("yellow", l.bad)
		}
		from("green", max(l.warn, l.bad))
		return t
	}
	from("yellow", l.warn)
	from("red", l.bad)
	return t
}

// bound is where the limit of a panel comes from: the policy of a service, what protects it, or always the same.
type bound struct {
	guard func(*policyfile.Policy) limit
	gate  func(*policyfile.Protection) limit
	fixed limit
}

func (b bound) set() bool { return b.guard != nil || b.gate != nil || b.fixed != (limit{}) }

// boundaries are the policies that limits come from, with every default written out.
type boundaries struct {
	defaults policyfile.Policy
	services []policyfile.Service
	protect  []policyfile.Protected
}

func newBoundaries(file *policyfile.File) *boundaries {
	if file == nil {
		return &boundaries{defaults: policyfile.DefaultPolicy().WithDefaults()}
	}
	b := &boundaries{defaults: file.Defaults.WithDefaults()}
	for _, s := range file.Services {
		b.services = append(b.services, policyfile.Service{Name: s.Name, Policy: s.Policy.WithDefaults()})
	}
	for _, p := range file.Protect {
		b.protect = append(b.protect, policyfile.Protected{Name: p.Name, Protection: p.Protection.WithDefaults()})
	}
	return b
}

// base is the limit of a service that the file does not list. Nothing is protected unless it is listed: there it is the
// first one's.
func (b *boundaries) base(of bound) limit {
	switch {
	case of.guard != nil:
		return of.guard(&b.defaults)
	case of.gate != nil && len(b.protect) > 0:
		return of.gate(&b.protect[0].Protection)
	case of.gate != nil:
		none := policyfile.Protection{}.WithDefaults()
		return of.gate(&none)
	}
	return of.fixed
}

// overrides are the limits of the services that have others than the base. Services with the same share one: a file may
// list thousands.
func (b *boundaries) overrides(of bound) []fieldOverride {
	base := b.base(of)
	var order []limit
	names := make(map[limit][]string)
	add := func(name string, l limit) {
		if l == base {
			return
		}
		if names[l] == nil {
			order = append(order, l)
		}
		names[l] = append(names[l], label(name))
	}
	if of.guard != nil {
		for i := range b.services {
			add(b.services[i].Name, of.guard(&b.services[i].Policy))
		}
	}
	if of.gate != nil {
		for i := range b.protect {
			add(b.protect[i].Name, of.gate(&b.protect[i].Protection))
		}
	}
	var all []fieldOverride
	for _, l := range order {
		all = append(all, fieldOverride{
			Matcher:    fieldMatcher{"byNames", fieldNames{"include", names[l]}},
			Properties: []fieldProperty{{"thresholds", l.thresholds()}},
		})
	}
	return all
}

// extra is what a policy, its defaults written out, lets retries and hedges add to a first attempt.
type extra struct {
	most    float64 // if every attempt failed and there were no budget
	ratio   float64 // what the budget allows, or would if there were the built-in one
	allowed float64 // what may be added before RequestAmplification is a warning. A budget that never refuses is none
	many    float64 // the share of retries among all attempts from which on HighRetryRate fires
}

// extraOf reads a policy, as internal/metrics does for the rules.
func extraOf(p *policyfile.Policy) extra {
	a, limited := p.Allowance()
	if !limited {
		usual := policyfile.DefaultPolicy()
		built, _ := usual.Allowance()
		a = budget.Allowance{Ratio: built.Ratio, Reserve: built.Reserve}
	}
	l := a.Limits(p.MaxExtraAttempts())
	return extra{most: float64(p.MaxExtraAttempts()), ratio: a.Ratio, allowed: l.Extra, many: l.Retries}
}

// shareLimit is for the share of retries among attempts: yellow for DependencyDegraded, red for HighRetryRate.
func shareLimit(p *policyfile.Policy) limit {
	many := extraOf(p).many
	return limit{warn: rounded(many / 2), bad: rounded(many)}
}

// timesLimit is for attempts per call: yellow and red as RequestAmplification is a warning and critical. Under a budget
// that only time fills the warning depends on the load.
func timesLimit(p *policyfile.Policy) limit {
	x := extraOf(p)
	if x.most == 0 {
		return limit{}
	}
	l := limit{bad: rounded(1 + (x.allowed+x.most)/2)}
	if x.ratio > 0 {
		l.warn = rounded(1 + x.allowed)
	}
	return l
}

// rounded cuts off what is only the error of a division.
func rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// failingLimit is for the share of attempts that fail: red where the circuit opens.
func failingLimit(p *policyfile.Policy) limit {
	if at := p.CircuitBreaker.FailureRateThreshold; p.CircuitBreaker.Enabled() && at > 0 {
		return limit{warn: rounded(at / 5), bad: at}
	}
	return limit{warn: 0.1, bad: 0.5}
}

// patienceLimit is for how long calls take: red where they are cut off.
func patienceLimit(p *policyfile.Policy) limit {
	return limit{warn: rounded(p.Timeout.Seconds() / 2), bad: p.Timeout.Seconds()}
}

// waitLimit is for the wait for a token of the pacing: red where attempts are refused.
func waitLimit(p *policyfile.Policy) limit {
	if !p.Pacing.Enabled() {
		return limit{}
	}
	return limit{warn: rounded(p.Pacing.MaxWait.Seconds() / 2), bad: p.Pacing.MaxWait.Seconds()}
}

// handlerLimit is for how long the handler of a message has been running: red where its context ends.
func handlerLimit(p *policyfile.Policy) limit {
	if !p.Kafka.Enabled() {
		return limit{}
	}
	return limit{warn: rounded(p.Kafka.HandlerTimeout.Seconds() / 2), bad: p.Kafka.HandlerTimeout.Seconds()}
}

// queueLimit is for the wait at the gate. Without queueTarget the gate measures its own.
func queueLimit(p *policyfile.Protection) limit {
	return limit{warn: p.Shed.QueueTarget.Seconds(), bad: p.Shed.QueueInterval.Seconds()}
}

// answerLimit is for how long the service takes: red where the gate gives requests up.
func answerLimit(p *policyfile.Protection) limit {
	return limit{warn: rounded(p.Timeout.Seconds() / 2), bad: p.Timeout.Seconds()}
}

// arrivingLimit is for retries among arriving requests: yellow where answers ask callers to stop, as for
// ArrivingRetries.
func arrivingLimit(p *policyfile.Protection) limit {
	at := p.Shed.MaxRetryShare
	if at == 0 {
		at = 0.1
	}
	return limit{warn: at, bad: rounded(2 * at)}
}

// cpuLimit is for the processor time in use: red where requests are refused.
func cpuLimit(p *policyfile.Protection) limit {
	return limit{warn: rounded(p.Shed.CPU * 0.8), bad: p.Shed.CPU}
}
