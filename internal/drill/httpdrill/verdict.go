package httpdrill

import (
	"fmt"

	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/figures"
)

// verdict says in words what made the difference, and keeps quiet about what was not shown.
func (r *Result) verdict() string {
	var stories []drill.Story
	for i := range r.Acts {
		a := &r.Acts[i]
		story := r.policyStory
		switch {
		case r.Interrupted: // nothing is said
			continue
		case !a.healthy():
			story = r.illStory
		case a.ShowsStorm:
			story = r.stormStory
		}
		stories = append(stories, drill.Story{Act: a.Act, Text: story(a), LateSeconds: a.LateSeconds})
	}
	return drill.Verdict(r.Interrupted, stories)
}

// illStory is of an act in which not all was well before the trouble.
func (r *Result) illStory(a *ActResult) string {
	text := fmt.Sprintf("%s, only %s of the requests were answered before the %s, so what came after it tells nothing.",
		drill.Capitalized(a.Act), percent(a.Phases[engine.Before].Goodput), r.Setup.Word)
	if drill.Late(a.LateSeconds) {
		return text
	}
	text += fmt.Sprintf(" The drill kept to its schedule (at most %s late). A request takes the service %s.",
		duration(a.LateSeconds), duration(a.Setting.WorkSeconds))
	if a.Refused > 0 {
		text += fmt.Sprintf(" The policy (%s) refused %s requests.", a.Setting.Policy,
			figures.Thousands(float64(a.Refused)))
	}
	return text
}

// stormStory is of an act that is there to show a storm.
func (r *Result) stormStory(a *ActResult) string {
	s, capacity, after := r.Setup, a.Setting.CapacityPerSecond, a.Phases[engine.After]
	switch {
	case a.Recovered():
		return fmt.Sprintf("%s, the service recovered by itself %s after the %s: this setup shows no lasting storm (%s/s "+
			"× %d attempts against %s/s).",
			drill.Capitalized(a.Act), drill.Seconds(*a.RecoverySeconds), s.Word, figures.Thousands(s.OfferedPerSecond),
			a.Setting.MaxAttempts, figures.Thousands(capacity))
	case after.AttemptsPerSecond <= capacity:
		return fmt.Sprintf("%s, goodput did not come back within %s of the end of the %s, with %s attempts/s against a "+
			"capacity of %s/s.",
			drill.Capitalized(a.Act), drill.Seconds(s.AfterSeconds), s.Word, figures.Thousands(after.AttemptsPerSecond),
			figures.Thousands(capacity))
	}
	queue := fmt.Sprintf("the queue held up to %s requests", figures.Thousands(float64(a.Service.LongestQueue)))
	if a.Service.Refused > 0 && !a.refuses {
		queue = "the queue overflowed"
	}
	return fmt.Sprintf("%s, the %s %s did not end with the %s: every failed request came back up to %d times, %s "+
		"attempts/s met a capacity of %s/s, %s, and %s of all work was for callers that had left.",
		drill.Capitalized(a.Act), drill.Seconds(s.TroubleSeconds), s.Word, s.Word, a.Setting.MaxAttempts-1,
		figures.Thousands(after.AttemptsPerSecond), figures.Thousands(capacity), queue, percent(a.Service.WastedShare))
}

// policyStory is of an act whose policy should do well.
func (r *Result) policyStory(a *ActResult) string {
	if !a.Recovered() {
		return fmt.Sprintf("%s, goodput did NOT come back within %s of the end of the %s: the policy (%s) did not do its "+
			"work here. %s",
			drill.Capitalized(a.Act), drill.Seconds(r.Setup.AfterSeconds), r.Setup.Word, a.Setting.Policy, r.queueStory(a))
	}
	took := *a.RecoverySeconds
	text := fmt.Sprintf("%s, goodput was back %s after the %s", drill.Capitalized(a.Act), drill.Seconds(took),
		r.Setup.Word)
	if within := a.Setting.WithinSeconds; within > 0 && took > within {
		text += fmt.Sprintf(", later than the %s it was given", drill.Seconds(within))
	}
	text += ": "
	if a.BreakerRefused > 0 {
		text += fmt.Sprintf("the circuit breakers refused %s requests instead of sending them, and ",
			figures.Thousands(float64(a.BreakerRefused)))
	}
	text += fmt.Sprintf("repeats added %s to the requests that were sent", percent(max(a.PerSent-1, 0)))
	if a.BudgetRefused > 0 {
		text += fmt.Sprintf(" (the retry budgets refused %s more)", figures.Thousands(float64(a.BudgetRefused)))
	}
	return text + ". " + r.queueStory(a)
}

// queueStory reports how full the service's queue was.
func (r *Result) queueStory(a *ActResult) string {
	places := figures.Thousands(float64(a.Setting.Queue))
	gate := ""
	if n := a.Service.TurnedAway; n > 0 {
		gate = fmt.Sprintf("The gate in front of the service refused %s attempts. ", figures.Thousands(float64(n)))
	}
	if a.Service.Refused > 0 && a.refuses {
		return gate + fmt.Sprintf("The service refused %s attempts.", figures.Thousands(float64(a.Service.Refused)))
	}
	if a.Service.Refused > 0 {
		return gate + fmt.Sprintf("The service's queue of %s overflowed: %s attempts were turned away.", places,
			figures.Thousands(float64(a.Service.Refused)))
	}
	longest := float64(a.Service.LongestQueue)
	if longest == 0 {
		return gate + "No request ever waited in the service's queue."
	}
	work := ratio(longest*float64(max(a.Setting.Replicas, 1)), a.Setting.CapacityPerSecond)
	text := fmt.Sprintf("t most %s of the %s places in the service's queue were taken, %s of work.",
		figures.Thousands(longest), places, drill.Seconds(work))
	if a.Recovered() {
		return gate + "The queue stayed short enough: a" + text
	}
	return gate + "A" + text
}
