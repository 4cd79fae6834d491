package abateadmin

import (
	"math"
	"slices"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/breaker"
)

// window is how many seconds the rates of a row are about: short enough to see a storm begin, long enough not to
// flicker.
const window = 10

// Row is what is shown of one guard, or of all with one name, or of one gate. Rates are means over the last ten
// complete seconds, times are milliseconds since 1970.
type Row struct {
	Name string `json:"name"`
	// Gate reports whether the row is about requests that arrive, not about calls.
	Gate bool `json:"gate,omitempty"`

	Level Level `json:"level"`
	// Why says in words what is the matter, the worst first; "" if nothing is.
	Why string `json:"why,omitempty"`
	// Story says so in sentences, with what comes next, from Watch on.
	Story Story `json:"story,omitzero"`

	// Circuit is the breaker's state: closed, open, half-open, ramp-up, or off without one. "" for a gate.
	Circuit string `json:"circuit,omitempty"`
	// Since is when it came into this state; 0 if that is longer ago than is remembered.
	Since int64 `json:"since,omitempty"`
	// Guards is how many have this name, and Open how many of their circuits are open.
	Guards int `json:"guards"`
	Open   int `json:"open,omitempty"`
	// Override is what somebody has put above the policy by hand, at HandAt, 0 if that is not known. By is empty if the
	// program itself did it.
	Override abate.Override `json:"override,omitempty"`
	HandAt   int64          `json:"handAt,omitempty"`
	By       string         `json:"by,omitempty"`

	// Calls, Attempts and the others are per second. Calls are counted by their first attempts and by refusals. Good
	// are those that were answered, Bad those that failed, Refused those for which no attempt was sent. For a gate they
	// are requests, and Attempts those that it let pass or not, the callers' retries included.
	Calls    float64 `json:"calls"`
	Attempts float64 `json:"attempts"`
	Good     float64 `json:"good"`
	Bad      float64 `json:"bad"`
	Refused  float64 `json:"refused"`
	// Amplification is attempts for each call that sent one; 1 if there were none. RetryShare is the share of retries
	// and hedges among all attempts.
	Amplification float64 `json:"amplification"`
	RetryShare    float64 `json:"retryShare"`

	// InFlight is how many calls run, those in back-off included, and Limit how many may, 0 for any number. Queued wait
	// to be let in, and Retrying have been sent again at least once.
	InFlight int `json:"inFlight"`
	Limit    int `json:"limit,omitempty"`
	Queued   int `json:"queued,omitempty"`
	Retrying int `json:"retrying,omitempty"`
	// Budget is how many retries and hedges could be sent now, if HasBudget.
	Budget    float64 `json:"budget"`
	HasBudget bool    `json:"hasBudget,omitempty"`
	// Typical is what a successful attempt usually takes, or what a request does to a gate without load, and Took what
	// attempts took, in milliseconds; 0 if that is not known.
	Typical float64 `json:"typical,omitempty"`
	Took    float64 `json:"took,omitempty"`

	// Last is the last complete second: attempts, calls that were answered, calls that failed or were refused.
	Last [3]int `json:"last"`
}

// facts are what a row is made of besides its counts.
type facts struct {
	states   []abate.State
	policy   *abate.Policy // of the guard that was added last, in force
	off      int           // guards without a breaker
	budgets  int           // guards with a budget
	hand     hand
	taken    int // permits of bulkheads
	running  int // begun and not ended, as the record counts
	retrying int
}

