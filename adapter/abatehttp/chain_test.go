package abatehttp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// trouble is a chain of three services that go wrong at random: a user's client → checkout → payment → a leaf that
// knows nothing of Abate. Each of the three callers tries three times.
type trouble struct {
	mu sync.Mutex
	// one for each user's request, so that a seed gives the same troubles in any order of requests
	dice    map[string]*rand.Rand
	leaf    map[string]int // requests that the leaf got, for each user's request
	extra   map[string]int // retries and hedges, for each user's request
	seed    uint64
	limit   time.Duration // of an attempt
	clients []*http.Transport
	busy    atomic.Int32 // goroutines at work
	reuse   bool         // connections are kept alive, and the clients of net/http held back from repeating by themselves
}

func (c *trouble) roll(id string, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dice[id]
	if d == nil {
		var number uint64
		fmt.Sscan(id, &number)
		d = rand.New(rand.NewPCG(c.seed, number))
		c.dice[id] = d
	}
	return d.IntN(n)
}

// client is one layer's way to the next: now and then it cannot connect.
func (c *trouble) client(t *testing.T, name string) *http.Client {
	p := abate.Policy{Retry: abate.Retry{MaxRetries: 2, Backoff: retry.NoBackoff}, AttemptTimeout: c.limit}
	g, err := abate.New(name, alone(p))
	if err != nil {
		t.Fatal(err)
	}
	dials := rand.New(rand.NewPCG(c.seed, uint64(len(name))))
	base := &http.Transport{DisableKeepAlives: !c.reuse, MaxIdleConnsPerHost: 16}
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c.mu.Lock()
		fail := dials.IntN(10) == 0
		c.mu.Unlock()
		if fail {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	c.clients = append(c.clients, base)
	transport := abatehttp.NewTransport(base, g)
	transport.NoHiddenRetries = true
	return &http.Client{Transport: transport}
}

// service asks the next one, and goes wrong before or after that.
func (c *trouble) service(t *testing.T, next *http.Client, url string) *backend {
	gate, err := inbound.NewGate("service", inbound.Protection{TrustedPeers: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	h := abatehttp.NewHandler(gate, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-User-Request")
		ctx := r.Context()
		switch c.roll(id, 12) {
		case 0:
			w.WriteHeader(503)
			return
		case 1:
			<-ctx.Done() // hangs, until its caller has enough
			return
		case 2, 3:
			ctx = context.WithoutCancel(ctx) // does not notice that its caller has left
		}
		status := 200
		req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
		req.Header.Set("X-User-Request", id)
		if resp, err := next.Do(req); err != nil {
			status = 502
		} else {
			resp.Body.Close()
			status = resp.StatusCode
		}
		switch c.roll(id, 8) {
		case 0:
			reset(w)
			return
		case 1:
			<-r.Context().Done() // the answer comes too late
		case 2:
			status = 500
		}
		w.WriteHeader(status)
	}))
	return serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) })
}

// reset ends the connection of an answer without a word.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

func (c *trouble) database(t *testing.T) *backend {
	return serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-User-Request")
		c.mu.Lock()
		c.leaf[id]++
		c.mu.Unlock()
		switch c.roll(id, 6) {
		case 0:
			reset(w)
		case 1:
			<-r.Context().Done()
		case 2, 3:
			w.WriteHeader(503)
		case 4:
			w.WriteHeader(429)
		}
	})
}

// run sends n users' requests, a few at a time.
func (c *trouble) run(t *testing.T, n int) {
	database := c.database(t)
	payment := c.service(t, c.client(t, "database"), database.URL)
	checkout := c.service(t, c.client(t, "payment"), payment.URL)
	user := c.client(t, "checkout")
	var crowd sync.WaitGroup
	for first := range 16 {
		crowd.Go(func() {
			for id := first; id < n; id += 16 {
				req, _ := http.NewRequestWithContext(t.Context(), "GET", checkout.URL, nil)
				req.Header.Set("X-User-Request", fmt.Sprint(id))
				if resp, err := user.Do(req); err == nil {
					resp.Body.Close()
				}
			}
		})
	}
	crowd.Wait()
	// each waits for its handlers, also for those whose callers have left
	for _, b := range []*backend{checkout, payment, database} {
		b.Close()
	}
	for _, base := range c.clients {
		base.CloseIdleConnections()
	}
}

func newTrouble(seed uint64, reuse bool) *trouble {
	return &trouble{dice: map[string]*rand.Rand{}, leaf: map[string]int{}, extra: map[string]int{}, seed: seed,
		reuse: reuse, limit: time.Duration(seed) * 150 * time.Millisecond}
}

