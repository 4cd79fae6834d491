package abateadmin

import (
	"fmt"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/registry"
)

// Level says how much a row needs to be looked at.
type Level int

const (
	// Idle: no call in the last ten seconds, and nothing the matter.
	Idle Level = iota
	// Calm: all is well.
	Calm
	// Watch: something is not as it should be, and the policy copes.
	Watch
	// Trouble: calls fail or are refused, or a storm is on.
	Trouble
)

// String is the word for it on the page: idle, calm, watch or trouble.
func (l Level) String() string {
	return [...]string{"idle", "calm", "watch", "trouble"}[min(max(l, Idle), Trouble)]
}

// From when a row is worth a colour. Shares are of ten seconds, and a few calls make no storm.
const (
	few          = 10   // calls or attempts, below which shares say nothing
	many         = 20   // retries, below which there is no storm: the reserve of a budget is 10, and meant to be used
	stormShare   = 0.3  // retries among all attempts; the alert HighRetryRate says the same
	retriesShare = 0.1  // more than the default budget allows for long
	failingShare = 0.5  // of calls
	failsShare   = 0.05 // of calls
	refusedShare = 0.01 // of calls
)

// verdict collects what is the matter.
type verdict struct {
	level Level
	words [Trouble + 1][]string
}

func (v *verdict) say(l Level, format string, args ...any) {
	v.level = max(v.level, l)
	v.words[l] = append(v.words[l], fmt.Sprintf(format, args...))
}

// warn says what the policies of the guards with one name warn of, each once.
func (v *verdict) warn(states []abate.State) {
	for _, p := range registry.Guard {
		for i := range states {
			if p.Warning == nil {
				break
			}
			if text := p.Warning(&states[i]); text != "" {
				v.say(Watch, "%s", text)
				break
			}
		}
	}
}

// text puts the worst first.
func (v *verdict) text() string {
	var all []string
	for l := Trouble; l >= Idle; l-- {
		all = append(all, v.words[l]...)
	}
	return strings.Join(all, "; ")
}

// judge says how bad it is for calls, and why. The row is filled in before.
func (r *Row) judge(t tally, states []abate.State) {
	var v verdict
	r.judgeCircuit(&v)
	attempts := t.First + t.Extra
	switch share := r.RetryShare; {
	case t.Extra < few:
	case share > stormShare && t.Extra >= many:
		v.say(Trouble, "retry storm: %.1f attempts for each call", r.Amplification)
	case share > retriesShare:
		v.say(Watch, "many retries: %.2f attempts for each call", r.Amplification)
	}
	r.judgeEnds(&v, t, "calls")
	if t.Left > 0 && t.Extra+t.Left >= few {
		v.say(Watch, "retries refused")
	}
	v.warn(states)
	if r.Queued > 0 {
		v.say(Watch, "%d wait for a place", r.Queued)
	}
	if v.level == Idle && attempts+t.Refused+t.Good+t.Bad+r.InFlight > 0 {
		v.level = Calm
	}
	r.Level, r.Why = v.level, v.text()
}

// judgeEnds says how calls or requests ended.
func (r *Row) judgeEnds(v *verdict, t tally, what string) {
	all := t.Good + t.Bad + t.Refused
	if all < few {
		return
	}
	share := func(n int) float64 { return float64(n) / float64(all) }
	switch s := share(t.Bad); {
	case s >= failingShare:
		v.say(Trouble, "%.0f %% of %s fail", 100*s, what)
	case s >= failsShare:
		v.say(Watch, "%.0f %% of %s fail", 100*s, what)
	}
	switch s := share(t.Refused); {
	case s >= failingShare:
		v.say(Trouble, "%.0f %% of %s refused", 100*s, what)
	case s >= refusedShare:
		v.say(Watch, "%.0f %% of %s refused", 100*s, what)
	}
}

// judgeGate is judge for requests that arrive.
func (r *Row) judgeGate(t tally, s inbound.GateState) {
	var v verdict
	r.judgeEnds(&v, t, "requests")
	switch share := r.RetryShare; {
	case t.Extra < few:
	case share > stormShare && t.Extra >= many:
		v.say(Trouble, "retry storm from callers: %.1f requests for each first one", r.Amplification)
	case share > retriesShare:
		v.say(Watch, "callers retry much: %.2f requests for each first one", r.Amplification)
	}
	if s.Shed.Queued > 0 {
		v.say(Watch, "%d wait for a place", s.Shed.Queued)
	}
	if s.Shed.CPURefused > 0 {
		v.say(Watch, "processor at %.0f %%", 100*s.Shed.CPU)
	}
	if v.level == Idle && t.First+t.Extra+t.Good+t.Bad+r.InFlight > 0 {
		v.level = Calm
	}
	r.Level, r.Why = v.level, v.text()
}
