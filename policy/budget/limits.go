package budget

// Limits are where extra attempts are more than a policy explains: alerts begin there. Nothing is refused by them.
type Limits struct {
	// Extra is how many extra attempts there may be for each first attempt, and Storm how many are a retry storm:
	// half-way between that and all that there can be. Both are 0 if the policy adds no attempts.
	Extra, Storm float64
	// Bank is how many extra attempts are nothing yet, in any minute: 10 to 100.
	Bank float64
	// PerSecond is how many more are nothing yet, in each second.
	PerSecond float64
	// Retries is the share of retries among all attempts that is high: 30 %, or if the budget allows less, 80 % of what
	// it does while half of the attempts fail.
	Retries float64
}

// Slack is the factor by which a budget may seem to be exceeded: counters are not read all at once.
const Slack = 1.1

// The bank of a budget counts for no less and no more than this: fewer extra attempts in a minute are no storm, and a
// larger bank would hide one for as long as it lasts.
const LeastBank, MostBank = 10, 100

// highShare is the share of retries that is high whatever the budget allows.
const highShare = 0.3

// Limits returns them for a policy that lets a call have most extra attempts. A budget that never refuses is none: then
// half of what can be added is much.
func (a Allowance) Limits(most int) Limits {
	l := Limits{
		Bank: min(max(a.Reserve, LeastBank), MostBank), PerSecond: Slack * a.PerSecond, Retries: highShare,
	}
	if most > 0 {
		l.Extra = min(Slack*a.Ratio, float64(most)/2)
		l.Storm = (l.Extra + float64(most)) / 2
	}
	if a.FailingRatio > 0 {
		l.Retries = min(0.8*a.FailingRatio/(1+a.FailingRatio), highShare)
	}
	return l
}
