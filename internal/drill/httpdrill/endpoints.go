package httpdrill

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/sim/scenario"
)

// balancings are the ways to choose a replica that the drill has. For least-queue somebody would have to know what
// waits in all of them.
var balancings = []string{"", scenario.RandomReplica, scenario.RoundRobin, scenario.LeastRequest}

// endpoints are the replicas of a service as one caller knows them.
type endpoints struct {
	hosts    []string
	balancer *balance.Balancer // of the caller; nil: random, or
	turn     *atomic.Uint32    // of all callers, in turn
}

// endpointsOf returns the endpoints of a service for one caller with a policy; turn is the same for all of them. It is
// nil for one replica: there is nothing to choose.
func (a cast) endpointsOf(urls []string, turn *atomic.Uint32) *endpoints {
	if len(urls) == 1 {
		return nil
	}
	e := &endpoints{}
	for _, u := range urls {
		parsed, err := url.Parse(u)
		if err != nil {
			panic(err) // it is a server's own
		}
		e.hosts = append(e.hosts, parsed.Host)
	}
	switch a.service().Balancing {
	case scenario.RoundRobin:
		e.turn = turn
	case scenario.LeastRequest:
		p := a.clientPolicy()
		e.balancer = balance.New(p.OutlierDetection, len(urls))
		e.balancer.Weigh(p.Weights)
	}
	return e
}

// tried is the endpoint that a call was sent to last. Copies of an attempt share it.
type tried struct {
	mu   sync.Mutex
	last int // -1 for none
}

type triedKey struct{}

// withTried returns the context of a call that has been sent nowhere.
func withTried(ctx context.Context) context.Context {
	return context.WithValue(ctx, triedKey{}, &tried{last: -1})
}

// choose returns the endpoint of an attempt.
func (e *endpoints) choose(r *http.Request) int {
	switch t, ok := r.Context().Value(triedKey{}).(*tried); {
	case e.balancer != nil && ok:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.last = e.balancer.Pick(core.Now(), rand.Uint64(), t.last)
		return t.last
	case e.turn != nil:
		return int(e.turn.Add(1) % uint32(len(e.hosts)))
	}
	return rand.IntN(len(e.hosts))
}

// send sends an attempt to an endpoint.
func (e *endpoints) send(r *http.Request, g *abate.Guard, base http.RoundTripper) (*http.Response, error) {
	i := e.choose(r)
	own := r.Clone(r.Context())
	own.URL.Host, own.Host = e.hosts[i], e.hosts[i]
	answer, err := base.RoundTrip(own)
	if e.balancer == nil {
		return answer, err
	}
	class := abate.Ignored
	switch {
	case err == nil:
		class = abatehttp.ClassifyStatus(g, answer.StatusCode, answer.Header, true).Class
	case !errors.Is(r.Context().Err(), context.Canceled): // a copy that has lost says nothing, nor a client that has left
		class = abatehttp.ClassifyError(g, err, true).Class
	}
	e.balancer.Done(i, core.Now(), hops.EndpointResult(class))
	return answer, err
}

// replicas is how many servers there are of a service.
func replicas(s *scenario.Service) int { return max(s.Replicas, 1) }

// replicated checks services with several replicas.
func (p *problems) replicated(where string, x *scenario.Service, gated, via bool) {
	if replicas(x) == 1 {
		return
	}
	p.refuse(x.Replicas <= mostReplicas, where+".replicas",
		"%d is out of range; the drill supports at most %d; use abate sim", x.Replicas, mostReplicas)
	p.supports(!gated, where+".replicas", "one replica of a service behind a gate")
	p.supports(slices.Contains(balancings, x.Balancing), where+".balancing",
		"replicas that are chosen without a look at their queues (random, round-robin, least-request)")
	p.refuse(!via || x.Balancing == scenario.LeastRequest, where+".balancing", "a proxy chooses the less busy of two by "+
		"itself; write balancing: least-request, run another variant with --act, or run it without --via")
}
