package abatehttp

import (
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// RefusalStatus is the HTTP status for what a gate refused, and its stable code in answers, metrics and logs:
// rate-limited (429), overloaded (503) or deadline (504); for a caller that has left, client-left (499, which nobody
// gets to see).
func RefusalStatus(r *inbound.Refusal) (status int, code string) {
	p := serving.ProblemOf(r)
	return p.Status, p.Code
}

// AppendRefusal appends the body for a refusal: an RFC 9457 problem with the members code, service, reason and
// retryAfter beside the standard ones. It allocates nothing if dst has room.
func AppendRefusal(dst []byte, gate string, r *inbound.Refusal) []byte {
	return (*Problem)(serving.ProblemOf(r)).appendTo(dst, gate, "", r.Shed, RefusalWait(r))
}

// RefusalWait is what Retry-After says to who is refused by a gate, in whole seconds.
func RefusalWait(r *inbound.Refusal) time.Duration {
	return time.Duration(r.WholeSeconds()) * time.Second
}

// KeyWait is what Retry-After says to who is refused because of its idempotency key, in whole seconds, 1 to 30: so
// much, that those who are refused come back one after the other.
func KeyWait(g *inbound.Gate) time.Duration { return g.ComeBack().Truncate(time.Second) }

// Problem is a refusal with a stable code, as RFC 9457 has it.
type Problem serving.Problem

// The refusals that are not a gate's own: nobody knows who sent the request, or there is something about its
// idempotency key. What each says stands in its Detail.
var (
	Unauthenticated   = Problem(serving.Unauthenticated)
	KeyMissing        = Problem(serving.KeyMissing)
	KeyInvalid        = Problem(serving.KeyInvalid)
	KeyRunning        = Problem(serving.KeyRunning)
	KeyMismatch       = Problem(serving.KeyMismatch)
	KeyNotStored      = Problem(serving.KeyNotStored)
	KeyEffectUnknown  = Problem(serving.KeyEffectUnknown)
	KeyUnavailable    = Problem(serving.KeyUnavailable)
	KeyUnrecorded     = Problem(serving.KeyUnrecorded)
	KeyedBodyTooLarge = Problem(serving.KeyedBodyTooLarge)
	KeyedBodyBroken   = Problem(serving.KeyedBodyBroken)
)

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

// WholeSeconds rounds a wait up to whole seconds, for Retry-After and the fields beside it: nobody is told to come
// too early.
func WholeSeconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}

// AppendRateLimit appends the value of the RateLimit header (draft-ietf-httpapi-ratelimit-headers): what is left, and
// in how many seconds there is more: for a request that was refused, when its own tokens are there, else when the
// bucket is full. A limit that is closed names no time.
func AppendRateLimit(dst []byte, d ratelimit.Decision) []byte {
	dst = append(dst, `"default";r=`...)
	dst = strconv.AppendInt(dst, d.Remaining, 10)
	if seconds, ok := RateLimitReset(d); ok {
		dst = strconv.AppendInt(append(dst, ";t="...), seconds, 10)
	}
	return dst
}

// XRateLimitReset is the value of X-RateLimit-Reset at a time of the wall clock: RateLimitReset, or that time in
// seconds since 1970, rounded up, if the limit's reset is epoch. It is false if that time does not come.
func XRateLimitReset(l *inbound.ArrivalLimit, d ratelimit.Decision, now time.Time) (seconds int64, ok bool) {
	if l.Reset == "epoch" {
		wait, ok := resetIn(d)
		return WholeSeconds(time.Duration(now.Nanosecond())+min(wait, ratelimit.Never-time.Second)) + now.Unix(), ok
	}
	return RateLimitReset(d)
}

// RateLimitReset is the t of RateLimit and the value of X-RateLimit-Reset, in seconds; false if that time does not
// come.
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

// AppendRateLimitPolicy appends the value of the RateLimit-Policy header: the burst is the quota, and the time in
// which an empty bucket fills its window.
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

func (x *exchange) turnAway(p *serving.Problem) {
	switch p {
	case &serving.ClientLeft:
		x.out.WriteHeader(p.Status) // for those that keep a log
		return
	case &serving.Unauthenticated:
		x.out.Header()["Www-Authenticate"] = []string{"Bearer"}
	}
	r := x.Arrival.Refusal()
	x.tell(p.Status, r.NoRetry)
	body := bodies.Get().(*[]byte)
	*body = (*Problem)(p).appendTo((*body)[:0], x.Gate.Name(), "", r.Shed, RefusalWait(r))
	writeProblem(x.out, p, RefusalWait(r), *body)
	bodies.Put(body)
}

// refuse writes a refusal that is not the gate's own to w: to x itself if it is an answer like those of the service.
func (x *exchange) refuse(w http.ResponseWriter, p *serving.Problem, detail string) {
	x.tell(p.Status, false)
	wait := x.ComeBack(p).Truncate(time.Second)
	writeProblem(w, p, wait, (*Problem)(p).Append(nil, x.Gate.Name(), detail, wait))
}

func writeProblem(w http.ResponseWriter, p *serving.Problem, retryAfter time.Duration, body []byte) {
	header := w.Header()
	header["Content-Type"] = problemMedia
	header["Cache-Control"] = noStore
	values := [...]string{p.Code, strconv.Itoa(len(body)), ""}
	header[reasonHeader] = values[0:1:1]
	header["Content-Length"] = values[1:2:2]
	if s := WholeSeconds(retryAfter); s > 0 {
		values[2] = strconv.FormatInt(s, 10)
		header["Retry-After"] = values[2:3:3]
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}
