package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/stale"
)

// lastGood keeps the answer that is passed on for when there will be none, and finds the one that was kept.
type lastGood struct {
	req     *request
	keep    *stale.Recorder // nil while nothing is kept
	arrived time.Duration
}

// kept is the last good answer to the same request, nil if there is none that may be used.
func (l *lastGood) kept() *stale.Entry {
	maxAge := l.req.fleet.policy.Fallback.StaleIfError
	if maxAge == 0 || l.req.Length != 0 {
		return nil
	}
	if answer, _ := stale.Asks(l.req.Method, l.req.Fields, l.req.fleet.policy.Fallback.Identity...); !answer {
		return nil
	}
	e, _ := l.req.plane.kept.Get(l.key(), l.req.Fields, core.Now(), maxAge)
	return e
}

// begin begins to keep an answer, which has just arrived, for when there will be none, and reports whether it is kept.
func (l *lastGood) begin(resp *h1.Response) bool {
	l.keep, l.arrived = l.record(resp)
	return l.keep != nil
}

// write, commit and drop go on with that, if it is kept.
func (l *lastGood) write(data []byte) { l.keep.Write(data) }

func (l *lastGood) commit() { l.keep.Commit(l.arrived) }

func (l *lastGood) drop() { l.keep.Drop() }

// record returns the recorder of an answer, nil when it is not kept.
func (l *lastGood) record(resp *h1.Response) (keep *stale.Recorder, arrived time.Duration) {
	f := &l.req.fleet.policy.Fallback
	if l.req.rpc || f.StaleIfError == 0 || f.Disabled {
		return nil, 0
	}
	if l.outdates(resp.Status) {
		return nil, 0
	}
	_, fill := stale.Asks(l.req.Method, l.req.Fields, f.Identity...)
	if !fill || l.req.Length != 0 || resp.Status != http.StatusOK {
		return nil, 0
	}
	key, arrived := l.key(), core.Now()
	if !f.Shared && !stale.Shared(resp.Fields) || !l.req.plane.kept.Keeps(resp.Status, resp.Fields, resp.Length) {
		l.req.plane.kept.Forget(key) // what is there is no longer the last good answer
		return nil, 0
	}
	if _, fresh := l.req.plane.kept.Get(key, l.req.Fields, arrived, time.Second); fresh {
		return nil, 0 // once a second is often enough
	}
	return l.req.plane.kept.Record(key, l.req.Fields, resp.Status, resp.Fields), arrived
}

// outdates forgets what an answer with that status makes wrong, and reports whether it did: the request changed
// something, for everybody, or the service says a definite no.
func (l *lastGood) outdates(status int) bool {
	switch {
	case !abatehttp.Repeatable(text(l.req.Method), false, nil): // not a safe method
		if status < http.StatusBadRequest {
			l.req.plane.kept.ForgetAll(l.resource())
		}
		return status < http.StatusBadRequest
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound,
		status == http.StatusGone:
		l.req.plane.kept.Forget(l.key())
		return true
	}
	return false
}

// resource names what the request is about.
func (l *lastGood) resource() []byte {
	return stale.AppendKey(nil, l.req.service(), l.req.Host, l.req.Path)
}

// key names the resource, by which rules it may be kept, and whose request it is.
func (l *lastGood) key() []byte {
	f := &l.req.fleet.policy.Fallback
	return stale.AppendIdentity(stale.AppendRules(l.resource(), f.Shared, f.Identity), l.req.Fields, f.Identity)
}

// degrade gives the client the fallback of the policy instead of a failure: the last good answer if it is recent
// enough, else the static one. It is false when there is none.
func (t *transfer) degrade(err error) bool {
	f := &t.req.fleet.policy.Fallback
	// an answer of HTTP means nothing to a client of gRPC
	if t.req.rpc || f.Disabled || f.StaleIfError == 0 && f.Status == 0 {
		return false
	}
	if e := t.good.kept(); e != nil {
		t.req.route.Guard.UsedFallback(err)
		t.reply.reason = "stale"
		extra := h1.AppendField(nil, abatehttp.FallbackHeader, "stale")
		extra = h1.AppendField(extra, "Age", strconv.Itoa(int(e.Age.Seconds())))
		t.reply.respond(head{status: e.Status, fields: e.Fields, length: int64(len(e.Body)), extra: extra})
		t.reply.bytes = int64(len(e.Body))
		t.req.client.write(e.Body)
		t.req.client.end(nil)
		return true
	}
	if !f.Enabled() {
		return false
	}
	t.req.route.Guard.UsedFallback(err)
	t.reply.reason = "fallback"
	extra := h1.AppendField(nil, "Content-Type", f.ContentType)
	t.reply.own(f.Status, h1.AppendField(extra, abatehttp.FallbackHeader, "true"), []byte(f.Body))
	return true
}
