package proxy

import (
	"net/http"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/h1"
)

// appendRPCReport adds what the client is told about the attempts that were made for its call, and whether it had
// better not try again.
func (w *reply) appendRPCReport(dst []byte, c hops.Code) []byte {
	failed := hops.ServedCode(c) != abate.Success
	b, _ := w.report()
	b.Final = b.Final && failed
	if b.Said {
		dst = calltree.AppendMade(dst, b)
	}
	in := w.req.in
	if b.Final || failed && in != nil && in.asked && (in.machine.Refusal().NoRetry || in.machine.NoRetry(core.Now())) {
		dst = pushBack(dst, hops.Pushback{Never: true})
	}
	return dst
}

// ownRPC gives the client of a gRPC call an answer of the proxy's own, for what would be an answer with that status
// to another request. It is a head and nothing else: "trailers-only".
func (w *reply) ownRPC(status int, reason, message string, p hops.Pushback, more []byte) {
	w.reason = reason
	code := rpcCode(status)
	switch reason {
	case abatehttp.KeyNotStored.Code:
		code = alreadyExists
	case abatehttp.KeyEffectUnknown.Code:
		code = failedPrecondition
	}
	b := append(make([]byte, 0, 512), "Content-Type: application/grpc\r\n"...)
	b = h1.AppendField(appendStatus(b, code, message), reasonField, reason)
	if report := w.appendRPCReport(nil, code); strings.Contains(text(report), pushbackField) {
		b = append(b, report...)
	} else {
		b = pushBack(append(b, report...), p)
	}
	w.respond(head{status: http.StatusOK, extra: append(b, more...)})
	w.req.client.end(nil)
	w.code, w.status = code, status
}

// turnAwayRPC is turnAway for a gRPC call.
func (w *reply) turnAwayRPC(r *inbound.Refusal, status int, code string) {
	w.ownRPC(status, code, w.req.service()+": "+code, hops.Pushback{Never: r.NoRetry, Wait: r.RetryAfter}, nil)
}

// refuseAtGateRPC is refuseAtGate for a gRPC call.
func (w *reply) refuseAtGateRPC(p *abatehttp.Problem, detail string, wait time.Duration) {
	message := p.Detail
	if detail != "" {
		message += ": " + detail
	}
	w.ownRPC(p.Status, p.Code, w.req.service()+": "+message, hops.Pushback{Wait: wait}, nil)
}

// problemRPC is problem for a gRPC call.
func (w *reply) problemRPC(p *problem, never bool) {
	back := hops.Pushback{Never: never}
	if !never {
		back.Wait = p.wait
	}
	w.ownRPC(p.Status, p.Reason, p.Detail, back, nil)
}
