package proxy_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// newChain is three programs, each with a proxy at both sides, of which each calls the next and the last calls leaf.
// The first comes first.
func newChain(t testing.TB, leaf string, app func(*pair, http.ResponseWriter, *http.Request), keys []string) (
	chain [3]*pair) {
	next := leaf
	for i := 2; i >= 0; i-- {
		chain[i] = newPair(t, app, next, keys)
		next = "http://" + chain[i].in
	}
	return chain
}

// naming is a program that passes on what it has of a request, and gives a request that has no trace one, as
// OpenTelemetry does.
func naming(names ...string) func(*pair, http.ResponseWriter, *http.Request) {
	return func(p *pair, w http.ResponseWriter, r *http.Request) {
		fields := carry(r, append(names, "X-User")...)
		if slices.Contains(names, "traceparent") && fields["traceparent"] == "" {
			fields["traceparent"] = fmt.Sprintf("00-%016x%016x-%016x-01", rand.Uint64(), rand.Uint64()|1, rand.Uint64()|1)
		}
		w.WriteHeader(p.call(r, fields).StatusCode)
	}
}

// downLeaves do not answer well.
var downLeaves = []struct {
	name  string
	start func(t testing.TB) *server
	keys  []string
}{
	{"refusing connections", func(t testing.TB) *server { return &server{url: "http://" + unheard(t)} }, nil},
	{"closing them", func(t testing.TB) *server { return upstream(t, func(c net.Conn, _ string) { c.Close() }) }, nil},
	{"answering 503", func(t testing.TB) *server {
		return upstream(t, func(c net.Conn, _ string) { io.WriteString(c, status(503)) })
	}, nil},
	{"hanging", func(t testing.TB) *server {
		return upstream(t, func(net.Conn, string) {})
	}, []string{"attemptTimeout: 60ms"}},
}

// unheard is an address at which nobody listens, nor begins to: a connection that goes out holds its port.
func unheard(t testing.TB) string {
	t.Helper()
	l := listen(t)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		l.Close()
	})
	return c.LocalAddr().String()
}

// attempts counts what arrived for each user's request, when everything has come to rest.
func attempts(chain [3]*pair, leaf *server) map[string]int {
	for _, p := range chain {
		p.shutdown()
	}
	counts := map[string]int{}
	for _, req := range leaf.seen() {
		counts[field(req, "X-User")]++
	}
	return counts
}

// TestAChainOfProxiesDoesNotMultiplyAttempts is the promise: 3 attempts at the leaf for each request of a user, and not
// 27.
func TestAChainOfProxiesDoesNotMultiplyAttempts(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	for _, down := range downLeaves {
		for _, owner := range []string{"nearest", "edge", "none"} {
			for _, names := range [][]string{{allowance}, {"traceparent"}, {allowance, "traceparent"}, {}} {
				t.Run(fmt.Sprintf("%s, owner %s, %s", down.name, owner, strings.Join(names, "+")), func(t *testing.T) {
					t.Parallel()
					keys := append(slices.Clone(countOnly[:5]), "retryOwner: "+owner)
					if keys = append(keys, down.keys...); down.keys == nil {
						keys = append(keys, "attemptTimeout: 10s")
					}
					leaf := down.start(t)
					chain := newChain(t, leaf.url, naming(names...), keys)
					const users = 4
					for user := range users {
						chain[0].ask(fmt.Sprint("X-User: ", user))
					}
					counts, sent := attempts(chain, leaf), chain[2].sent.Load()
					switch {
					case owner != "none" && len(names) > 0:
						if sent > 3*users || down.keys == nil && sent != 3*users {
							t.Errorf("%d attempts for %d requests", sent, users)
						}
						for user, n := range counts {
							if n > 3 {
								t.Errorf("%d attempts for the request of user %s", n, user)
							}
						}
					case down.keys == nil && sent != 27*users:
						t.Errorf("%d attempts for %d requests: nothing should keep them from being multiplied", sent, users)
					}
				})
			}
		}
	}
}

// TestTheNearestLayerTriesAgain once all know each other: the edge is left the last attempt.
func TestTheNearestLayerTriesAgain(t *testing.T) {
	for owner, want := range map[string][3]int32{"nearest": {2, 3, 3}, "edge": {3, 3, 3}} {
		leaf := inTurn(t, status(503))
		chain := newChain(t, leaf.url, naming("traceparent"), append(slices.Clone(countOnly), "retryOwner: "+owner))
		var before, got [3]int32
		for range 2 {
			for i, p := range chain {
				before[i] = p.sent.Load()
			}
			chain[0].ask()
			for i, p := range chain {
				got[i] = p.sent.Load() - before[i]
			}
		}
		if got != want {
			t.Errorf("%s: the layers made %v attempts, want %v", owner, got, want)
		}
	}
}

// TestWhateverHappensTheLeafIsNotStormed: answers, hangs, resets and refusals at random, for requests at once.
func TestWhateverHappensTheLeafIsNotStormed(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 6))
			fate := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			leaf := upstream(t, func(c net.Conn, _ string) {
				switch fate(6) {
				case 0:
					c.Close()
				case 1: // it hangs
				case 2:
					io.WriteString(c, ok("x"))
				case 3:
					io.WriteString(c, status(503, "X-Should-Retry: false"))
				default:
					io.WriteString(c, status(500))
				}
			})
			names := [][]string{{allowance}, {"traceparent"}, {allowance, "traceparent"}}[seed%3]
			forward := naming(names...)
			app := func(p *pair, w http.ResponseWriter, r *http.Request) {
				switch limit := r.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms"); fate(12) {
				case 0:
					panic(http.ErrAbortHandler)
				case 1:
					if limit != "" { // a user would wait for ever
						<-r.Context().Done()
					}
				default:
					forward(p, w, r)
				}
			}
			chain := newChain(t, leaf.url, app, append(slices.Clone(countOnly[:5]), "attemptTimeout: 80ms"))
			const users, each = 4, 15
			var all sync.WaitGroup
			for user := range users {
				all.Go(func() {
					for n := range each {
						chain[0].ask(fmt.Sprintf("X-User: %d-%d", user, n))
					}
				})
			}
			all.Wait()
			for user, n := range attempts(chain, leaf) {
				if n > 3 {
					t.Errorf("%d attempts for the request of user %s", n, user)
				}
			}
		})
	}
}
