package abatehttp

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// statusClientLeft is what logs call the end of a request whose client did not wait for the answer. Nobody gets to see it.
const statusClientLeft = 499

// RefusalStatus is the HTTP status for what a gate refused, and its stable code in answers, metrics and logs: rate-limited
// (429), overloaded (503) or deadline (504); for a caller that has left, client-left (499, which nobody gets to see).
func RefusalStatus(r *abate.Refusal) (status int, code string) {
	switch r.Reason {
	case abate.ErrRateLimited:
		return http.StatusTooManyRequests, "rate-limited"
	case abate.ErrDeadline:
		return http.StatusGatewayTimeout, "deadline"
	case abate.ErrOverloaded:
		if r.Shed == shed.Expired {
			return http.StatusGatewayTimeout, "deadline"
		}
		return http.StatusServiceUnavailable, "overloaded"
	case context.Canceled:
		return statusClientLeft, "client-left"
	}
	return http.StatusServiceUnavailable, "refused"
}

// AppendRefusal appends the body for a refusal: an RFC 9457 problem with the members code, service, reason and retryAfter
// beside the standard ones. It allocates nothing if dst has room.
func AppendRefusal(dst []byte, gate string, r *abate.Refusal) []byte {
	status, code := RefusalStatus(r)
	p := Problem{status, code, deadlinePassed.Detail}
	switch status {
	case http.StatusTooManyRequests:
		p.Detail = "the rate limit of the service allows no further request now"
		if r.NoRetry {
			p.Detail = "the rate limit of the service will never allow this request"
		}
	case http.StatusServiceUnavailable:
		p.Detail = "the service has more to do than it can"
	}
	return p.appendTo(dst, gate, "", r.Shed, RefusalWait(r))
}

// RefusalWait is what Retry-After says to who is refused by a gate, in whole seconds.
func RefusalWait(r *abate.Refusal) time.Duration {
	return time.Duration(r.WholeSeconds()) * time.Second
}

// KeyWait is what Retry-After says to who is refused because of its idempotency key, in whole seconds, 1 to 30: so much, that those who are
// refused come back one after the other.
func KeyWait(g *abate.Gate) time.Duration { return g.ComeBack().Truncate(time.Second) }

// Problem is a refusal with a stable code, as RFC 9457 has it.
type Problem struct {
	Status int
	Code   string
	Detail string
}

// The refusals that are not a gate's own: they come from what a request lacks, or from its idempotency key.
var (
	// Unauthenticated: authentication is on, and nothing tells who sent the request.
	Unauthenticated = Problem{http.StatusUnauthorized, "unauthenticated", "the service takes requests of callers that it knows, and this one has not said who it is"}
	// KeyMissing: the request needs an idempotency key.
	KeyMissing = Problem{http.StatusBadRequest, "idempotency-key-missing", "the request needs the header Idempotency-Key, with a key of 1 to 255 characters that is new for each intent and the same for its repeats"}
	// KeyInvalid: what it has is none. What is wrong with it stands behind the detail.
	KeyInvalid = Problem{http.StatusBadRequest, "idempotency-key-invalid", "the header Idempotency-Key cannot be used"}
	// KeyRunning: another try with the key is running.
	KeyRunning = Problem{http.StatusConflict, "idempotency-running", "a request with this Idempotency-Key is still being done; its answer will be there later"}
	// KeyMismatch: the key belongs to another request.
	KeyMismatch = Problem{http.StatusUnprocessableEntity, "idempotency-mismatch", "this Idempotency-Key was used for another request; take a new one for a new intent"}
	// KeyNotStored: the request was done, but its answer is not there any more.
	KeyNotStored = Problem{http.StatusConflict, "idempotency-not-stored", "the request with this Idempotency-Key has been done; its answer could not be kept"}
	// KeyEffectUnknown: an earlier try began and ended without an answer, and is not to be run again.
	KeyEffectUnknown = Problem{http.StatusConflict, "idempotency-effect-unknown", "an earlier try with this Idempotency-Key reached the service and brought no answer that could be kept; nobody can say whether it took effect, so it is not run again"}
	// KeyUnavailable: nobody can tell whether the request was done.
	KeyUnavailable = Problem{http.StatusServiceUnavailable, "idempotency-unavailable", "where idempotency keys are kept cannot be reached or is full, so nobody can tell whether this request was done before"}
	// KeyUnrecorded: the request may have been done, and that is not recorded yet, so its answer is not given out. A repeat with
	// the same key gets it when it is.
	KeyUnrecorded = Problem{http.StatusServiceUnavailable, "idempotency-unrecorded", "what this request came to could not be recorded yet; send it again with the same Idempotency-Key to learn it"}
	// KeyedBodyTooLarge: the body of a request with a key is too large to be compared.
	KeyedBodyTooLarge = Problem{http.StatusRequestEntityTooLarge, "idempotency-body-too-large", "the body of a request with an Idempotency-Key is compared with that of its repeats, and this one is too large for that"}
	// KeyedBodyBroken: the body did not come whole.
	KeyedBodyBroken = Problem{http.StatusBadRequest, "idempotency-body-broken", "the body of the request did not come whole"}
)

