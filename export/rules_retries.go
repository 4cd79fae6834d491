package export

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policyfile"
)

// extra is what a policy lets retries and hedges add to the first attempts.
type extra struct {
	service string // matches its series
	few     string // a rate of extra attempts that is nothing yet: the steady part, and the bank within a window
	why     string // there can be more than is allowed

	ratio   float64 // for each first attempt; without a budget what the built-in one would allow
	failing float64 // the same while attempts fail; 0 where first attempts earn nothing
	steady  float64 // in a second, whatever the load
	bank    float64 // once
	retries float64 // for each first attempt if every one failed and there were no budget
	hedges  float64
}

// The bank counts for no less and no more than this: fewer extra attempts in a minute are no storm, and a larger bank
// would hide one for as long as it lasts.
const leastBank, mostBank = 10, 100

// slack is the factor by which a budget may seem to be exceeded: an attempt is counted when it ends, a retry when it
// begins.
const slack = 1.1

// extraOf reads a policy that has its defaults written out.
func extraOf(service string, p *policyfile.Policy, t clockwork) *extra {
	x := &extra{service: service, retries: float64(p.MaxRetries)}
	if p.Hedge.Enabled() {
		x.hedges = float64(p.Hedge.MaxHedges)
	}
	b := p.RetryBudget
	if !b.Enabled() {
		b = policyfile.DefaultPolicy().RetryBudget.WithDefaults()
	}
	switch b.Kind {
	case budget.Tokens:
		cost := b.CostPerRetry * min(b.TransientCost, b.OverloadCost)
		x.ratio, x.steady, x.bank = b.DepositPerSuccess/cost, b.RefillPerSecond/cost, b.MaxTokens/cost
	case budget.Adaptive:
		x.ratio, x.failing, x.bank = b.MaxRatio, (b.MinRatio+b.MaxRatio)/2, b.Reserve
	default:
		x.ratio, x.failing, x.bank = b.Ratio, b.Ratio, b.Reserve
	}
	x.why = "Its retry budget allows " + number(1+x.ratio) +
		" in the long run: something retries outside the budget, or there are more instances than its clients key says."
	switch {
	case !p.RetryBudget.Enabled():
		x.failing = 0 // without a budget there is a threshold of its own
		x.why = "Its policy has no retry budget, so nothing limits them when the service fails; the built-in budget would " +
			"allow " + number(1+x.ratio) + "."
	case x.failing == 0:
		x.why = "Its bucket allows fewer: something retries outside the budget, or there are more instances than its " +
			"clients key says."
	}
	x.bank = min(max(x.bank, leastBank), mostBank)
	x.few = number(slack*x.steady + t.perSecond(x.bank))
	return x
}

// bound is the most that can be added to a first attempt.
func (x *extra) bound() float64 { return x.retries + x.hedges }

// allowed is what may be added to a first attempt before an alert fires. A budget that never refuses is none.
func (x *extra) allowed() float64 { return min(slack*x.ratio, x.bound()/2) }

// many is the share of retries among all attempts that is high: 30 %, or if the budget allows less, most of what it
// does.
func (x *extra) many() float64 {
	const high, most = 0.3, 0.8
	if x.failing == 0 {
		return high
	}
	return min(high, most*x.failing/(1+x.failing))
}

// degraded fires before callers see failures. It waits some minutes, because short failures are what retries are for.
func (x *extra) degraded() alert {
	return alert{
		name: "DependencyDegraded", severity: warning, lasts: 5 * time.Minute,
		expr: fmt.Sprintf("abate:retry_share:ratio_rate1m{%[1]s} > %[2]s\nand abate:retry_success:ratio_rate1m{%[1]s} > "+
			"0.5\n"+
			"and abate:call_failures:ratio_rate1m{%[1]s} < 0.02\nand abate:retries:rate1m{%[1]s} > %[3]s", x.service,
			number(x.many()/2), x.few),
		summary: "{{ $labels.service }} fails more often, and retries still hide it",
		text: "{{ $value | humanizePercentage }} of all attempts are retries, and most of them succeed: callers see " +
			"less than 2 % failures. If it gets worse, callers will see it.",
	}
}

func (x *extra) highRetryRate() alert {
	return alert{
		name: "HighRetryRate", severity: warning, lasts: 2 * time.Minute,
		expr: fmt.Sprintf("abate:retry_share:ratio_rate1m{%[1]s} > %[2]s\nand abate:retries:rate1m{%[1]s} > %[3]s",
			x.service, number(x.many()), x.few),
		summary: "{{ $labels.service }}: {{ $value | humanizePercentage }} of all attempts are retries",
		text: fmt.Sprintf("{{ $value | humanizePercentage }} of the attempts sent to {{ $labels.service }} are retries; "+
			"%s %% or more is high for its policy. The service fails, or is slower than attemptTimeout.",
			number(100*x.many())),
	}
}

// amplified alerts on more retries than the budget allows: retries without a budget, or past it.
func (x *extra) amplified() alert {
	return alert{
		name:     "RequestAmplification",
		severity: warning,
		lasts:    2 * time.Minute,
		expr: fmt.Sprintf("abate:amplification:ratio_rate1m{%[1]s}\nand abate:extra_attempts:rate1m{%[1]s} > %[2]s * "+
			"abate:first_attempts:rate1m{%[1]s} + %[3]s",
			x.service, number(x.allowed()), x.few),
		summary: "{{ $labels.service }} gets {{ $value | humanize }} attempts for each call",
		text:    "{{ $value | humanize }} attempts are sent to {{ $labels.service }} for each call. " + x.why,
	}
}

// farAmplified alerts on a storm. Guards cannot send more than maxRetries + 1 attempts for a call, so the threshold is
// half-way there. It waits for less time than the warning, because half a window of such traffic is needed to reach the
// threshold.
func (x *extra) farAmplified() alert {
	return alert{
		name: "RequestAmplification", severity: critical, lasts: time.Minute,
		expr: fmt.Sprintf("abate:amplification:ratio_rate1m{%[1]s} > %[2]s\nand abate:extra_attempts:rate1m{%[1]s} > %[3]s",
			x.service, number(1+(x.allowed()+x.bound())/2), x.few),
		summary: "Retry storm: {{ $labels.service }} gets {{ $value | humanize }} attempts for each call",
		text: fmt.Sprintf("{{ $value | humanize }} attempts are sent to {{ $labels.service }} for each call, and the "+
			"policy allows up to %s. A service that can handle the calls may not be able to handle so many attempts. It may "+
			"then not recover by itself.",
			number(1+x.bound())),
	}
}

func budgetExhausted(service string) alert {
	return alert{
		name:     "RetryBudgetExhausted",
		severity: warning,
		lasts:    5 * time.Minute,
		expr:     `abate:refusals:rate1m{reason="budget_exhausted", ` + service + `} > 0`,
		summary:  "{{ $labels.service }} has failed for minutes, and the retry budget holds the storm back",
		text: "{{ $value | humanize }} calls a second to {{ $labels.service }} fail without another attempt, because the " +
			"retry budget is used up. The budget works; the service does not.",
	}
}
