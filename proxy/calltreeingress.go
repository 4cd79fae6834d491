package proxy

import (
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/h1"
)

// handled is what an arrival knows of the call tree of a request that comes in.
type handled struct {
	allowance abate.Allowance // what its caller allows
	told      bool            // it says so, and is believed
	numbered  bool            // it says which attempt it is: somebody repeats
	envoy     bool            // it says so as Envoy does
	ticket    ticket
	below     abate.Below // what the service says itself
	grpc      bool        // what became of it is told in the trailer
	reported  bool
	said      abate.Below // what the caller was told
}

// readTree reads what a trusted peer's request says about its call tree, when its other fields have been read. The allowance goes
// on to the service in another form, see appendAllowance.
func (in *arrival) readTree(x *exchange) {
	in.allowance, _, in.told = allowanceIn(x.req.Fields)
	in.grpc = x.rpc
}

// joinTree has the calls that the service makes for the request find its call tree, where there is something to share: an
// allowance, or somebody above who repeats, and a trace by which the calls can be told. Clients of gRPC need not say that they
// repeat.
func (x *exchange) joinTree() {
	in := x.in
	if !in.told && !in.numbered && !in.grpc { // in.trusted holds: else nothing was read
		return
	}
	var keys [maxTraces]uint64
	n := traces(x.req.Fields, &keys)
	switch {
	case in.told:
		in.allowance.Owner = strings.Clone(in.allowance.Owner) // the tree may outlive the request
		in.ticket = x.proxy.trees.join(in.allowance, true, keys[:n])
	case n > 0:
		in.ticket = x.proxy.trees.join(abate.Allowance{}, false, keys[:n])
	}
}

// leaveTree gives the place back.
func (x *exchange) leaveTree() {
	if x.in != nil {
		x.proxy.trees.leave(&x.in.ticket, x.got != nil)
		x.in.ticket = ticket{}
	}
}

// appendAllowance tells the service what its caller allows, and by which name its calls belong to the request. One that is not
// joined gets nothing: nobody would count what it uses.
func (in *arrival) appendAllowance(dst []byte) []byte {
	if !in.told {
		return dst
	}
	a := in.allowance
	if in.ticket.away {
		a.Left = 0
	}
	dst = hops.AppendAllowance(append(dst, "Abate-Retry-Allowance: "...), a)
	if in.ticket.id != 0 {
		dst = appendCallID(dst, in.ticket.id)
	}
	return append(dst, "\r\n"...)
}

// report is exchange.report for a request that came in. It is the same however often it is asked for: what is left was promised
// to the caller at first.
func (in *arrival) report() (b abate.Below, ok bool) {
	if !in.reported {
		in.reported = true
		in.said = more(in.post.service.proxy.trees.report(&in.ticket), in.below)
		in.said.Final = in.said.Final || in.asked && in.machine.Refusal().NoRetry
		in.said.Said = in.told
	}
	return in.said, in.told || in.ticket.joint != nil
}

// appendReport writes the report to the caller, and tells whether it should not try again. Envoy has a field of its own for
// that.
func (in *arrival) appendReport(dst []byte, a *head) (_ []byte, final bool) {
	if in.grpc {
		return dst, false
	}
	b, _ := in.report()
	if b.Final = b.Final && hops.StatusFailed(a.status); in.told {
		dst = appendMade(dst, b)
	}
	if b.Final && in.envoy && !a.says(hops.Ratelimited) {
		dst = h1.AppendField(dst, hops.Ratelimited, "true")
	}
	return dst, b.Final
}