var deadlinePassed = Problem{http.StatusGatewayTimeout, "deadline", "the deadline of the request has passed"}

// Append appends the body for the problem, in the form of AppendRefusal. detail, if there is any, says more than the
// problem itself. It allocates nothing if dst has room.
func (p *Problem) Append(dst []byte, gate, detail string, retryAfter time.Duration) []byte {
	return p.appendTo(dst, gate, detail, shed.None, retryAfter)
}

func (p *Problem) appendTo(dst []byte, gate, more string, why shed.Reason, retryAfter time.Duration) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, problemType(p)...)
	dst = append(dst, `","title":"`...)
	dst = append(dst, http.StatusText(p.Status)...)
	dst = append(dst, `","status":`...)
	dst = strconv.AppendInt(dst, int64(p.Status), 10)
	dst = append(dst, `,"code":"`...)
	dst = append(dst, p.Code...)
	dst = append(dst, `","detail":"`...)
	dst = append(dst, p.Detail...)
	if more != "" {
		dst = appendJSON(append(dst, ": "...), more)
	}
	dst = append(dst, `","service":"`...)
	dst = append(appendJSON(dst, gate), '"')
	if why != shed.None {
		dst = append(dst, `,"reason":"`...)
		dst = append(dst, why.String()...)
		dst = append(dst, '"')
	}
	if s := WholeSeconds(retryAfter); s > 0 {
		dst = append(dst, `,"retryAfter":`...)
		dst = strconv.AppendInt(dst, s, 10)
	}
	return append(dst, "}\n"...)
}

// problemType is the kind of problem, where the IETF has a name for it.
func problemType(p *Problem) string {
	switch p.Status {
	case http.StatusTooManyRequests:
		return "https://iana.org/assignments/http-problem-types#quota-exceeded"
	case http.StatusServiceUnavailable:
		return "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	}
	return "about:blank"
}

// appendJSON appends text as it stands in a JSON string. Bytes that are no UTF-8 become U+FFFD.
func appendJSON(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', byte(c))
		case c < ' ' || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = utf8.AppendRune(dst, c)
		}
	}
	return dst
}

// WholeSeconds rounds a wait up to whole seconds, for Retry-After and the fields beside it: nobody is told to come too early.
func WholeSeconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}

// AppendRateLimit appends the value of the RateLimit header (draft-ietf-httpapi-ratelimit-headers): what is left, and in
// how many seconds there is more: for a request that was refused, when its own tokens are there, else when the bucket is full.
// A limit that is closed names no time.
func AppendRateLimit(dst []byte, d ratelimit.Decision) []byte {
	dst = append(dst, `"default";r=`...)
	dst = strconv.AppendInt(dst, d.Remaining, 10)
	if seconds, ok := RateLimitReset(d); ok {
		dst = strconv.AppendInt(append(dst, ";t="...), seconds, 10)
	}
	return dst
}

