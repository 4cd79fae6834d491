package abateadmin

import (
	"fmt"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/registry"
	"github.com/abate-go/abate/policy/breaker"
)

// What the page says of circuits is made here, from snapshots: of one guard, or of all with one name.

// judgeCircuit says what the circuit has to do with it.
func (r *Row) judgeCircuit(v *verdict) {
	switch r.Override {
	case abate.OverrideForcedOpen:
		v.say(Trouble, "circuit forced open by hand")
	case abate.OverrideDisabled:
		v.say(Watch, "circuit breaker disabled by hand")
	case abate.OverrideShadow:
		v.say(Watch, "circuit breaker in shadow by hand")
	}
	switch {
	case r.Override == abate.OverrideForcedOpen:
	case r.Open > 0 && r.Guards > 1:
		v.say(Trouble, "%d of %d circuits open", r.Open, r.Guards)
	case r.Open > 0:
		v.say(Trouble, "circuit open")
	case r.Circuit == breaker.HalfOpen.String():
		v.say(Watch, "circuit probes whether it is back")
	case r.Circuit == breaker.RampUp.String():
		v.say(Watch, "traffic comes back slowly")
	}
}

// openings are the reasons for which a circuit opens, as breaker.Change names them, in words.
var openings = map[string]string{
	"consecutive failures":             "attempts failed one after the other",
	"failure rate":                     "too large a share of the attempts failed",
	"slow call rate":                   "too large a share of the attempts was slow, or hung",
	"probe failed":                     "the last probe failed",
	"probe slow":                       "the last probe was slow",
	"no answers":                       "attempts that should have been answered long ago are not",
	"failures of calls that come back": "messages failed one after the other",
	"another instance":                 "another instance found that the service fails",
	"reconfigured":                     "the policy changed",
}

// circuitCause says why a circuit is not closed: why is what it said when it opened last, "" if that is not known.
func (r *Row) circuitCause(why string) string {
	switch r.Override {
	case abate.OverrideForcedOpen:
		return "Somebody forced the circuit open by hand."
	case abate.OverrideDisabled:
		return "Somebody disabled the circuit breaker by hand."
	}
	words, known := openings[why]
	switch {
	case r.Circuit == "off" || r.Circuit == breaker.Closed.String() || why == "":
		return ""
	case !known:
		words = why
	}
	if r.Guards > 1 {
		return fmt.Sprintf("The last circuit that opened did so because %s.", words)
	}
	return fmt.Sprintf("The circuit opened because %s.", words)
}

// circuitNext says what comes next for circuits that are not closed; "" if all are.
func circuitNext(states []abate.State, policy *abate.Policy, now time.Duration) string {
	c := &policy.CircuitBreaker
	open, half, probes, held := 0, 0, 0, 0
	ramps := false
	wait := time.Duration(-1)
	for i := range states {
		held += states[i].Breaker.Learned.Held
		switch b := &states[i].Breaker; b.State {
		case breaker.Open:
			if b.OpenUntil == 0 && b.Mode == breaker.ForcedOpen {
				return "It stays open until somebody takes that back."
			}
			if left := max(b.OpenUntil-now, 0); open == 0 || left < wait {
				wait = left
			}
			open++
		case breaker.HalfOpen:
			half++
			probes += b.Probes
		case breaker.RampUp:
			ramps = true
		}
	}
	switch {
	case open > 0 && wait == 0:
		return "The next call is sent as a probe."
	case open > 0 && held > 0:
		return fmt.Sprintf("The next probe is sent in %s; %s for one that is answered.", short(wait),
			count(held, "call waits", "calls wait"))
	case open > 0 && c.Kind == breaker.Adaptive:
		return fmt.Sprintf("The next probe is sent in %s; until then calls wait for it, as long as their time allows.",
			short(wait))
	case open > 0:
		return fmt.Sprintf("The next probe is sent in %s; until then calls are refused at once.", short(wait))
	case half > 0 && c.Kind == breaker.Adaptive:
		return fmt.Sprintf("Answers come again: %s out, one more is sent for each quick answer, and %s.",
			count(probes, "attempt is", "attempts are"), count(held, "call waits", "calls wait"))
	case half > 0:
		return fmt.Sprintf("%s under way. A circuit closes when %s succeeded, and opens again when one fails.",
			count(probes, "probe is", "probes are"), count(c.SuccessThreshold, "probe has", "probes have"))
	case ramps:
		return fmt.Sprintf("More calls are let through step by step, until after %s all are.", short(c.RampUp))
	}
	return ""
}

// circuitAhead says what becomes of attempts that fail while no circuit is on its way: "" if that is not known.
func (r *Row) circuitAhead(states []abate.State, policy *abate.Policy) string {
	c := &policy.CircuitBreaker
	switch {
	case r.Override == abate.OverrideDisabled || !c.Enabled():
		return "Every call goes on being sent: no circuit breaker is on."
	case len(states) == 1:
		return ahead(&states[0].Breaker, c)
	}
	return ""
}

// ahead says what a closed circuit would open for, of failures or slow attempts that it sees; "" if there are none.
func ahead(b *breaker.Snapshot, c *breaker.Config) string {
	switch {
	case c.Kind == breaker.Adaptive && b.Learned.Late > 0:
		return fmt.Sprintf("%s late: an answer usually takes %s. The circuit opens if none comes.",
			count(b.Learned.Late, "attempt is", "attempts are"), short(b.Learned.Latency))
	case b.State != breaker.Closed || b.Calls == 0:
	case c.FailureRateThreshold > 0 && b.FailureRate > 0:
		return fmt.Sprintf("The circuit opens when %.0f %% of attempts fail: of the last %d it is %.0f %%.",
			100*c.FailureRateThreshold, b.Calls, 100*b.FailureRate)
	case c.SlowCallRateThreshold > 0 && b.SlowRate > 0:
		return fmt.Sprintf("The circuit opens when %.0f %% of attempts are slow: of the last %d it is %.0f %%.",
			100*c.SlowCallRateThreshold, b.Calls, 100*b.SlowRate)
	}
	return ""
}

// circuitFacts says how a circuit breaker stands. It is the first that a reader looks for.
func circuitFacts(p *abate.Policy, b *breaker.Snapshot, now time.Duration, say registry.Say) {
	if !p.CircuitBreaker.Enabled() {
		return
	}
	say("Circuit", "", "%s", b.State)
	if b.OpenUntil > now {
		say("Probes in", "", "%v", (b.OpenUntil - now).Round(100*time.Millisecond))
	}
	if p.CircuitBreaker.Kind == breaker.Adaptive {
		say("Learned", "", "%s", b.Explain())
		say("Openings", "since the start", "%d", b.Openings)
		return
	}
	if b.State == breaker.Closed && b.Calls > 0 {
		say("Failure rate", fmt.Sprintf("of the last %d attempts", b.Calls), "%.0f %%", 100*b.FailureRate)
		say("Slow", "", "%.0f %%", 100*b.SlowRate)
	}
	if b.Hanging > 0 {
		say("Hanging", "attempts past the slow threshold", "%d", b.Hanging)
	}
	say("Openings", "since the start", "%d", b.Openings)
}
