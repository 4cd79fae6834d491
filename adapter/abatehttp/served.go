package abatehttp

import (
	"context"
	"net/http"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/shed"
)

const priorityHeader = "Abate-Priority"

// priorityValues are the values of that header, in the order of shed.Priorities, shared by all requests.
var priorityValues = func() (all [len(shed.Priorities)][]string) {
	for i, p := range shed.Priorities {
		all[i] = []string{p.String()}
	}
	return all
}()

// Try is one try of a request that has an idempotency key.
type Try struct {
	// Key is the key as the client sent it.
	Key string
	// Token is greater than those of all earlier tries with this key. What can compare numbers can refuse to be changed by a
	// try that was taken for crashed and goes on all the same.
	Token uint64
	// TakenOver tells that an earlier try began and never ended: its effect may have happened.
	TakenOver bool
}

type tryKey struct{}

// TryOf returns the try under which a Handler has the request done that ctx belongs to; false if it has no key.
func TryOf(ctx context.Context) (Try, bool) {
	k, ok := ctx.Value(tryKey{}).(*keyedTry)
	if !ok {
		return Try{}, false
	}
	return Try{Key: k.sent, Token: k.Token, TakenOver: k.TakenOver}, true
}

// with returns r under ctx, with the deadline, the priority and the call tree of the request if there is any; r itself if
// there is nothing.
func (x *exchange) with(r *http.Request, ctx context.Context, s *sender, until time.Duration) *http.Request {
	if _, ends := ctx.Deadline(); until != abate.NoDeadline && (!ends || until < s.contextEnds) {
		ctx, x.cancel = context.WithTimeout(ctx, until-abate.Now())
		x.limit = ctx
	}
	if s.says {
		ctx = abate.WithPriority(ctx, s.priority)
	}
	if !limited(ctx) { // else a Handler before this one has made the tree, and reports it
		x.tree = s.tree()
	}
	if x.tree != nil {
		if s.trusted {
			x.tree.believed.Context = ctx
			ctx = &x.tree.believed
		}
		ctx = abate.WithCallTree(ctx, &x.tree.CallTree)
	}
	if x.limit == nil && x.key == nil && x.tree == nil && !s.says {
		outer := abate.CallTreeOf(ctx)
		if outer == nil {
			return r
		}
		ctx = abate.WithCallTree(ctx, outer) // its own: what Next asks repeats nothing that a Handler before this one has asked
	}
	return r.WithContext(ctx)
}
