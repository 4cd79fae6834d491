package drill

import (
	"fmt"
	"strings"
)

// lateLimit is how far behind its own schedule, in seconds, the drill may fall before it warns about its numbers.
const lateLimit = 0.25

// verdict says in words what made the difference, and keeps quiet about what was not shown.
func (r *Result) verdict() string {
	if r.Interrupted {
		return "Stopped before the end: no verdict."
	}
	var said []string
	for i := range r.Acts {
		a := &r.Acts[i]
		story := r.guardedStory
		switch {
		case !a.healthy():
			story = r.illStory
		case a.Act == Unguarded:
			story = r.unguardedStory
		}
		said = append(said, story(a))
		if late := a.Endings[AnsweredLate.String()]; late > 0 {
			said = append(said, fmt.Sprintf("%s answers came more than %s after their attempt was sent, too late to count.",
				thousands(float64(late)), seconds(r.Setup.AttemptTimeoutSeconds)))
		}
		if a.LateSeconds > lateLimit {
			said = append(said, fmt.Sprintf("Careful: this machine was busy with other things, and in the %s act the drill fell up to %s behind its schedule. Take the numbers with care, or play it again.",
				a.Act, seconds(a.LateSeconds)))
		}
	}
	return strings.Join(said, " ")
}

// illStory is of an act in which not all was well before the outage.
func (r *Result) illStory(a *ActResult) string {
	text := fmt.Sprintf("%s, only %s of the requests were answered in time before the outage, so what came after it tells nothing.",
		strings.ToUpper(a.Act[:1])+a.Act[1:], percent(a.Phases[BeforeOutage].Goodput))
	if a.LateSeconds > lateLimit {
		return text
	}
	text += fmt.Sprintf(" The drill kept to its schedule (at most %s late). A request takes the service %s, and after %s an answer is too late.",
		duration(a.LateSeconds), duration(r.Setup.ServiceTimeSeconds), seconds(r.Setup.AttemptTimeoutSeconds))
	if refused := a.Endings[RefusedEarly.String()]; refused > 0 {
		text += fmt.Sprintf(" The policy (%s) refused %s requests early.", r.Setup.Policy, thousands(float64(refused)))
	}
	return text
}

func (r *Result) unguardedStory(a *ActResult) string {
	s, after := r.Setup, a.Phases[AfterOutage]
	switch {
	case a.Recovered():
		return fmt.Sprintf("Unguarded, the service recovered by itself %s after the outage: this setup shows no lasting storm (%s/s × %d attempts against %s/s).",
			seconds(*a.RecoverySeconds), thousands(s.OfferedPerSecond), s.Retries+1, thousands(s.CapacityPerSecond))
	case after.AttemptsPerSecond <= s.CapacityPerSecond:
		return fmt.Sprintf("Unguarded, goodput did not come back within %s of the end of the outage, with %s attempts/s against a capacity of %s/s.",
			seconds(s.AfterSeconds), thousands(after.AttemptsPerSecond), thousands(s.CapacityPerSecond))
	}
	queue := fmt.Sprintf("the queue held up to %s requests", thousands(float64(a.Service.LongestQueue)))
	if a.Service.Refused > 0 {
		queue = "the queue overflowed"
	}
	return fmt.Sprintf("Unguarded, the %s outage did not end with the outage: every failed request came back up to %d times, %s attempts/s met a capacity of %s/s, %s, and %s of all work was for callers that had left.",
		seconds(s.OutageSeconds), s.Retries, thousands(after.AttemptsPerSecond), thousands(s.CapacityPerSecond), queue,
		percent(ratio(float64(a.Service.Abandoned), float64(a.Service.Worked))))
}

func (r *Result) guardedStory(a *ActResult) string {
	if !a.Recovered() {
		return fmt.Sprintf("Guarded, goodput did NOT come back within %s of the end of the outage: the policy (%s) did not do its work here. %s",
			seconds(r.Setup.AfterSeconds), r.Setup.Policy, r.queueStory(a))
	}
	took := *a.RecoverySeconds
	text := fmt.Sprintf("Guarded, goodput was back %s after the outage", seconds(took))
	if took > r.Setup.WithinSeconds {
		text += fmt.Sprintf(", later than the %s it was given", seconds(r.Setup.WithinSeconds))
	}
	text += ": "
	if a.BreakerRefused > 0 {
		text += fmt.Sprintf("the circuit breakers refused %s requests at once instead of sending them, and ", thousands(float64(a.BreakerRefused)))
	}
	text += fmt.Sprintf("repeats added %s to the requests that were sent", percent(max(a.PerSent-1, 0)))
	if a.BudgetRefused > 0 {
		text += fmt.Sprintf(" (the retry budgets refused %s more)", thousands(float64(a.BudgetRefused)))
	}
	return text + ". " + r.queueStory(a)
}

// queueStory tells how full the service's queue was.
func (r *Result) queueStory(a *ActResult) string {
	places := thousands(float64(r.Setup.Queue))
	if a.Service.Refused > 0 {
		return fmt.Sprintf("The service's queue of %s overflowed: %s attempts were turned away.", places, thousands(float64(a.Service.Refused)))
	}
	longest := float64(a.Service.LongestQueue)
	if longest == 0 {
		return "No request ever waited in the service's queue."
	}
	text := fmt.Sprintf("t most %s of the %s places in the service's queue were taken, %s of work.",
		thousands(longest), places, seconds(ratio(longest, r.Setup.CapacityPerSecond)))
	if a.Recovered() {
		return "The queue stayed short enough: a" + text
	}
	return "A" + text
}
