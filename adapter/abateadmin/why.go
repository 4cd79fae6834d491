package abateadmin

import (
	"fmt"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/registry"
)

// Story says in sentences what is the matter with a guard or a gate. A part is "" if there is nothing to say.
type Story struct {
	// Cause is why it is so, Effect what it does to calls or requests, and Next what comes next.
	Cause  string `json:"cause,omitempty"`
	Effect string `json:"effect,omitempty"`
	Next   string `json:"next,omitempty"`
}

// past is what a story is made of besides its row: what happened lately, and what there is now.
type past struct {
	tally   tally  // of the window
	opening string // why a circuit opened last, as the breaker says it
	refusal string // what was the most frequent reason to refuse
	err     string // the newest error
	// What there is now: permits of the bulkheads that are taken, or places of the gate, and the processor's load.
	taken int
	load  float64
}

// lately looks a history up. Refusals are those of the causes from..to for which there are words.
func (h *history) lately(now time.Duration, t tally, from, to int, words func(int) string) past {
	p := past{tally: t, opening: h.notes.lastOpening()}
	most := 0
	for i := from; i < to; i++ {
		if n := h.causes(now, i, window/stepSize+1); n > most && words(i) != "" {
			most, p.refusal = n, words(i)
		}
	}
	if all := h.faults.all(); len(all) > 0 && now-all[0].At < window*time.Second {
		p.err = all[0].Text
	}
	return p
}

// refusesCalls is the cause of a guard if it can keep a whole call from being sent; "" for those that end retries.
func refusesCalls(which int) string {
	if which >= refusals && which < refusals+len(registry.Reasons) {
		switch registry.Reasons[which-refusals].Err {
		case core.ErrBudgetExhausted, core.ErrAttemptsExhausted, core.ErrTreeExhausted, core.ErrOverloaded,
			core.ErrSilent:
			return ""
		}
	}
	return guardCauses[which]
}

// tell makes the story of the guards with one name. The row is filled in before, and judged.
func (r *Row) tell(p past, states []abate.State, policy *abate.Policy, now time.Duration) {
	r.Story = Story{Cause: r.cause(&p), Effect: r.effect(p.tally, "calls", "was", "were"),
		Next: r.next(&p, states, policy, now)}
}

// cause says what is behind it: the circuit, then what the policy refuses for, then errors.
func (r *Row) cause(p *past) string {
	said := r.circuitCause(p.opening)
	switch {
	case said != "":
	case r.Limit > 0 && p.taken >= r.Limit && p.tally.Refused+r.Queued > 0:
		said = fmt.Sprintf("The bulkhead is full: %d of %d permits are taken, and %s.", p.taken, r.Limit,
			count(r.Queued, "call waits", "calls wait"))
	case p.tally.Refused > 0 && p.refusal != "":
		said = fmt.Sprintf("Calls are refused, most often for this: %s.", p.refusal)
	}
	if said == "" && p.tally.Fail > 0 {
		said = fmt.Sprintf("%d of %s failed.", p.tally.Fail, count(p.tally.Answers, "attempt", "attempts"))
	}
	if p.tally.Extra >= many && r.RetryShare > stormShare && !r.HasBudget {
		said = join(said, "No retry budget bounds what is sent again.")
	}
	if p.err != "" {
		said = join(said, "The last error: "+strings.TrimRight(p.err, ".")+".")
	}
	return said
}

// effect says what became of the calls or requests of the window.
func (r *Row) effect(t tally, what, one, more string) string {
	all := t.Good + t.Bad + t.Refused
	if all == 0 {
		return fmt.Sprintf("In the last %d seconds no %s ended.", window, strings.TrimSuffix(what, "s"))
	}
	verb := more
	if all == 1 {
		what, verb = strings.TrimSuffix(what, "s"), one
	}
	var parts []string
	for _, p := range []struct {
		n    int
		text string
	}{{t.Good, "answered"}, {t.Bad, "failed"}, {t.Refused, "refused at once"}} {
		switch {
		case p.n == all:
			return fmt.Sprintf("In the last %d seconds %d %s ended: %s.", window, all, what, allOf(p.text, verb, all))
		case p.n > 0:
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.text))
		}
	}
	return fmt.Sprintf("In the last %d seconds %d %s ended: %s.", window, all, what, strings.Join(parts, ", "))
}

// allOf says that all came to the same.
func allOf(text, verb string, n int) string {
	if text == "failed" {
		verb = ""
	}
	if verb != "" {
		verb += " "
	}
	if n == 1 {
		return "it " + verb + text
	}
	return "all " + verb + text
}

// next says what comes next: of the circuit, then of retries, then of the queue.
func (r *Row) next(p *past, states []abate.State, policy *abate.Policy, now time.Duration) string {
	said := circuitNext(states, policy, now)
	if said == "" && p.tally.Fail > 0 {
		said = r.circuitAhead(states, policy)
	}
	if r.HasBudget && r.Budget < 1 && p.tally.Left > 0 {
		said = join(said, "No retry is sent until the budget has earned one.")
	}
	if r.Queued > 0 {
		said = join(said, "The next permit that is free goes to a call that waits.")
	}
	return said
}

// join makes two sentences one text.
func join(a, b string) string { return strings.TrimSpace(a + " " + b) }

// count says how many of something there are: "1 probe is", "2 probes are".
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// short is a time for people: "40 ms", "1.2 s". No more of its digits say anything.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d ms", max(d.Round(10*time.Millisecond), 10*time.Millisecond).Milliseconds())
}
