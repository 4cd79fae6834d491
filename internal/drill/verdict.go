package drill

import (
	"fmt"
	"strings"
)

// lateLimit is how far behind its own schedule, in seconds, the drill may fall before it warns about its numbers.
const lateLimit = 0.25

// verdict says in words what made the difference, and keeps quiet about what was not shown.
func (r *Result) verdict(c Config) string {
	if r.Interrupted {
		return "Stopped before the end: no verdict."
	}
	text := ""
	if a := r.act(Unguarded); a != nil {
		text += r.unguardedStory(a) + " "
	}
	if a := r.act(Guarded); a != nil {
		text += r.guardedStory(a, c)
	}
	for _, a := range r.Acts {
		if !a.healthy() || a.LateSeconds > lateLimit {
			text += fmt.Sprintf(" Careful: this machine was busy with other things. In the %s act the drill fell up to %s behind its schedule, and before the outage %s of the requests were answered: take the numbers with care, or play it again.",
				a.Act, seconds(a.LateSeconds), percent(a.Phases[BeforeOutage].Goodput))
		}
	}
	return text
}

func (r *Result) unguardedStory(a *ActResult) string {
	s := r.Setup
	if a.Recovered() {
		return fmt.Sprintf("Unguarded, the service recovered by itself %s after the outage: this setup shows no lasting storm (%s/s × %d attempts against %s/s).",
			seconds(*a.RecoverySeconds), thousands(s.OfferedPerSecond), s.Retries+1, thousands(s.CapacityPerSecond))
	}
	after := a.Phases[AfterOutage]
	return fmt.Sprintf("Unguarded, the %s outage did not end with the outage: every failed request came back up to %d times, %s attempts/s against a capacity of %s/s, so the queue stayed full, answers came too late, and %s of all work was for callers that had left.",
		seconds(s.OutageSeconds), s.Retries, thousands(after.AttemptsPerSecond), thousands(s.CapacityPerSecond),
		percent(ratio(float64(a.Service.Abandoned), float64(a.Service.Worked))))
}

func (r *Result) guardedStory(a *ActResult, c Config) string {
	if !a.Recovered() {
		return fmt.Sprintf("Guarded, goodput did NOT come back within %s of the end of the outage. The policy (%s) did not do its work here.",
			seconds(r.Setup.AfterSeconds), r.Setup.Policy)
	}
	took := *a.RecoverySeconds
	var causes []string
	if refused := a.Endings[RefusedEarly.String()]; refused > 0 && c.Policy.policy.CircuitBreaker.Enabled() {
		causes = append(causes, fmt.Sprintf("the circuit breakers stopped sending what could only fail (%s requests refused at once)", thousands(float64(refused))))
	}
	if c.Policy.policy.RetryBudget.Enabled() {
		causes = append(causes, fmt.Sprintf("the retry budgets held all retries to %s of the requests sent", percent(max(a.PerSent-1, 0))))
	}
	if len(causes) == 0 {
		causes = []string{fmt.Sprintf("a request was sent %.2f times on average", a.PerSent)}
	}
	text := fmt.Sprintf("Guarded, goodput was back %s after the outage: %s. So the queue stayed short enough to answer in time.", seconds(took), strings.Join(causes, ", and "))
	if took > c.Within.Seconds() {
		text += fmt.Sprintf(" That is later than the %s it was given.", seconds(c.Within.Seconds()))
	}
	return text
}
