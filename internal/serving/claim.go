package serving

import (
	"context"
	"strings"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/idempotency"
)

// ReadKey returns the key that a request has in the values of one or both headers, or why that is none. detail says
// more than the problem.
func ReadKey(standard, older []string) (key string, p *Problem, detail string) {
	key, err := idempotency.ParseKeys(strings.Join(standard, ", "), strings.Join(older, ", "))
	if err == nil && key == "" {
		if len(standard)+len(older) == 0 {
			return "", &KeyMissing, ""
		}
		err = idempotency.CheckKey(key)
	}
	if err != nil {
		return "", &KeyInvalid, err.Error()
	}
	return key, nil, ""
}

// Claim is what a request's key comes to: it is refused, or answered with what is remembered of an earlier try. If it
// is neither, the service does it: under its key if that is held, else as if it had none.
type Claim struct {
	Refused *Problem
	Answer  *idempotency.Response
	Held    bool
}

// Claim asks for the key of an admitted request, and keeps it if the service is to do the request. Store and Config
// of h are set. What is refused for another reason burns no key, so nothing may refuse the request after that.
func (x *Exchange) Claim(client context.Context, h *Hold, s *Sender, key string, fp idempotency.Fingerprint) Claim {
	if core.Now() >= x.Until {
		return Claim{Refused: &DeadlinePassed}
	}
	principal, compared := s.principal(h.Config.Scope)
	h.Gate, h.Ctx, h.sent = x.Gate, context.WithoutCancel(client), key
	h.Key = idempotency.StoreKey(x.Gate.Name(), principal, key)
	begun, err := h.Begin(fp.With(compared), x.Until)
	switch {
	case err != nil && h.open():
		return Claim{}
	case err != nil:
		return Claim{Refused: &KeyUnavailable}
	case begun.State == idempotency.Run && client.Err() == context.Canceled: // it left meanwhile, and nothing is done
		h.Fail()
		return Claim{Refused: &ClientLeft}
	case begun.State == idempotency.Run:
		h.Keep()
		return Claim{Held: true}
	}
	if p := problemOf(&begun); p != nil {
		return Claim{Refused: p}
	}
	return Claim{Answer: &begun.Response}
}

// Panicked ends the try of a handler that panicked, which may have had its effect before. kept reports whether it
// panicked behind the head of an answer that is kept, with this status: the request was done then. A reverse proxy
// panics when the service behind it breaks off.
func (h *Hold) Panicked(status int, kept bool) {
	switch {
	case kept:
		h.Complete(idempotency.Response{Status: status, Truncated: true}, h.Soon())
	case h.Config.KeepServerErrors:
		h.Complete(idempotency.Unknown(), h.Soon())
	default:
		h.Fail()
	}
}

type tryKey struct{}

// Under returns the context of the work that is done under the key. From here on the client may leave: what it asked
// for is done all the same, and its next try finds the answer.
func (h *Hold) Under() context.Context { return context.WithValue(h.Ctx, tryKey{}, h) }

// TryOf returns the try that ctx belongs to; false if it has no key.
func TryOf(ctx context.Context) (idempotency.Try, bool) {
	h, ok := ctx.Value(tryKey{}).(*Hold)
	if !ok {
		return idempotency.Try{}, false
	}
	return idempotency.Try{Key: h.sent, Token: h.Token, TakenOver: h.TakenOver}, true
}
