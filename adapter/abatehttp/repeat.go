package abatehttp

import (
	"context"
	"hash/maphash"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
)

// numbered are the headers by which a retrier above says which attempt of its call a request is.
var numbered = [...]string{
	hops.AttemptCount, hops.GRPCAttempts, hops.RestLiAttempts, hops.AWSAttempt, hops.GoogleAttempt, hops.StainlessRetries,
}

// believedKey is in the context of a request that a Handler has from a trusted peer.
type believedKey struct{}

// believedContext is that context.
type believedContext struct{ context.Context }

func (c *believedContext) Value(key any) any {
	if _, ok := key.(believedKey); ok {
		return true
	}
	return c.Context.Value(key)
}

// numberOf is the highest number that a header of the request says, at least 1, and whether one says any. A request
// that a server has got and only passes on, as httputil.ReverseProxy does, says what somebody else wrote: that counts
// if a Handler believes him.
func numberOf(req *http.Request) (most int, said bool) {
	most = 1
	if len(req.Header) == 0 {
		return most, false
	}
	for _, name := range numbered {
		for _, value := range req.Header[name] {
			if n, ok := hops.NumberOf(name, value); ok {
				most, said = max(most, n), true
			}
		}
	}
	if arrived := req.RequestURI != "" || req.RemoteAddr != ""; said && arrived &&
		req.Context().Value(believedKey{}) == nil {
		return 1, false
	}
	return most, said
}

// sign is by what one failed call is known again. What is empty does not count.
type sign struct {
	guard       *abate.Guard
	method, url string
	key         string          // a name that is the same for all attempts of a call
	header      uintptr         // the map itself, which outlives the attempts
	tree        *core.CallTree  // that the header's call belongs to
	ctx         context.Context // one that belongs to a piece of work
	content     uint64          // what else is asked
}

// callNames are headers whose value names a call.
var callNames = [...]string{"Idempotency-Key", "X-Idempotency-Key", "X-Ms-Client-Request-Id", "Amz-Sdk-Invocation-Id"}

var signSeed = maphash.MakeSeed()

// signs are by what a call with this request is known again. A name says it all. Else it is the header, if it is the
// very same map: who retries by himself sends the same request again, or one made around its header; or the context, if
// it is that of a piece of work, which ends by itself. Both only with the same method, URL, body and header: who asks
// for the next page or range with what is left of the last request makes another call.
func signs(g *abate.Guard, req *http.Request) (all [2]sign, n int) {
	if req.URL == nil {
		return all, 0
	}
	base := sign{guard: g, method: req.Method, url: req.URL.String()}
	for _, name := range callNames {
		if v := req.Header[name]; len(v) > 0 && v[0] != "" {
			all[0] = base
			all[0].key = name + ": " + v[0]
			return all, 1
		}
	}
	body, whole, ok := digest(req)
	if !ok {
		return all, 0
	}
	base.content = body + digestHeader(req.Header)
	ctx := req.Context()
	if req.Header != nil {
		all[n] = base
		all[n].header, all[n].tree = reflect.ValueOf(req.Header).Pointer(), core.CallTreeOf(ctx)
		n++
	}
	if whole && ofWork(ctx) {
		all[n] = base
		all[n].ctx, all[n].key = ctx, strings.Join(req.Header["Cookie"], ";")
		n++
	}
	return all, n
}

// changing are headers that may be others in each attempt of one call: traces, dates, cookies, which http.Client adds
// each time, and what retriers say of their attempts.
var changing = []string{
	"Amz-Sdk-Request", "B3", "Baggage", "Cookie", "Date", "Grpc-Timeout", "Request-Id", "Traceparent", "Tracestate",
	"Uber-Trace-Id",
	"X-Amz-Date", "X-Amzn-Trace-Id", "X-Cloud-Trace-Context", "X-Correlation-Id", "X-Goog-Api-Client", "X-Request-Id",
	"X-Request-Start",
}

// changingPrefixes are how such headers begin.
var changingPrefixes = []string{"Abate-", "X-B3-", "X-Datadog-", "X-Envoy-", "X-Retry-"}

func changes(name string) bool {
	if _, ok := slices.BinarySearch(changing, name); ok {
		return true
	}
	return slices.ContainsFunc(changingPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// digestHeader hashes what the header says, in whatever order, without what changes from attempt to attempt.
func digestHeader(header http.Header) (sum uint64) {
	for name, values := range header {
		if changes(name) {
			continue
		}
		var h maphash.Hash
		h.SetSeed(signSeed)
		h.WriteString(name)
		for _, v := range values {
			h.WriteByte(0)
			h.WriteString(v)
		}
		sum += h.Sum64()
	}
	return sum
}

// ofWork reports whether ctx belongs to a piece of work: it has a deadline, or is that of a request that a server has
// got. Others may last as long as the program, and then the same request is often just the next one.
func ofWork(ctx context.Context) bool {
	if reflect.TypeOf(ctx).Kind() != reflect.Pointer { // else it may be no key of a map
		return false
	}
	if _, ok := ctx.Deadline(); ok {
		return true
	}
	return ctx.Value(http.ServerContextKey) != nil || core.CallTreeOf(ctx) != nil
}

// longestDigest is up to how many bytes of a body are read to tell it from another.
const longestDigest = 64 << 10

// digest hashes the request's body, or its length and beginning if it is long; ok is false if that cannot be had
// without taking it from the attempt.
func digest(req *http.Request) (sum uint64, whole, ok bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return 0, true, true
	}
	if req.GetBody == nil || req.ContentLength <= 0 {
		return 0, false, false
	}
	body, err := req.GetBody()
	if err != nil {
		return 0, false, false
	}
	defer body.Close()
	var h maphash.Hash
	h.SetSeed(signSeed)
	_, err = io.Copy(&h, io.LimitReader(body, longestDigest))
	return h.Sum64() + uint64(req.ContentLength), req.ContentLength <= longestDigest, err == nil
}
