package abatehttp

import (
	"context"
	"strconv"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
)

// callTree is what a Handler keeps for a request whose caller counts attempts.
type callTree struct {
	abate.CallTree
	believed believedContext
	given    int         // the allowance, if it was believed
	told     abate.Below // what the caller has been told, once it has
}

// tree makes the call tree of a request that has Abate-Retry-Allowance or an attempt's number; nil for others: nobody would
// read what it reports. An allowance that is not believed, or cannot be read, limits nothing.
func (s *sender) tree() *callTree {
	values := s.request.Header[hops.Allowance]
	if values == nil && !s.counts() {
		return nil
	}
	t := new(callTree)
	if a, ok := hops.LeastAllowance(values); ok && s.trusted {
		t.Reset(a)
		t.given = a.Left
	}
	return t
}

// limited tells whether the work under ctx has an allowance already.
func limited(ctx context.Context) bool {
	t := abate.CallTreeOf(ctx)
	if t == nil {
		return false
	}
	_, is := t.Allowance()
	return is
}

// attemptHeaders say which attempt of its call a request is.
var attemptHeaders = [...]string{hops.AttemptCount, hops.GRPCAttempts, hops.RestLiAttempts}

// counts tells whether the request says which attempt it is.
func (s *sender) counts() bool {
	for _, name := range attemptHeaders {
		if s.request.Header[name] != nil {
			return true
		}
	}
	return false
}

// report is what the tree says when the head of the answer is written. What is left goes back to the caller with that, so
// nothing more is made of it here. What calls in flight were given has to be counted: they have not told yet what they used.
func (t *callTree) report() abate.Below {
	if t.told.Said {
		return t.told
	}
	used := t.given - t.Close()
	t.told = t.Report()
	t.told.Made = max(t.told.Made, used)
	return t.told
}

// tell writes into the header of an answer with a status what the caller has to know of the attempts that were made for its
// request, and whether it should not repeat it: because the tree says so, or final does. What a service that only forwards has
// put there, from the answer of the next one, counts too. It may be called twice for one answer.
func (x *exchange) tell(status int, final bool) {
	var b abate.Below
	if x.tree != nil {
		b = x.tree.report()
	}
	header := x.out.Header()
	if x.asked {
		below := hops.MostMade(header[hops.Made])
		b.Made, b.Final = max(b.Made, below.Made), b.Final || below.Final
	}
	b.Final = (b.Final || final) && hops.StatusFailed(status)
	if x.asked {
		header[hops.Made] = madeValues(b)
	}
	if !b.Final {
		return
	}
	if header[shouldRetryHeader] == nil {
		header[shouldRetryHeader] = no
	}
	if x.envoy {
		header[hops.Ratelimited] = yes
	}
}

var yes = []string{"true"}

// madeTexts are the values of Abate-Retries-Made that are written for nearly all requests, not final and final. They are shared.
var madeTexts = func() (all [2][8][1]string) {
	for n := range all[0] {
		all[0][n][0] = strconv.Itoa(n)
		all[1][n][0] = string(hops.AppendMade(nil, abate.Below{Made: n, Final: true}))
	}
	return all
}()

func madeValues(b abate.Below) []string {
	if b.Made >= len(madeTexts[0]) {
		return []string{string(hops.AppendMade(nil, b))}
	}
	if b.Final {
		return madeTexts[1][b.Made][:]
	}
	return madeTexts[0][b.Made][:]
}
