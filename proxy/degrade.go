package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/stale"
)

// degrade gives the client the fallback of the policy instead of a failure: the last good answer if it is recent enough,
// else the static one. It is false when there is none.
func (x *exchange) degrade(err error) bool {
	f := &x.fleet.policy.Fallback
	if x.rpc || f.Disabled || f.StaleIfError == 0 && f.Status == 0 { // an answer of HTTP means nothing to a client of gRPC
		return false
	}
	if e := x.kept(); e != nil {
		x.route.Guard.UsedFallback(err)
		x.reason = "stale"
		extra := h1.AppendField(nil, abatehttp.FallbackHeader, "stale")
		extra = h1.AppendField(extra, "Age", strconv.Itoa(int(e.Age.Seconds())))
		x.respond(head{status: e.Status, fields: e.Fields, length: int64(len(e.Body)), extra: extra})
		x.bytes = int64(len(e.Body))
		x.client.write(e.Body)
		x.client.end(nil)
		return true
	}
	if !f.Enabled() {
		return false
	}
	x.route.Guard.UsedFallback(err)
	x.reason = "fallback"
	extra := h1.AppendField(nil, "Content-Type", f.ContentType)
	x.own(f.Status, h1.AppendField(extra, abatehttp.FallbackHeader, "true"), []byte(f.Body))
	return true
}

// kept is the last good answer to the same request, nil if there is none that may be used.
func (x *exchange) kept() *stale.Entry {
	maxAge := x.fleet.policy.Fallback.StaleIfError
	if maxAge == 0 || x.req.Length != 0 {
		return nil
	}
	if answer, _ := stale.Asks(x.req.Method, x.req.Fields, x.fleet.policy.Fallback.Identity...); !answer {
		return nil
	}
	e, _ := x.plane.kept.Get(x.key(), x.req.Fields, abate.Now(), maxAge)
	return e
}

// record begins to keep an answer, which has just arrived, for when there will be none. The recorder is nil when this one
// is not kept.
func (x *exchange) record(a *answer) (keep *stale.Recorder, arrived time.Duration) {
	f := &x.fleet.policy.Fallback
	if x.rpc || f.StaleIfError == 0 || f.Disabled {
		return nil, 0
	}
	if x.outdates(a.resp.Status) {
		return nil, 0
	}
	_, fill := stale.Asks(x.req.Method, x.req.Fields, f.Identity...)
	if !fill || x.req.Length != 0 || a.resp.Status != http.StatusOK {
		return nil, 0
	}
	key, arrived := x.key(), abate.Now()
	if !f.Shared && !stale.Shared(a.resp.Fields) || !x.plane.kept.Keeps(a.resp.Status, a.resp.Fields, a.resp.Length) {
		x.plane.kept.Forget(key) // what is there is no longer the last good answer
		return nil, 0
	}
	if _, fresh := x.plane.kept.Get(key, x.req.Fields, arrived, time.Second); fresh {
		return nil, 0 // once a second is often enough
	}
	return x.plane.kept.Record(key, x.req.Fields, a.resp.Status, a.resp.Fields), arrived
}

// outdates forgets what an answer with that status makes wrong, and tells whether it did: the request changed something, for
// everybody, or the service says a definite no.
func (x *exchange) outdates(status int) bool {
	switch {
	case !abatehttp.Repeatable(text(x.req.Method), false, nil): // not a safe method
		if status < http.StatusBadRequest {
			x.plane.kept.ForgetAll(x.resource())
		}
		return status < http.StatusBadRequest
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusGone:
		x.plane.kept.Forget(x.key())
		return true
	}
	return false
}

// resource names what the request is about.
func (x *exchange) resource() []byte {
	return stale.AppendKey(nil, x.service(), x.req.Host, x.req.Path)
}

// key names the resource, by which rules it may be kept, and whose request it is.
func (x *exchange) key() []byte {
	f := &x.fleet.policy.Fallback
	return stale.AppendIdentity(stale.AppendRules(x.resource(), f.Shared, f.Identity), x.req.Fields, f.Identity)
}
