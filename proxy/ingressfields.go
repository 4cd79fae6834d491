package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/fieldname"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/h1"
)

// appendRequest writes what the gate adds for the service. The attempt's number and the time it has stand beside it,
// see appendOwn.
func (in *arrival) appendRequest(dst []byte) []byte {
	return in.appendAllowance(in.key.appendRequest(h1.AppendField(dst, in.post.priorityAs, in.request.Priority.String())))
}

// The fields that tell the service about the idempotency key that its request holds; see docs/headers.md.
const (
	keyTokenField  = "Abate-Idempotency-Token"
	takenOverField = "Abate-Idempotency-Taken-Over"
)

// appendRequest tells the service which try it gets, and whether one before it never ended.
func (k *keyed) appendRequest(dst []byte) []byte {
	if k == nil {
		return dst
	}
	dst = strconv.AppendUint(append(dst, keyTokenField+": "...), k.Token, 10)
	if dst = append(dst, "\r\n"...); k.TakenOver {
		dst = append(dst, takenOverField+": true\r\n"...)
	}
	return dst
}

// aboutKey reports the fields that appendRequest writes: a proxy before this one, which is believed, knows of its
// own tries only.
func (k *keyed) aboutKey(f h1.Field) bool {
	return k != nil && fieldname.Begins(f.Name, "abate-idempotency-")
}

// appendAnswer writes what the gate adds to every answer: what became of the caller's allowance for retries, where it
// is with the rate limit, and whether it had better not try again.
func (in *arrival) appendAnswer(dst []byte, a *head) []byte {
	dst, final := in.appendReport(dst, a)
	if in.asked {
		dst = in.appendLimit(dst)
		final = final || a.status >= http.StatusBadRequest &&
			(in.machine.Refusal().NoRetry || in.machine.NoRetry(core.Now()))
	}
	if final && !a.says(noRetryField) {
		dst = h1.AppendField(dst, noRetryField, "false")
	}
	return dst
}

// appendLimit writes where the caller is with the rate limit.
func (in *arrival) appendLimit(dst []byte) []byte {
	if d, limited := in.machine.Limit(); limited {
		dst = abatehttp.AppendRateLimit(append(dst, "RateLimit: "...), d)
		dst = append(append(dst, "\r\n"...), in.post.limit...)
		dst = strconv.AppendInt(append(dst, "X-RateLimit-Limit: "...), d.Limit, 10)
		dst = strconv.AppendInt(append(dst, "\r\nX-RateLimit-Remaining: "...), d.Remaining, 10)
		if seconds, ok := abatehttp.XRateLimitReset(&in.post.protection.RateLimit, d, time.Now()); ok {
			dst = strconv.AppendInt(append(dst, "\r\nX-RateLimit-Reset: "...), seconds, 10)
		}
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// outgoing leaves out of the service's fields, in place, those that the gate writes, and those that proxies tell each
// other if the peer is a stranger.
func (in *arrival) outgoing(fields []h1.Field) []h1.Field {
	_, limited := in.machine.Limit()
	if in.trusted && !limited && !in.told {
		return fields
	}
	if in.told {
		in.below = calltree.Merge(in.below, calltree.MadeIn(fields))
	}
	kept := fields[:0]
	for _, f := range fields {
		drop := false
		switch f.Name[0] | 0x20 {
		case 'x':
			drop = !in.trusted && fieldname.Begins(f.Name, "x-envoy-") || limited && fieldname.Begins(f.Name, "x-ratelimit-")
		case 'a':
			drop = !in.trusted && fieldname.Begins(f.Name, "abate-") || in.told && calltree.IsMade(f)
		case 'r':
			drop = limited && (f.Is("ratelimit") || f.Is("ratelimit-policy"))
		}
		if !drop {
			kept = append(kept, f)
		}
	}
	return kept
}
