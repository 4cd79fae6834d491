package abatehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/throttle"
)

// trickle is a body of which a piece comes after each pause.
type trickle struct {
	pause  time.Duration
	piece  int
	pieces int
	closed chan struct{}
	once   sync.Once
}

func trickles(pause time.Duration, piece, pieces int) *trickle {
	return &trickle{pause: pause, piece: piece, pieces: pieces, closed: make(chan struct{})}
}

func (b *trickle) Read(p []byte) (int, error) {
	if b.pieces == 0 {
		return 0, io.EOF
	}
	timer := time.NewTimer(b.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.closed:
		return 0, net.ErrClosed
	}
	b.pieces--
	return copy(p, make([]byte, b.piece)), nil
}

func (b *trickle) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// overPipes is a real server at the other end of pipes, which hold nothing: what it does not read is not sent.
func overPipes(t *testing.T, h2c bool, handle http.HandlerFunc) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(!h2c)
	protocols.SetUnencryptedHTTP2(h2c)
	l := make(pipes)
	ended := make(chan struct{})
	s := &http.Server{Handler: handle, Protocols: &protocols}
	go s.Serve(onceClosed{l, ended})
	tr := &http.Transport{Protocols: &protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
		mine, its := net.Pipe()
		select {
		case l <- its:
			return mine, nil
		case <-ended:
			return nil, net.ErrClosed
		}
	}}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		s.Close()
	})
	return tr
}

// onceClosed is pipes whose dialers may come too late.
type onceClosed struct {
	pipes
	ended chan struct{}
}

