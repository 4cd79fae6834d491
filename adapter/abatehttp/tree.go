package abatehttp

import (
	"context"
	"strconv"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/serving"
)

// callTree is what a Handler keeps for a request whose caller counts attempts.
type callTree struct {
	serving.Tree
	believed believedContext
}

// plant makes the call tree of a request that has Abate-Retry-Allowance or an attempt's number; for others nobody would
// read what it reports. An allowance that is not believed, or cannot be read, limits nothing.
func (x *exchange) plant(trusted bool) {
	values := x.request.Header[hops.Allowance]
	if values == nil && !x.numbered() {
		return
	}
	x.tree = new(callTree)
	if trusted {
		x.tree.Believe(values)
	}
}

// limited reports whether the work under ctx has an allowance already.
func limited(ctx context.Context) bool {
	t := core.CallTreeOf(ctx)
	if t == nil {
		return false
	}
	_, is := t.Allowance()
	return is
}

// tell writes into the header of an answer with a status what the caller has to know of the attempts that were made
// for its request, and whether it should not repeat it: because the tree says so, or final does. What a service that
// only forwards has put there, from the answer of the next one, counts too. It may be called twice for one answer.
func (x *exchange) tell(status int, final bool) {
	var b core.Below
	if x.tree != nil {
		b = x.tree.Report()
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

// madeTexts are the values of Abate-Retries-Made that are written for nearly all requests, not final and final. They
// are shared.
var madeTexts = func() (all [2][8][1]string) {
	for n := range all[0] {
		all[0][n][0] = strconv.Itoa(n)
		all[1][n][0] = string(hops.AppendMade(nil, core.Below{Made: n, Final: true}))
	}
	return all
}()

func madeValues(b core.Below) []string {
	if b.Made >= len(madeTexts[0]) {
		return []string{string(hops.AppendMade(nil, b))}
	}
	if b.Final {
		return madeTexts[1][b.Made][:]
	}
	return madeTexts[0][b.Made][:]
}
