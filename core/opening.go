package core

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// opening is why a guard's circuit is open, for those that it refuses. It outlives a change of the policy.
type opening struct{ latest atomic.Pointer[opened] }

type opened struct {
	reason  string   // the breaker's
	refusal *refusal // one for all who are refused, so that refusing costs nothing
}

// forcedOpen is the reason of a circuit that somebody has opened: no failure explains it.
const forcedOpen = "forced open"

// longestCause is how many bytes of a failure's text are kept.
const longestCause = 200

// begin notes that the circuit has opened.
func (o *opening) begin(guard, reason string) {
	o.latest.Store(&opened{reason, &refusal{Error{Guard: guard, Reason: ErrCircuitOpen, Opened: reason}}})
}

// end notes that the circuit of b has closed, so that nobody hears of this outage in the first moment of the next one.
// News of a breaker may come late: if the circuit has opened again meanwhile, that counts. A nil b refuses nobody.
func (o *opening) end(guard string, b *breaker.Breaker) {
	was := o.latest.Load()
	if b == nil || b.State() == breaker.Closed {
		o.latest.CompareAndSwap(was, &opened{refusal: &refusal{Error{Guard: guard, Reason: ErrCircuitOpen}}})
	}
}

// failed notes a failure that opened the circuit, or that was under way when it opened. Only its text is kept: it may
// be an answer with all that hangs on it, and was another call's.
func (o *opening) failed(failure error) {
	was := o.latest.Load()
	if was.reason == "" || was.reason == forcedOpen {
		return
	}
	// Sprint, because an Error method that panics must not cost the call its permits. One line, because logs are read by
	// line.
	text := strings.Join(strings.Fields(fmt.Sprint(failure)), " ")
	if len(text) > longestCause {
		text = strings.ToValidUTF8(text[:longestCause], "") + "..."
	}
	o.latest.CompareAndSwap(was, &opened{was.reason, &refusal{Error{
		Guard: was.refusal.of.Guard, Reason: ErrCircuitOpen, Opened: was.reason + ", the last: " + text,
	}}})
}

// refuse is the error of a call that has sent nothing.
func (o *opening) refuse(c *Call, now time.Duration) error {
	shared := o.latest.Load().refusal
	if now == c.start {
		return shared
	}
	own := *shared
	own.of.Elapsed = now - c.start
	return &own
}