func (l onceClosed) Accept() (net.Conn, error) {
	select {
	case c := <-l.pipes:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l onceClosed) Close() error { close(l.ended); return nil }

// wary opens its circuit at one failure or one slow call, whatever kind is asked for.
func wary(kind breaker.Kind) abate.Policy {
	p := abate.Policy{AttemptTimeout: time.Second, CircuitBreaker: breaker.Config{Kind: kind}}
	if kind == breaker.Thresholds {
		p.CircuitBreaker = breaker.Config{FailureThreshold: 1, SlowCallRateThreshold: 0.01, MinimumNumberOfCalls: 1,
			SlowCallDurationThreshold: time.Second, WaitDurationInOpenState: time.Hour}
	}
	return p
}

// sender makes a request of a body.
type sender func(t *testing.T, body func() io.ReadCloser) *http.Request

// uploads are requests whose bodies come slowly: once, again by GetBody, and short enough to be held.
var uploads = map[string]sender{
	"sent once": func(t *testing.T, body func() io.ReadCloser) *http.Request {
		return newRequest(t, "POST", "http://payments.test", body())
	},
	"that rewinds": func(t *testing.T, body func() io.ReadCloser) *http.Request {
		req := put(t, "http://payments.test", body())
		req.GetBody = func() (io.ReadCloser, error) { return body(), nil }
		return req
	},
	"held": func(t *testing.T, body func() io.ReadCloser) *http.Request {
		return put(t, "http://payments.test", body())
	},
}

// eachWire plays a test over HTTP/1.1 and HTTP/2, with each kind of upload and of circuit breaker.
func eachWire(t *testing.T, play func(t *testing.T, h2c bool, p abate.Policy, upload sender)) {
	for _, h2c := range []bool{false, true} {
		for name, upload := range uploads {
			for _, kind := range []breaker.Kind{breaker.Adaptive, breaker.Thresholds} {
				t.Run(fmt.Sprintf("%s, h2c %v, %s", name, h2c, kind), func(t *testing.T) {
					p := wary(kind)
					if name == "held" {
						p.MaxRetries = 1
					}
					synctest.Test(t, func(t *testing.T) { play(t, h2c, p, upload) })
				})
			}
		}
	}
}

// The caller's reader is slow, and nobody takes that for the server: not the attempt's time, not its latency, not the
// circuit breaker.
func TestASlowReaderIsNotASlowServer(t *testing.T) {
	for name, body := range map[string]func() io.ReadCloser{
		"many pieces":  func() io.ReadCloser { return trickles(400*time.Millisecond, 100, 10) },
		"a long pause": func() io.ReadCloser { return trickles(time.Minute, 100, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			eachWire(t, func(t *testing.T, h2c bool, p abate.Policy, upload sender) {
				p.Throttle = throttle.Config{K: 1.1}
				p.Bulkhead = bulkhead.Config{Limit: bulkhead.AdaptiveLimit}
				p, events := watched(p)
				g := guard(t, p)
				tr := abatehttp.NewTransport(overPipes(t, h2c, func(w http.ResponseWriter, r *http.Request) {
					n, err := io.Copy(io.Discard, r.Body)
					fmt.Fprint(w, n, err)
				}), g)
				var wait sync.WaitGroup
				for range 20 {
					wait.Go(func() {
						status, got := mustDo(t, &http.Client{Transport: tr}, upload(t, body))
						if status != 200 || !strings.HasSuffix(got, "00 <nil>") {
							t.Errorf("%d %q", status, got)
						}
					})
				}
				wait.Wait()
				for _, e := range events.all(core.AttemptEnded) {
					if e.Class != abate.Success || e.Latency > 100*time.Millisecond {
						t.Errorf("an attempt counts as %v after %v: %v", e.Class, e.Latency, e.Err)
					}
				}
				if s := g.State(); s.Breaker.State != breaker.Closed || s.Bulkhead.Limit != 0 || s.Bulkhead.Sending != 0 ||
					s.Bulkhead.InFlight != 0 || len(events.all(core.AttemptBegan)) != 20 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// A server that hangs behind a slow upload is found out when it has had the attempt's time for itself.
func TestAServerThatHangsBehindASlowUploadIsFoundOut(t *testing.T) {
	eachWire(t, func(t *testing.T, h2c bool, p abate.Policy, upload sender) {
		p.MaxRetries = 0
		p, events := watched(p)
		g, began := guard(t, p), time.Now()
		tr := abatehttp.NewTransport(overPipes(t, h2c, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}), g)
		_, err := tr.RoundTrip(upload(t, func() io.ReadCloser { return trickles(700*time.Millisecond, 1000, 4) }))
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 3800*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		if e := events.all(core.AttemptEnded)[0]; e.Class != abate.Failure || e.Latency != time.Second {
			t.Errorf("it counts as %v after %v", e.Class, e.Latency)
		}
		if s := g.State().Breaker.State; p.CircuitBreaker.Kind != breaker.Adaptive && s != breaker.Open {
			t.Errorf("the circuit is %v", s)
		}
	})
}

// A server that does not take what is sent has the attempt's time for that, however much there is to come.
func TestAServerThatDoesNotReadIsFoundOut(t *testing.T) {
	for _, h2c := range []bool{false, true} {
		for name, body := range map[string]func() io.ReadCloser{
			"from the beginning": func() io.ReadCloser { return io.NopCloser(flood{}) },
			"after a pause": func() io.ReadCloser {
				return io.NopCloser(io.MultiReader(trickles(time.Minute, 1000, 1), flood{}))
			},
		} {
			t.Run(fmt.Sprintf("%s, h2c %v", name, h2c), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, events := watched(wary(breaker.Thresholds))
					over := make(chan struct{})
					defer close(over)
					g, began := guard(t, p), time.Now()
					tr := abatehttp.NewTransport(overPipes(t, h2c, func(http.ResponseWriter, *http.Request) { <-over }), g)
					_, err := tr.RoundTrip(newRequest(t, "POST", "http://payments.test", body()))
					took := time.Since(began) % time.Minute
					if !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
						t.Errorf("%v after %v", err, took)
					}
					if e := events.all(core.AttemptEnded)[0]; e.Class != abate.Failure || e.Latency != time.Second {
						t.Errorf("it counts as %v after %v", e.Class, e.Latency)
					}
					if s := g.State().Breaker.State; s != breaker.Open {
						t.Errorf("the circuit is %v", s)
					}
				})
			})
		}
	}
}

// flood is a body without an end.
type flood struct{}

func (flood) Read(p []byte) (int, error) { return len(p), nil }

// Whose own time is up while he is still sending, or who leaves, has said nothing about the server.
func TestACallThatEndsWhileItsCallerSendsIsNoFailure(t *testing.T) {
	for name, leaves := range map[string]bool{"its time is up": false, "its caller leaves": true} {
		t.Run(name, func(t *testing.T) {
			eachWire(t, func(t *testing.T, h2c bool, p abate.Policy, upload sender) {
				if !leaves {
					p.Timeout = 3 * time.Second
				}
				p, events := watched(p)
				g, began := guard(t, p), time.Now()
				tr := abatehttp.NewTransport(overPipes(t, h2c, func(_ http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
				}), g)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				want := error(context.DeadlineExceeded)
				if leaves {
					want = context.Canceled
					time.AfterFunc(3*time.Second, cancel)
				}
				body := trickles(400*time.Millisecond, 10, 1000)
				_, err := tr.RoundTrip(upload(t, func() io.ReadCloser { return body }).WithContext(ctx))
				if took := time.Since(began); !errors.Is(err, want) || took != 3*time.Second {
					t.Errorf("%v after %v", err, took)
				}
				if e := events.all(core.AttemptEnded); len(e) != 1 || e[0].Class != abate.Ignored || e[0].Latency > 0 {
					t.Errorf("it counts as %v", e)
				}
				<-body.closed
				synctest.Wait()
				s := g.State()
				if s.Breaker.State != breaker.Closed || s.Bulkhead.InFlight != 0 || s.Bulkhead.Sending != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// A reader that does not wake up when it is closed keeps net/http, and is no failure of the server's either.
func TestACallThatEndsInAReadThatGoesOnIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, events := watched(wary(breaker.Adaptive))
		p.Timeout = 3 * time.Second
		tr := abatehttp.NewTransport(overPipes(t, false, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
		}), guard(t, p))
		body := io.NopCloser(trickles(400*time.Millisecond, 10, 1000))
		if _, err := tr.RoundTrip(newRequest(t, "POST", "http://payments.test", body)); !errors.Is(err, abate.ErrDeadline) {
			t.Error(err)
		}
		if e := events.all(core.AttemptEnded); len(e) != 1 || e[0].Class != abate.Ignored {
			t.Errorf("it counts as %v", e)
		}
	})
}

// A hedge is due when the server has had the request for so long, and not when its caller has taken so long to send it.
func TestAHedgeWaitsForWhoIsStillSending(t *testing.T) {
	for name, upload := range uploads {
		if name == "sent once" {
			continue
		}
		for _, hangs := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the first hangs: %v", name, hangs), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, events := watched(abate.Policy{Hedge: hedge.Config{Delay: time.Second, MaxHedges: 1},
						AttemptTimeout: 3 * time.Second})
					g, began := guard(t, p), time.Now()
					var sent, opened atomic.Int64 // by copies side by side
					tr := abatehttp.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
						first := sent.Add(1) == 1
						content, err := io.ReadAll(req.Body)
						req.Body.Close()
						if first && hangs {
							return stuck(req)
						}
						return answer(req, 200, nil, string(content)), err
					}), g)
					status, content := mustDo(t, &http.Client{Transport: tr}, upload(t, func() io.ReadCloser {
						if opened.Add(1) > 1 {
							return trickles(0, 10, 6)
						}
						return trickles(700*time.Millisecond, 10, 6)
					}))
					want, hedges := 4200*time.Millisecond, 0
					if hangs {
						want, hedges = 5200*time.Millisecond, 1
					}
					if took := time.Since(began); status != 200 || len(content) != 60 || took != want {
						t.Errorf("%d, %d bytes after %v", status, len(content), took)
					}
					if sent := events.all(core.HedgeSent); len(sent) != hedges {
						t.Errorf("hedges: %v", sent)
					}
				})
			})
		}
	}
}