// guardRow makes the row of the guards with one name at a time of their clock.
func guardRow(name string, now time.Duration, h *history, f facts, wall func(time.Duration) int64) Row {
	r := Row{Name: name, Guards: len(f.states), InFlight: max(f.running, 0), Retrying: max(f.retrying, 0)}
	half, ramp := 0, 0
	for i := range f.states {
		s := &f.states[i]
		switch s.Breaker.State {
		case breaker.Open:
			r.Open++
		case breaker.HalfOpen:
			half++
		case breaker.RampUp:
			ramp++
		}
		r.Override = worse(r.Override, s.Override)
		r.Queued += s.Bulkhead.Queued
		r.Limit += s.Bulkhead.Limit
		r.Budget += s.Budget
		r.Typical = max(r.Typical, milliseconds(s.Typical))
	}
	r.Budget, r.HasBudget = round(r.Budget, 1), f.budgets > 0
	switch {
	case r.Open > 0:
		r.Circuit = breaker.Open.String()
	case half > 0:
		r.Circuit = breaker.HalfOpen.String()
	case ramp > 0:
		r.Circuit = breaker.RampUp.String()
	case f.off == len(f.states):
		r.Circuit = "off"
	default:
		r.Circuit = breaker.Closed.String()
	}
	if r.Circuit != "off" && r.Circuit != breaker.Closed.String() {
		if at, ok := h.notes.lastChange(); ok {
			r.Since = wall(at)
		}
	}
	if r.Override != abate.NoOverride && f.hand.Known {
		r.HandAt, r.By = wall(f.hand.At), f.hand.Who
	}
	t := h.window(now, window)
	r.count(t, h.second(now, 0))
	r.judge(t, f.states)
	if r.Level >= Watch {
		p := h.lately(now, t, refusals, len(guardCauses), refusesCalls)
		p.taken = f.taken
		r.tell(p, f.states, f.policy, now)
	}
	return r
}

// gateRow makes the row of a gate.
func gateRow(name string, now time.Duration, h *history, g *inbound.Gate, running int) Row {
	s := g.StateAt(now)
	r := Row{Name: name, Gate: true, Guards: 1, InFlight: max(running, s.Shed.InFlight, 0), Limit: s.Shed.Limit,
		Queued: s.Shed.Queued}
	r.Typical = milliseconds(s.Shed.Latency)
	t := h.window(now, window)
	r.count(t, h.second(now, 0))
	r.judgeGate(t, s)
	if r.Level >= Watch {
		p := h.lately(now, t, shedCauses, gateCauses, gateCause)
		p.taken, p.load = s.Shed.InFlight, s.Shed.CPU
		r.tellGate(p)
	}
	return r
}

// count fills in the rates, of the window and of its last second.
func (r *Row) count(t, last tally) {
	perSecond := func(n int) float64 { return round(float64(n)/window, 1) }
	attempts := t.First + t.Extra
	r.Attempts, r.Good, r.Bad, r.Refused = perSecond(attempts), perSecond(t.Good), perSecond(t.Bad), perSecond(t.Refused)
	r.Calls = perSecond(t.First + t.Refused)
	if r.Gate {
		r.Calls = perSecond(attempts)
	}
	r.Amplification = 1
	if attempts > 0 {
		r.Amplification = min(round(float64(attempts)/float64(max(t.First, 1)), 2), 99) // more is no more of a storm
		r.RetryShare = round(float64(t.Extra)/float64(attempts), 3)
	}
	if t.Answers > 0 {
		r.Took = round(float64(t.Spent)/float64(t.Answers)/1000, 1)
	}
	r.Last = [3]int{last.First + last.Extra, last.Good, last.Bad + last.Refused}
}

// overrides, from the one that changes least to the one that stands out.
var overrides = []abate.Override{
	abate.NoOverride, abate.OverrideShadow, abate.OverrideDisabled, abate.OverrideForcedOpen,
}

// worse is the override that stands out, of guards with one name.
func worse(a, b abate.Override) abate.Override {
	return overrides[max(slices.Index(overrides, a), slices.Index(overrides, b), 0)]
}

func milliseconds(d time.Duration) float64 { return round(float64(d)/float64(time.Millisecond), 1) }

func round(x float64, digits int) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	f := math.Pow10(digits)
	return math.Round(x*f) / f
}