// XRateLimitReset is the value of X-RateLimit-Reset at a time of the wall clock: RateLimitReset, or that time in seconds since 1970, rounded
// up, if the limit's reset is epoch. It is false if that time does not come.
func XRateLimitReset(l *abate.ArrivalLimit, d ratelimit.Decision, now time.Time) (seconds int64, ok bool) {
	if l.Reset == "epoch" {
		wait, ok := resetIn(d)
		return WholeSeconds(time.Duration(now.Nanosecond())+min(wait, ratelimit.Never-time.Second)) + now.Unix(), ok
	}
	return RateLimitReset(d)
}

// RateLimitReset is the t of RateLimit and the value of X-RateLimit-Reset, in seconds; false if that time does not come.
func RateLimitReset(d ratelimit.Decision) (seconds int64, ok bool) {
	wait, ok := resetIn(d)
	return WholeSeconds(wait), ok
}

// resetIn is RateLimitReset before it is rounded.
func resetIn(d ratelimit.Decision) (time.Duration, bool) {
	wait := d.Reset
	if d.Over && d.RetryAfter != ratelimit.Never {
		wait = d.RetryAfter
	}
	return wait, wait != ratelimit.Never
}

// AppendRateLimitPolicy appends the value of the RateLimit-Policy header: the burst is the quota, and the time in which an
// empty bucket fills its window.
func AppendRateLimitPolicy(dst []byte, c ratelimit.Config) []byte {
	dst = append(dst, `"default";q=`...)
	dst = strconv.AppendInt(dst, int64(c.Burst), 10)
	if perSecond := c.Limit.PerSecond(); perSecond > 0 {
		dst = append(dst, ";w="...)
		dst = strconv.AppendInt(dst, max(1, int64(float64(c.Burst)/perSecond+0.5)), 10)
	}
	return dst
}

// The values of headers that all refusals share.
var (
	problemMedia = []string{"application/problem+json"}
	noStore      = []string{"no-store"}
	no           = []string{"false"}
)

const (
	reasonHeader      = "Abate-Reason"
	shouldRetryHeader = "X-Should-Retry"
)

// bodies are what refusals are written in: they have to be cheap.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// turnAway writes the refusal of the gate.
func (x *exchange) turnAway() {
	r := x.arrival.Refusal()
	status, code := RefusalStatus(r)
	if status == statusClientLeft {
		x.out.WriteHeader(status) // for those that keep a log
		return
	}
	x.tell(status, r.NoRetry)
	body := bodies.Get().(*[]byte)
	*body = AppendRefusal((*body)[:0], x.gate.Name(), r)
	x.writeProblem(status, code, RefusalWait(r), *body)
	bodies.Put(body)
}

// refuse writes a refusal that is not the gate's own.
func (x *exchange) refuse(p *Problem, detail string, retryAfter time.Duration) {
	x.tell(p.Status, false)
	x.writeProblem(p.Status, p.Code, retryAfter, p.Append(nil, x.gate.Name(), detail, retryAfter))
}

func (x *exchange) writeProblem(status int, code string, retryAfter time.Duration, body []byte) {
	header := x.out.Header()
	header["Content-Type"] = problemMedia
	header["Cache-Control"] = noStore
	values := [...]string{code, strconv.Itoa(len(body)), ""}
	header[reasonHeader] = values[0:1:1]
	header["Content-Length"] = values[1:2:2]
	if s := WholeSeconds(retryAfter); s > 0 {
		values[2] = strconv.FormatInt(s, 10)
		header["Retry-After"] = values[2:3:3]
	}
	x.out.WriteHeader(status)
	_, _ = x.out.Write(body)
}
