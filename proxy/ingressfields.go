package proxy

import (
	"net/http"
	"strconv"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/proxy/h1"
)

// appendRequest writes what the gate adds for the service. The attempt's number and the time it has stand beside it, see
// appendOwn.
func (in *arrival) appendRequest(dst []byte) []byte {
	return h1.AppendField(dst, in.post.priorityAs, in.request.Priority.String())
}

// appendAnswer writes what the gate adds to every answer: where its caller is with the rate limit, and whether it had
// better not try again.
func (in *arrival) appendAnswer(dst []byte, a *head) []byte {
	if !in.asked {
		return dst
	}
	if d, limited := in.machine.Limit(); limited {
		dst = abatehttp.AppendRateLimit(append(dst, "RateLimit: "...), d)
		dst = append(append(dst, "\r\n"...), in.post.limit...)
		dst = strconv.AppendInt(append(dst, "X-RateLimit-Limit: "...), d.Limit, 10)
		dst = strconv.AppendInt(append(dst, "\r\nX-RateLimit-Remaining: "...), d.Remaining, 10)
		if seconds, ok := abatehttp.RateLimitReset(d); ok {
			dst = strconv.AppendInt(append(dst, "\r\nX-RateLimit-Reset: "...), seconds, 10)
		}
		dst = append(dst, "\r\n"...)
	}
	if a.status >= http.StatusBadRequest && (in.machine.Refusal().NoRetry || in.machine.NoRetry(abate.Now())) && !a.saysNoRetry() {
		dst = h1.AppendField(dst, noRetryField, "false")
	}
	return dst
}

// saysNoRetry tells whether the answer says already whether to try again: the service knows best, and says it once.
func (a *head) saysNoRetry() bool {
	for _, f := range a.fields {
		if f.Is("x-should-retry") {
			return true
		}
	}
	return contains(a.extra, noRetryField+": ")
}

// outgoing leaves out of the service's fields, in place, those that the gate writes, and those that proxies tell each other
// if the peer is a stranger.
func (in *arrival) outgoing(fields []h1.Field) []h1.Field {
	_, limited := in.machine.Limit()
	if in.trusted && !limited {
		return fields
	}
	kept := fields[:0]
	for _, f := range fields {
		drop := false
		switch f.Name[0] | 0x20 {
		case 'x':
			drop = !in.trusted && begins(f.Name, "x-envoy-") || limited && begins(f.Name, "x-ratelimit-")
		case 'a':
			drop = !in.trusted && begins(f.Name, "abate-")
		case 'r':
			drop = limited && (f.Is("ratelimit") || f.Is("ratelimit-policy"))
		}
		if !drop {
			kept = append(kept, f)
		}
	}
	return kept
}
