package abate

import (
	"strings"
	"sync/atomic"
)

// opening is why a guard's circuit is open, for those that it refuses. It outlives a change of the policy.
type opening struct{ latest atomic.Pointer[opened] }

type opened struct {
	reason  string // the breaker's
	refusal *Error // one for all who are refused, so that refusing costs nothing
}

// longestCause is how many bytes of a failure's text are kept.
const longestCause = 200

// begin notes that the circuit has opened.
func (o *opening) begin(guard, reason string) {
	o.latest.Store(&opened{reason, &Error{Guard: guard, Reason: ErrCircuitOpen, Opened: reason}})
}

// failed notes a failure that opened the circuit, or that was under way when it opened. Only its text is kept: it may
// be an answer with all that hangs on it, and was another call's.
func (o *opening) failed(failure error) {
	was := o.latest.Load()
	text := failure.Error()
	if len(text) > longestCause {
		text = strings.ToValidUTF8(text[:longestCause], "") + "..."
	}
	o.latest.CompareAndSwap(was, &opened{was.reason, &Error{
		Guard: was.refusal.Guard, Reason: ErrCircuitOpen, Opened: was.reason + ", the last: " + text,
	}})
}