// TestWhateverGoesWrongTheLeafSeesThreeAttempts is the promise of the call tree: three layers, three tries each, and
// one user's request never comes to more than three at the end of the chain, although requests, answers and connections
// get lost.
func TestWhateverGoesWrongTheLeafSeesThreeAttempts(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for name, reuse := range map[string]bool{"new connections": false, "kept-alive connections": true} {
		t.Run(name, func(t *testing.T) {
			seen := map[int]int{}
			// Of a machine that stands still for as long as an attempt may take, few requests get to the leaf: the next
			// crowd has more time.
			for seed := uint64(1); seed <= 10 && (seen[1] == 0 || seen[2] == 0 || seen[3] == 0); seed++ {
				c := newTrouble(seed, reuse)
				c.run(t, 160)
				for id, n := range c.leaf {
					if seen[n]++; n > 3 {
						t.Errorf("the leaf saw request %s %d times", id, n)
					}
				}
			}
			if seen[1] == 0 || seen[2] == 0 || seen[3] == 0 {
				t.Error("too little trouble")
			}
			t.Logf("how often requests came: %v", seen)
		})
	}
}

// TestATreeWithBranchesKeepsToItsAllowance: services that ask several others at once, with hedges, share the root's two
// extra attempts, whatever goes wrong.
func TestATreeWithBranchesKeepsToItsAllowance(t *testing.T) {
	needs.Whole(t)
	var attempts atomic.Int32
	c := newTrouble(7, true)
	client := func(name string) *http.Client {
		p := abate.Policy{Retry: abate.Retry{MaxRetries: 2, Backoff: retry.NoBackoff}, AttemptTimeout: 100 * time.Millisecond}
		if name == "payment" {
			p.Hedge = hedge.Config{Delay: 20 * time.Millisecond}
		}
		transport := abatehttp.NewTransport(&http.Transport{DisableKeepAlives: true}, guard(t, p))
		return &http.Client{Transport: transport}
	}
	database := c.database(t)
	payment := c.fork(t, client("database"), database.URL, &attempts)
	checkout := c.fork(t, client("payment"), payment.URL, &attempts)
	user := client("checkout")
	for id := range 60 {
		id := fmt.Sprint(id)
		req := newRequest(t, "GET", checkout.URL, nil)
		req.Header.Set("X-User-Request", id)
		if resp, err := user.Do(req.WithContext(c.watch(req.Context(), id, &attempts))); err == nil {
			resp.Body.Close()
		}
		if !settles(func() bool { return c.busy.Load() == 0 }) {
			t.Fatal("services go on for ever")
		}
	}
	for _, b := range []*backend{checkout, payment, database} { // a request that its sender has given up may come late
		b.Close()
	}
	if !settles(func() bool { return c.busy.Load() == 0 }) {
		t.Fatal("services go on for ever")
	}
	most, unlucky := 0, len(c.extra)
	for id, got := range c.extra {
		if most = max(most, got); got > 2 {
			t.Errorf("request %s: %d extra attempts in its tree", id, got)
		}
	}
	if most < 2 || unlucky < 20 {
		t.Errorf("too little trouble: at most %d extra attempts, %d requests had some", most, unlucky)
	}
	t.Logf("%d of 60 requests had extra attempts, of %d attempts", unlucky, attempts.Load())
}

// watch counts the attempts of calls for a user's request.
func (c *trouble) watch(ctx context.Context, id string, attempts *atomic.Int32) context.Context {
	return abate.WithObserver(ctx, abate.ObserverFunc(func(e abate.Event) {
		switch e.Kind {
		case core.RetryScheduled, core.HedgeSent:
			c.mu.Lock()
			c.extra[id]++
			c.mu.Unlock()
		case core.AttemptBegan:
			attempts.Add(1)
		}
	}))
}

// fork is a service that asks the next one three times at once, and does not wait for all answers if one is bad.
func (c *trouble) fork(t *testing.T, next *http.Client, url string, attempts *atomic.Int32) *backend {
	h := abatehttp.NewHandler(newGate(t, inbound.Protection{TrustedPeers: []string{"127.0.0.1"}}),
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get("X-User-Request")
			good := make(chan bool, 3)
			for range 3 {
				c.busy.Add(1)
				go func() {
					defer c.busy.Add(-1)
					ctx := c.watch(r.Context(), id, attempts)
					if c.roll(id, 4) == 0 {
						ctx = context.WithoutCancel(ctx)
					}
					req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
					req.Header.Set("X-User-Request", id)
					resp, err := next.Do(req)
					if err == nil {
						resp.Body.Close()
					}
					good <- err == nil && resp.StatusCode < 400
				}()
			}
			for range 3 {
				if !<-good && c.roll(id, 2) == 0 {
					w.WriteHeader(502)
					return
				}
			}
		}))
	return serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		c.busy.Add(1)
		defer c.busy.Add(-1)
		h.ServeHTTP(w, r)
	})
}
