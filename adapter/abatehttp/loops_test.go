package abatehttp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/budget"
)

// looped has a budget of one extra attempt, which fills very slowly: whatever is taken for a repeat shows.
func looped(t *testing.T) *abate.Guard {
	p := unbroken()
	p.MaxRetries, p.RetryBudget = 0, budget.Config{Ratio: 0.0001, Reserve: 1}
	return guard(t, p)
}

// Loops that ask for something else each time, or again although they have had an answer, draw nothing.
func TestLoopsThatRetryNothingAreNoRepeats(t *testing.T) {
	const calls = 40
	statuses := func(of func(i int) int) func(*http.Request, int) *http.Response {
		return func(r *http.Request, i int) *http.Response { return answer(r, of(i), nil, "") }
	}
	failing := statuses(func(int) int { return 503 })
	bounded := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		t.Cleanup(cancel)
		return ctx
	}
	fresh := func(change func(req *http.Request, i int)) func(*testing.T) func(int) *http.Request {
		return func(t *testing.T) func(int) *http.Request {
			ctx := bounded(t)
			return func(i int) *http.Request {
				req := newRequest(t, "GET", "http://api.test/status", nil).WithContext(ctx)
				change(req, i)
				return req
			}
		}
	}
	same := func(change func(req *http.Request, i int)) func(*testing.T) func(int) *http.Request {
		return func(t *testing.T) func(int) *http.Request {
			req := newRequest(t, "GET", "http://api.test/status", nil).WithContext(bounded(t))
			return func(i int) *http.Request {
				change(req, i)
				return req
			}
		}
	}
	nothing := func(*http.Request, int) {}
	ranges := func(req *http.Request, i int) { req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", i*100, i*100+99)) }
	for name, c := range map[string]struct {
		requests func(*testing.T) func(int) *http.Request
		answers  func(*http.Request, int) *http.Response
	}{
		"polls until it is there, answered 404":    {fresh(nothing), statuses(func(int) int { return 404 })},
		"polls until it is ready, answered 202":    {fresh(nothing), statuses(func(int) int { return 202 })},
		"polls that are answered":                  {fresh(nothing), statuses(func(int) int { return 200 })},
		"polls of one request, answered 404":       {same(nothing), statuses(func(int) int { return 404 })},
		"polls of one request, answered 304":       {same(nothing), statuses(func(int) int { return 304 })},
		"ranges, each in a new request":            {fresh(ranges), failing},
		"ranges, with what is left of one request": {same(ranges), failing},
		"pages by the URL, with one request": {same(func(req *http.Request, i int) {
			req.URL.RawQuery = "page=" + strconv.Itoa(i)
		}), failing},
		"pages by a header, with one request": {same(func(req *http.Request, i int) {
			req.Header.Set("X-Cursor", strconv.Itoa(i))
		}), failing},
		"pages by the body, with one header": {same(func(req *http.Request, i int) {
			next := newRequest(t, "POST", "http://api.test/search", strings.NewReader("cursor "+strconv.Itoa(i)))
			req.Method, req.Body, req.GetBody, req.ContentLength = "POST", next.Body, next.GetBody, next.ContentLength
		}), failing},
		"parts of a stream, with one header": {same(func(req *http.Request, i int) {
			req.Method, req.Body, req.ContentLength = "POST",
				newRequest(t, "POST", "/", strings.NewReader("part "+strconv.Itoa(i))).Body, -1
		}), failing},
		"other tenants' tokens under one context": {fresh(func(req *http.Request, i int) {
			req.Header.Set("Authorization", "Bearer "+strconv.Itoa(i))
		}), failing},
		"other sessions under one context": {fresh(func(req *http.Request, i int) {
			req.Header.Set("Cookie", "session="+strconv.Itoa(i))
		}), failing},
		"users whose requests share one header": {func(t *testing.T) func(int) *http.Request {
			header := http.Header{"Accept": {"text/plain"}}
			return func(int) *http.Request {
				req := newRequest(t, "GET", "http://api.test/news", nil)
				req.Header = header
				return req.WithContext(core.WithCallTree(t.Context(), core.NewOpenCallTree()))
			}
		}, failing},
	} {
		t.Run(name, func(t *testing.T) {
			n, g := 0, looped(t)
			client := &http.Client{Transport: abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
				n++
				return c.answers(r, n), nil
			}), g)}
			next := c.requests(t)
			for i := range calls {
				resp, err := client.Do(next(i))
				if err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				resp.Body.Close()
			}
			if left := g.State().Budget; n != calls || left < 1 {
				t.Errorf("%d of %d calls were sent, %v of 1 is left", n, calls, left)
			}
		})
	}
}

