package proxy

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/h1"
)

// called is what an exchange knows of the call tree of a call that goes out.
type called struct {
	owner bool            // the proxy decides about its repeats; a gateway may not, and leaves the fields about them as they are
	tree  *abate.CallTree // nil if it is the first of its tree
	asks  bool            // its client sent an allowance, and is told what was made of it
	spent bool            // it ended because nothing was left
}

func isAllowance(f h1.Field) bool {
	return len(f.Name) == len(hops.Allowance) && f.Name[0]|0x20 == 'a' && begins(f.Name, "abate-retry-allowance")
}

func isMade(f h1.Field) bool {
	return len(f.Name) == len(hops.Made) && f.Name[0]|0x20 == 'a' && begins(f.Name, "abate-retries-made")
}

// allowanceIn reads the allowance of a request: of several the least counts, and what cannot be read counts as if it were not
// there. id is that of the request that is being handled, as handled requests have it; 0 for none. The owner lies in the
// request.
func allowanceIn(fields []h1.Field) (least abate.Allowance, id uint64, ok bool) {
	for _, f := range fields {
		if !isAllowance(f) {
			continue
		}
		a, good := hops.ParseAllowance(text(f.Value))
		if !good {
			continue
		}
		if !ok || a.Left < least.Left {
			least = a
		}
		if ok = true; id == 0 {
			id = callID(f.Value)
		}
	}
	return least, id, ok
}

// The parameter of Abate-Retry-Allowance that names a request under way.
const (
	callBegin = `;call="`
	callDigit = 16
)

// callID finds it in a value that has been read: there it stands outside of strings. 0 is none.
func callID(value []byte) uint64 {
	i := strings.Index(text(value), callBegin) + len(callBegin)
	if i < len(callBegin) || i+callDigit >= len(value) || value[i+callDigit] != '"' {
		return 0
	}
	id, err := strconv.ParseUint(text(value[i:i+callDigit]), 16, 64)
	if err != nil {
		return 0
	}
	return id
}

func appendCallID(dst []byte, id uint64) []byte {
	var b [callDigit / 2]byte
	for i := range b {
		b[i] = byte(id >> (8 * (len(b) - 1 - i)))
	}
	dst = hex.AppendEncode(append(dst, callBegin...), b[:])
	return append(dst, '"')
}

// findTree finds the call tree that the request belongs to: that of the request whose service makes this call, else what it says
// itself. Most calls are the first of theirs, and know it at once.
func (x *exchange) findTree() {
	x.called = called{owner: x.in == nil && x.ownsRetries()}
	if x.in != nil {
		return
	}
	x.before = x.madeBefore()
	trees := &x.proxy.trees
	a, id, ok := allowanceIn(x.req.Fields)
	x.asks = ok
	switch {
	case !x.owner:
	case ok:
		if id != 0 {
			x.tree = trees.byID(id, a)
		}
		if x.tree == nil {
			a.Owner = strings.Clone(a.Owner) // copies may outlive the request
			x.tree = abate.NewCallTree(a)
		}
	case trees.joined.Load() > 0:
		var keys [maxTraces]uint64
		x.tree = trees.byTrace(keys[:traces(x.req.Fields, &keys)])
	}
}

// madeBefore is how many attempts of this call its client has made before, as it says: it retries by itself, and such an attempt
// earns no budget. What strangers say to a gateway means nothing.
func (x *exchange) madeBefore() (n int) {
	if x.proxy.config.Gateway {
		return 0
	}
	for _, f := range x.req.Fields {
		if number, ok := hops.NumberOf(text(f.Name), text(f.Value)); ok {
			n = max(n, number-1)
		}
	}
	return n
}

// telling is what an attempt tells the service that it calls.
type telling struct {
	abate.Allowance
	tells bool
}

// delegate asks the call what to tell with the attempt that it has just begun.
func (x *exchange) delegate() (t telling) {
	if x.owner {
		t.Allowance, t.tells = x.call.Delegate(0)
	}
	return t
}

// appendAllowance writes that. Most calls are the first of their tree: their owner is the service, which knows its name by heart.
func (x *exchange) appendAllowance(dst []byte, t *telling) []byte {
	if !t.tells {
		return dst
	}
	dst = append(dst, "Abate-Retry-Allowance: "...)
	if t.Owner == x.route.service.guard.Name() {
		dst = append(strconv.AppendInt(dst, int64(t.Left), 10), x.route.service.owner...)
	} else {
		dst = hops.AppendAllowance(dst, t.Allowance)
	}
	return append(dst, "\r\n"...)
}

// madeIn reads what an answer says about extra attempts behind it, in its head or its trailer.
func madeIn(fields []h1.Field) (most abate.Below) {
	for _, f := range fields {
		if !isMade(f) {
			continue
		}
		if b, ok := hops.ParseMade(text(f.Value)); ok {
			most = more(most, b)
		}
	}
	return most
}

// more joins what is known of attempts from two sides.
func more(a, b abate.Below) abate.Below {
	return abate.Below{Said: a.Said || b.Said, Made: max(a.Made, b.Made), Final: a.Final || b.Final}
}

// withoutMade takes that off, in place: it was for the one who asked.
func withoutMade(fields []h1.Field) []h1.Field {
	kept := fields[:0]
	for _, f := range fields {
		if !isMade(f) {
			kept = append(kept, f)
		}
	}
	return kept
}

// hear adds to the outcome of an attempt what came of its allowance. Of gRPC, trailer has it.
func (x *exchange) hear(o *abate.Outcome, a *answer, err error) {
	switch {
	case !x.owner:
	case err != nil:
		o.Unsent = !a.sent
	case x.omits(): // it was told nothing, so what it counts is not of our call tree
		o.Below = abate.Below{Final: more(a.verdict.below, madeIn(a.resp.Fields)).Final}
	default:
		o.Below = more(a.verdict.below, madeIn(a.resp.Fields))
	}
}

// report is what the client is told about extra attempts that were made for its request, when its answer begins, or ends if that
// is where it is told. Said: it has asked. Final is true of failures only. ok is false if there is nothing to tell.
func (x *exchange) report() (b abate.Below, ok bool) {
	if x.in != nil {
		return x.in.report()
	}
	if !x.owner || x.tree == nil {
		return b, false
	}
	b = x.tree.Report()
	b.Said, b.Final = x.asks, b.Final && !x.spent
	return b, true
}

// appendReport writes the report to the client of a call that goes out, if it has asked.
func (x *exchange) appendReport(dst []byte, a *head) []byte {
	if x.in != nil || !x.asks || x.rpc {
		return dst
	}
	b, ok := x.report()
	if b.Final = b.Final && hops.StatusFailed(a.status); !ok {
		return dst
	}
	dst = appendMade(dst, b)
	if b.Final && !a.says(noRetryField) {
		dst = h1.AppendField(dst, noRetryField, "false")
	}
	return dst
}

func appendMade(dst []byte, b abate.Below) []byte {
	dst = append(dst, "Abate-Retries-Made: "...)
	return append(hops.AppendMade(dst, b), "\r\n"...)
}

// lastWord tells whether a failure that the proxy answers, or passes on, is the end of the matter. Where somebody else counts the
// attempts too, it is if the call tree says so, and never because only this call has had its share.
func (x *exchange) lastWord(reason string) bool {
	switch {
	case x.tree != nil:
		return x.tree.Report().Final && !x.spent
	case x.asks: // a gateway that repeats nothing
		return reason != "upstream-error" && reason != "upstream-timeout" && reason != "deadline"
	}
	return true
}