// An answer that has begun goes on while its request is still being sent: an attempt whose time is the server's does
// not end for a caller who takes longer.
func TestAnAnswerThatGoesOnWithItsRequestOutlivesTheAttempt(t *testing.T) {
	for _, h2c := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p, events := watched(wary(breaker.Thresholds))
			tr := abatehttp.NewTransport(overPipes(t, h2c, func(w http.ResponseWriter, r *http.Request) {
				c := http.NewResponseController(w)
				if !h2c {
					c.EnableFullDuplex()
				}
				w.WriteHeader(200)
				c.Flush()
				io.Copy(w, r.Body)
				c.Flush()
				if r.URL.Path == "/hangs" {
					<-r.Context().Done()
				}
			}), guard(t, p))
			client := &http.Client{Transport: tr}
			body := trickles(700*time.Millisecond, 10, 5)
			if status, content := mustDo(t, client, newRequest(t, "POST", "http://payments.test", body)); status != 200 ||
				len(content) != 50 {
				t.Errorf("h2c %v: %d, %d bytes", h2c, status, len(content))
			}
			began := time.Now()
			resp, err := client.Do(newRequest(t, "POST", "http://payments.test/hangs", trickles(700*time.Millisecond, 10, 5)))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 4500*time.Millisecond {
				t.Errorf("h2c %v: %v after %v", h2c, err, took)
			}
			if broke := events.all(core.AnswerBroke); len(broke) != 1 {
				t.Errorf("h2c %v: %v", h2c, broke)
			}
		})
	}
}

// Reading what is there costs the server no place, and no lock for each piece.
func TestAQuickReaderSuspendsNothing(t *testing.T) {
	p := wary(breaker.Adaptive)
	p.Bulkhead = bulkhead.Config{Limit: bulkhead.AdaptiveLimit}
	g := guard(t, p)
	synctest.Test(t, func(t *testing.T) {
		tr := abatehttp.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
			for buf := make([]byte, 10); ; {
				if s := g.State().Bulkhead; s.Sending != 0 || s.InFlight != 1 {
					t.Errorf("%+v", s)
				}
				if _, err := req.Body.Read(buf); err != nil {
					return answer(req, 200, nil, ""), nil
				}
			}
		}), g)
		req := newRequest(t, "POST", "http://payments.test", io.NopCloser(io.LimitReader(flood{}, 1000)))
		mustDo(t, &http.Client{Transport: tr}, req)
	})
}
