package serving

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/shed"
)

// Problem is a way to refuse a request. RPC decides what clients of gRPC do by themselves: UNAVAILABLE is what they
// repeat, and may; what only people can fix has a code that nobody repeats.
type Problem struct {
	Status int    // of HTTP
	Code   string // stable: in answers, metrics and logs
	Detail string // for people
	RPC    hops.Code
}

// StatusClientLeft is what logs call the end of a request whose client did not wait for the answer. Nobody gets it.
const StatusClientLeft = 499

// The codes of gRPC that package hops has no name for.
const (
	invalidArgument    hops.Code = 3
	alreadyExists      hops.Code = 6
	failedPrecondition hops.Code = 9
	aborted            hops.Code = 10
)

// What a gate refuses.
var (
	RateLimited = Problem{http.StatusTooManyRequests, "rate-limited",
		"the rate limit of the service allows no further request now", hops.ResourceExhausted}
	NeverAllowed = Problem{http.StatusTooManyRequests, "rate-limited",
		"the rate limit of the service will never allow this request", hops.ResourceExhausted}
	Overloaded = Problem{http.StatusServiceUnavailable, "overloaded",
		"the service has more to do than it can", hops.Unavailable}
	DeadlinePassed = Problem{http.StatusGatewayTimeout, "deadline",
		"the deadline of the request has passed", hops.DeadlineExceeded}
	ClientLeft = Problem{StatusClientLeft, "client-left", "the client has left", hops.Canceled}
	Refused    = Problem{http.StatusServiceUnavailable, "refused",
		"the service has more to do than it can", hops.Unavailable}
	Unauthenticated = Problem{http.StatusUnauthorized, "unauthenticated",
		"the service takes requests of callers that it knows, and this one has not said who it is", hops.Unauthenticated}
)

// What is refused for an idempotency key.
var (
	KeyMissing = Problem{http.StatusBadRequest, "idempotency-key-missing",
		"the request needs the header Idempotency-Key, with a key of 1 to 255 characters that is new for each intent and " +
			"the same for its repeats", invalidArgument}
	KeyInvalid = Problem{http.StatusBadRequest, "idempotency-key-invalid",
		"the header Idempotency-Key cannot be used", invalidArgument}
	KeyRunning = Problem{http.StatusConflict, "idempotency-running",
		"a request with this Idempotency-Key is still being done; its answer will be there later", aborted}
	KeyMismatch = Problem{http.StatusUnprocessableEntity, "idempotency-mismatch",
		"this Idempotency-Key was used for another request; take a new one for a new intent", failedPrecondition}
	KeyNotStored = Problem{http.StatusConflict, "idempotency-not-stored",
		"the request with this Idempotency-Key has been done; its answer could not be kept", alreadyExists}
	KeyEffectUnknown = Problem{http.StatusConflict, "idempotency-effect-unknown",
		"an earlier try with this Idempotency-Key reached the service and brought no answer that could be kept; " +
			"nobody can say whether it took effect, so it is not run again", failedPrecondition}
	KeyUnavailable = Problem{http.StatusServiceUnavailable, "idempotency-unavailable",
		"where idempotency keys are kept cannot be reached or is full, so nobody can say whether this request was done " +
			"before", hops.Unavailable}
	KeyUnrecorded = Problem{http.StatusServiceUnavailable, "idempotency-unrecorded",
		"what this request came to could not be recorded yet; send it again with the same Idempotency-Key to learn it",
		hops.Unavailable}
	KeyedBodyTooLarge = Problem{http.StatusRequestEntityTooLarge, "idempotency-body-too-large",
		"the body of a request with an Idempotency-Key is compared with that of its repeats, and this one is too large " +
			"for that", hops.ResourceExhausted}
	KeyedBodyBroken = Problem{http.StatusBadRequest, "idempotency-body-broken",
		"the body of the request did not come whole", invalidArgument}
)

// ProblemOf returns the problem for what a gate refused.
func ProblemOf(r *inbound.Refusal) *Problem {
	switch {
	case r.Reason == abate.ErrRateLimited && r.NoRetry:
		return &NeverAllowed
	case r.Reason == abate.ErrRateLimited:
		return &RateLimited
	case r.Reason == abate.ErrDeadline, r.Reason == abate.ErrOverloaded && r.Shed == shed.Expired:
		return &DeadlinePassed
	case r.Reason == abate.ErrOverloaded:
		return &Overloaded
	case r.Reason == context.Canceled:
		return &ClientLeft
	}
	return &Refused
}

// problemOf returns the problem for a request whose key has begun before; nil if its answer is there.
func problemOf(b *idempotency.Begun) *Problem {
	switch {
	case b.State == idempotency.Running:
		return &KeyRunning
	case b.State == idempotency.Mismatch:
		return &KeyMismatch
	case b.Response.EffectUnknown():
		return &KeyEffectUnknown
	case b.Response.Truncated:
		return &KeyNotStored
	}
	return nil
}

// Keeps reports whether an answer of HTTP is kept for the repeats of its request. One that says AskAgain is no answer:
// it would be given out as long as the key lives.
func Keeps(c *idempotency.Config, status int, reason string) bool {
	return c.Keeps(status) && (status < 400 || !AskAgain(reason))
}

// AskAgain reports whether a gate behind this one has refused for this reason and done nothing, or keeps the key and
// says that its answer comes later. A deadline is no such reason: it may have passed in the middle of the work.
func AskAgain(reason string) bool {
	switch reason {
	case RateLimited.Code, Overloaded.Code, Refused.Code, Unauthenticated.Code,
		KeyRunning.Code, KeyUnavailable.Code, KeyUnrecorded.Code, KeyedBodyBroken.Code:
		return true
	}
	return false
}

// passing are fields of answers that belong to one connection, to one time or to one session. Intermediaries set some
// of them again. Cookies are credentials of one session: they are not kept where answers are kept.
var passing = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length",
	"Date", "Set-Cookie", "Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Limit", "X-Ratelimit-Remaining",
	"X-Ratelimit-Reset", "X-Should-Retry", "Idempotency-Replayed", "Grpc-Retry-Pushback-Ms", hops.Made, hops.Ratelimited,
}

// Replayed reports whether a field of an answer, or of its trailer, is kept for the repeats of its request.
func Replayed(name string) bool {
	return !slices.ContainsFunc(passing, func(p string) bool { return len(p) == len(name) && strings.EqualFold(p, name) })
}
