package drill

import (
	"fmt"
	"strings"

	"github.com/abate-go/abate/sim/engine"
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
		story := r.policyStory
		switch {
		case !a.healthy():
			story = r.illStory
		case a.ShowsStorm:
			story = r.stormStory
		}
		said = append(said, story(a))
		if a.LateSeconds > lateLimit {
			said = append(said, fmt.Sprintf("Careful: this machine was busy with other things, and in the %s act the drill fell up to %s behind its schedule. Take the numbers with care, or play it again.",
				a.Act, seconds(a.LateSeconds)))
		}
	}
	return strings.Join(said, " ")
}

// name is the act's, to begin a sentence with.
func (a *ActResult) name() string { return strings.ToUpper(a.Act[:1]) + a.Act[1:] }

// illStory is of an act in which not all was well before the trouble.
func (r *Result) illStory(a *ActResult) string {
	text := fmt.Sprintf("%s, only %s of the requests were answered before the %s, so what came after it tells nothing.",
		a.name(), percent(a.Phases[engine.Before].Goodput), r.Setup.Word)
	if a.LateSeconds > lateLimit {
		return text
	}
	text += fmt.Sprintf(" The drill kept to its schedule (at most %s late). A request takes the service %s.",
		duration(a.LateSeconds), duration(a.Setting.WorkSeconds))
	if a.Refused > 0 {
		text += fmt.Sprintf(" The policy (%s) refused %s requests early.", a.Setting.Policy, thousands(float64(a.Refused)))
	}
	return text
}

// stormStory is of an act that is there to show a storm.
func (r *Result) stormStory(a *ActResult) string {
	s, capacity, after := r.Setup, a.Setting.CapacityPerSecond, a.Phases[engine.After]
	switch {
	case a.Recovered():
		return fmt.Sprintf("%s, the service recovered by itself %s after the %s: this setup shows no lasting storm (%s/s × %d attempts against %s/s).",
			a.name(), seconds(*a.RecoverySeconds), s.Word, thousands(s.OfferedPerSecond), a.Setting.MaxAttempts, thousands(capacity))
	case after.AttemptsPerSecond <= capacity:
		return fmt.Sprintf("%s, goodput did not come back within %s of the end of the %s, with %s attempts/s against a capacity of %s/s.",
			a.name(), seconds(s.AfterSeconds), s.Word, thousands(after.AttemptsPerSecond), thousands(capacity))
	}
	queue := fmt.Sprintf("the queue held up to %s requests", thousands(float64(a.Service.LongestQueue)))
	if a.Service.Refused > 0 {
		queue = "the queue overflowed"
	}
	return fmt.Sprintf("%s, the %s %s did not end with the %s: every failed request came back up to %d times, %s attempts/s met a capacity of %s/s, %s, and %s of all work was for callers that had left.",
		a.name(), seconds(s.TroubleSeconds), s.Word, s.Word, a.Setting.MaxAttempts-1, thousands(after.AttemptsPerSecond), thousands(capacity), queue, percent(a.Service.WastedShare))
}

// policyStory is of an act whose policy should do well.
func (r *Result) policyStory(a *ActResult) string {
	if !a.Recovered() {
		return fmt.Sprintf("%s, goodput did NOT come back within %s of the end of the %s: the policy (%s) did not do its work here. %s",
			a.name(), seconds(r.Setup.AfterSeconds), r.Setup.Word, a.Setting.Policy, r.queueStory(a))
	}
	took := *a.RecoverySeconds
	text := fmt.Sprintf("%s, goodput was back %s after the %s", a.name(), seconds(took), r.Setup.Word)
	if within := a.Setting.WithinSeconds; within > 0 && took > within {
		text += fmt.Sprintf(", later than the %s it was given", seconds(within))
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
	places := thousands(float64(a.Setting.Queue))
	gate := ""
	if n := a.Service.TurnedAway; n > 0 {
		gate = fmt.Sprintf("The gate in front of the service refused %s attempts. ", thousands(float64(n)))
	}
	if a.Service.Refused > 0 {
		return gate + fmt.Sprintf("The service's queue of %s overflowed: %s attempts were turned away.", places, thousands(float64(a.Service.Refused)))
	}
	longest := float64(a.Service.LongestQueue)
	if longest == 0 {
		return gate + "No request ever waited in the service's queue."
	}
	text := fmt.Sprintf("t most %s of the %s places in the service's queue were taken, %s of work.",
		thousands(longest), places, seconds(ratio(longest, a.Setting.CapacityPerSecond)))
	if a.Recovered() {
		return gate + "The queue stayed short enough: a" + text
	}
	return gate + "A" + text
}