// Who leaves has not seen a failure, and comes back with a call of his own.
func TestACallAfterOneThatWasBrokenOffIsNoRepeat(t *testing.T) {
	g := looped(t)
	transport := abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}), g)
	header := http.Header{}
	for range 5 {
		ctx, leave := context.WithCancel(t.Context())
		req := newRequest(t, "GET", "http://api.test/", nil).WithContext(ctx)
		req.Header = header
		time.AfterFunc(time.Millisecond, leave)
		if _, err := transport.RoundTrip(req); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if left := g.State().Budget; left < 1 {
		t.Errorf("%v of 1 is left", left)
	}
}

// Workers that make the same call again and again, under one context, are no retriers: that shows as soon as two have
// failed. One call may have been taken for a repeat until then.
func TestWorkersThatMakeOneCallAreNoRetriers(t *testing.T) {
	for name, shared := range map[string]bool{"under one context": false, "with one header": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var sent atomic.Int64
				p := unbroken()
				p.MaxRetries, p.RetryBudget = 0, budget.Config{Ratio: 0.0001, Reserve: 2}
				g := guard(t, p)
				client := &http.Client{Transport: abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
					time.Sleep(time.Duration(50+sent.Add(1)%7) * time.Millisecond)
					return answer(r, 503, nil, ""), nil
				}), g)}
				header := http.Header{}
				var workers sync.WaitGroup
				for range 5 {
					workers.Go(func() {
						for range 20 {
							req := newRequest(t, "GET", "http://down.test/", nil)
							if req.Header = header; !shared {
								req.Header = http.Header{}
								req = req.WithContext(ctx)
							}
							if again(t, client, req) {
								t.Error("refused")
							}
						}
					})
				}
				workers.Wait()
				if left := g.State().Budget; sent.Load() != 100 || left < 1 {
					t.Errorf("%d of 100 were sent, %v of 2 is left", sent.Load(), left)
				}
			})
		})
	}
}

// A program that polls, pages, reads ranges, fans out and retries by hand, of a service that fails now and then, has no
// call refused.
func TestAHealthyProgramWithLoopsHasNoCallRefused(t *testing.T) {
	seeds := uint64(20)
	if raceDetector { // make rest plays all; what races in one races in each
		seeds = 5
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 6))
			var mu sync.Mutex
			draw := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return rnd.IntN(n)
			}
			p := abate.DefaultPolicy()
			p.MaxRetries = draw(3)
			client := &http.Client{Transport: abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
				time.Sleep(time.Duration(1+draw(50)) * time.Millisecond)
				status := []int{200, 202, 404}[draw(3)]
				if draw(50) == 0 {
					status = 503
				}
				return answer(r, status, nil, ""), nil
			}), guard(t, p))}
			get := func(ctx context.Context, req *http.Request) int {
				resp, err := client.Do(req.WithContext(ctx))
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
					return 0
				}
				resp.Body.Close()
				return resp.StatusCode
			}
			ask := func(path string) *http.Request { return newRequest(t, "GET", "http://api.test"+path, nil) }
			loops := []func(context.Context){
				func(ctx context.Context) { // until it is there
					for tries := 0; get(ctx, ask("/job")) != 200 && tries < 20; tries++ {
						time.Sleep(time.Second)
					}
				},
				func(ctx context.Context) { // on and on, with one request
					for req := ask("/health"); draw(20) > 0; time.Sleep(100 * time.Millisecond) {
						get(ctx, req)
					}
				},
				func(ctx context.Context) {
					for req, i := ask("/file"), 0; i < 20; i++ {
						req.Header.Set("Range", "bytes="+strconv.Itoa(i*100)+"-")
						get(ctx, req)
					}
				},
				func(ctx context.Context) { // the same call many times at once
					var all sync.WaitGroup
					for range 20 {
						all.Go(func() { get(ctx, ask("/quote")) })
					}
					all.Wait()
				},
				func(ctx context.Context) { // retries by hand
					for tries := 0; get(ctx, ask("/order")) == 503 && tries < 3; tries++ {
						time.Sleep(time.Second)
					}
				},
			}
			var program sync.WaitGroup
			for range 30 {
				program.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					for range 10 {
						loops[draw(len(loops))](ctx)
					}
				})
			}
			program.Wait()
		})
	}
}
