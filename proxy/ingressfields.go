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
func (in *arrival) appendAnswer(dst []byte, status int) []byte {
	if !in.asked {
		return dst
	}
	if d, limited := in.machine.Limit(); limited {
		dst = abatehttp.AppendRateLimit(append(dst, "RateLimit: "...), d)
		dst = append(append(dst, "\r\n"...), in.post.limit...)
		dst = strconv.AppendInt(append(dst, "X-RateLimit-Remaining: "...), d.Remaining, 10)
		dst = strconv.AppendInt(append(dst, "\r\nX-RateLimit-Reset: "...), abatehttp.RateLimitReset(d), 10)
		dst = append(dst, "\r\n"...)
	}
	if status >= http.StatusBadRequest && (in.machine.Refusal().NoRetry || in.machine.NoRetry(abate.Now())) {
		dst = h1.AppendField(dst, noRetryField, "false")
	}
	return dst
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
