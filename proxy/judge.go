package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/exhausted"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/h2"
)

// judge classifies an attempt. What the client did is not the service's fault.
func (g *guardedCall) judge(a *answer, err error) (o abate.Outcome) {
	again := a.mayRepeat()
	switch {
	case err == nil && g.req.rpc:
		if a.verdict.known { // else it has a message
			o = g.judgeRPC(a, again)
		}
	case err == nil && a.resp.Status < 400:
	case err == nil:
		o = abatehttp.ClassifyStatus(g.req.route.Guard, a.resp.Status, header(a.resp.Fields), again)
	case errors.Is(err, errGone) || g.body.failed() != nil || timedOut(err) && g.body.late():
		o = abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: err}
	case errors.As(err, new(*deniedError)):
		o = abate.Outcome{Class: abate.Ignored, NoRetry: true, Unsent: true, Err: err}
	case exhausted.Own(err): // another attempt would need the same
		o = abate.Outcome{Class: abate.Ignored, NoRetry: true, Unsent: !a.sent, Err: err}
	default:
		o = abatehttp.ClassifyError(g.req.route.Guard, err, again)
		if settled(err) {
			o.NoRetry = !again || !g.hasOthers(a) || !g.req.route.Guard.Retryable(0, err, true)
		}
		o.Unsent = o.Unsent || !a.sent
		o.Gone = a.resp.Status == 0 && cutOff(err) && g.hasOthers(a)
	}
	o.Unfinished = o.Class == abate.Success && err == nil && !g.req.rpc && !a.ended &&
		a.resp.Status != http.StatusSwitchingProtocols
	g.hear(&o, a, err)
	a.result = hops.EndpointResult(o.Class)
	return o
}

// hasOthers reports whether an attempt after a goes to another endpoint.
func (g *guardedCall) hasOthers(a *answer) bool {
	all := g.req.route.service.newest(g.req.fleet).endpoints
	return len(all) > 1 || len(all) == 1 && all[0] != a.to
}

// cutOff reports whether a connection ended before there was an answer on it.
func cutOff(err error) bool {
	var end *h2.StreamError
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &end) && end.Cause != nil && !timedOut(err)
}

// judgeDelivered judges an answer that the client has got, as far as it came.
func (g *guardedCall) judgeDelivered(a *answer) (o abate.Outcome) {
	switch v := &a.verdict; {
	case g.outlived(a): // it had begun: how long its client wants it is no failure
		o = abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: a.broke}
	case a.broke != nil && !errors.Is(a.broke, errGone) && !g.req.client.gone():
		o = abate.Outcome{Class: abate.Failure, NoRetry: true, Err: a.broke}
	case !v.known:
		o = abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: errGone}
	default:
		o = g.judgeRPC(a, false)
	}
	g.hear(&o, a, a.broke)
	a.result = hops.EndpointResult(o.Class)
	return o
}

// outlived reports whether an answer of gRPC that has begun ended because the time of its call was up.
func (g *guardedCall) outlived(a *answer) bool {
	late := a.verdict.known && a.verdict.code == hops.DeadlineExceeded
	if a.broke != nil {
		late = timedOut(a.broke) || a.overdue(a.broke)
	}
	return core.Outlived(&g.machine, core.Now(), late)
}

func (g *guardedCall) judgeRPC(a *answer, again bool) abate.Outcome {
	v := &a.verdict
	o := hops.ClassifyCode(g.req.route.Guard, v.code, again, v.pushback, v.below, nil)
	if o.Class != abate.Success {
		o.Err = &statusError{v.code, strings.Clone(v.message[:min(len(v.message), maxLogged)])}
	}
	return o
}

// hear adds to the outcome of an attempt what came of its allowance. Of gRPC, trailer has it.
func (g *guardedCall) hear(o *abate.Outcome, a *answer, err error) {
	switch {
	case !g.req.owner:
	case err != nil:
		o.Unsent = !a.sent
	case g.req.omits(): // it was told nothing, so what it counts is not of our call tree
		o.Below = core.Below{Final: calltree.Merge(a.verdict.below, calltree.MadeIn(a.resp.Fields)).Final}
	default:
		o.Below = calltree.Merge(a.verdict.below, calltree.MadeIn(a.resp.Fields))
	}
}
