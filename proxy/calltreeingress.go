package proxy

import (
	"strings"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/h1"
)

// handled is what an arrival knows of the call tree of a request that comes in.
type handled struct {
	allowance core.Allowance // what its caller allows
	told      bool           // it says so, and is believed
	numbered  bool           // it says which attempt it is: somebody repeats
	envoy     bool           // it says so as Envoy does
	ticket    calltree.Ticket
	below     core.Below // what the service says itself
	grpc      bool       // what became of it is told in the trailer
	reported  bool
	said      core.Below // what the caller was told
}

// readTree reads what a trusted peer's request says about its call tree, when its other fields have been read. The
// allowance goes on to the service in another form, see appendAllowance.
func (in *arrival) readTree(r *request) {
	in.allowance, _, in.told = calltree.AllowanceIn(r.Fields)
	in.grpc = r.rpc
}

// appendAllowance tells the service what its caller allows, and by which name its calls belong to the request. One
// that is not joined gets nothing: nobody would count what it uses.
func (in *arrival) appendAllowance(dst []byte) []byte {
	if !in.told {
		return dst
	}
	a := in.allowance
	if in.ticket.Away {
		a.Left = 0
	}
	dst = hops.AppendAllowance(append(dst, "Abate-Retry-Allowance: "...), a)
	if in.ticket.ID != 0 {
		dst = calltree.AppendID(dst, in.ticket.ID)
	}
	return append(dst, "\r\n"...)
}

// report is reply.report for a request that came in. It is the same however often it is asked for: what is left was
// promised to the caller at first.
func (in *arrival) report() (b core.Below, ok bool) {
	if !in.reported {
		in.reported = true
		in.said = calltree.Merge(in.trees.Report(&in.ticket), in.below)
		in.said.Final = in.said.Final || in.asked && in.machine.Refusal().NoRetry
		in.said.Said = in.told
	}
	return in.said, in.told || in.ticket.Joined()
}

// appendReport writes the report to the caller, and reports whether it should not try again. Envoy has a field of its
// own for that.
func (in *arrival) appendReport(dst []byte, a *head) (_ []byte, final bool) {
	if in.grpc {
		return dst, false
	}
	b, _ := in.report()
	if b.Final = b.Final && hops.StatusFailed(a.status); in.told {
		dst = calltree.AppendMade(dst, b)
	}
	if b.Final && in.envoy && !a.says(hops.Ratelimited) {
		dst = h1.AppendField(dst, hops.Ratelimited, "true")
	}
	return dst, b.Final
}

// joinTree has the calls that the service makes for the request find its call tree, where there is something to
// share: an allowance, or somebody above who repeats, and a trace by which the calls can be told. Clients of gRPC
// need not say that they repeat.
func (in *arrival) joinTree(r *request) {
	if !in.told && !in.numbered && !in.grpc { // in.trusted holds: else nothing was read
		return
	}
	var keys [calltree.MaxTraces]uint64
	n := calltree.Traces(r.Fields, &keys)
	switch {
	case in.told:
		in.allowance.Owner = strings.Clone(in.allowance.Owner) // the tree may outlive the request
		in.ticket = in.trees.Join(in.allowance, true, keys[:n])
	case n > 0:
		in.ticket = in.trees.Join(core.Allowance{}, false, keys[:n])
	}
}

// leaveTree gives the slot among the call trees back.
func (in *arrival) leaveTree(answered bool) {
	if in != nil {
		in.trees.Leave(&in.ticket, answered)
		in.ticket = calltree.Ticket{}
	}
}
