package abatehttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/policy/breaker"
)

// An attempt whose time is up before it has begun, on a busy machine, ends all the same.
func TestAnAttemptWithoutTimeForItsUploadEnds(t *testing.T) {
	p := alone(abate.Policy{AttemptTimeout: 1})
	tr := abatehttp.NewTransport(roundTrip(stuck), guard(t, p))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req := newRequest(t, "POST", "http://payments.test", io.NopCloser(flood{})).WithContext(ctx)
	if _, err := tr.RoundTrip(req); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("%v, and the caller's own time: %v", err, ctx.Err())
	}
}

// A body that can be had again and that no attempt has read is closed by each that had it.
func TestBodiesThatNobodyReadsAreClosed(t *testing.T) {
	var bodies []*closing
	body := func() io.ReadCloser {
		bodies = append(bodies, &closing{Reader: strings.NewReader("x")})
		return bodies[len(bodies)-1]
	}
	p := eager()
	tr := abatehttp.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
		req.Body.Close()
		return nil, errors.New("no connection")
	}), guard(t, p))
	req := put(t, "http://payments.test", body())
	req.GetBody = func() (io.ReadCloser, error) { return body(), nil }
	if _, err := tr.RoundTrip(req); err == nil || len(bodies) < 2 {
		t.Errorf("%v after %d bodies", err, len(bodies))
	}
	for n, b := range bodies {
		if !b.closed.Load() {
			t.Errorf("body %d of %d is still open", n+1, len(bodies))
		}
	}
}

// What the base sends again by itself has a slow reader too.
func TestABodyThatTheBaseRewindsMayBeSlow(t *testing.T) {
	{
		synctest.Test(t, func(t *testing.T) {
			g := guard(t, wary(breaker.Thresholds))
			tr := abatehttp.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
				again, err := req.GetBody()
				if err != nil {
					return nil, err
				}
				req.Body.Close()
				defer again.Close()
				if _, err := io.Copy(io.Discard, again); err != nil {
					return nil, err
				}
				return answer(req, 200, nil, "ok"), req.Context().Err()
			}), g)
			req := uploads["that rewinds"](t, func() io.ReadCloser { return trickles(700*time.Millisecond, 10, 4) })
			status, _ := mustDo(t, &http.Client{Transport: tr}, req)
			if s := g.State().Breaker.State; status != 200 || s != breaker.Closed {
				t.Errorf("%d, the circuit is %v", status, s)
			}
		})
	}
}

// A reader that panics on the caller's own goroutine leaves nothing behind that goes on.
func TestAReaderThatPanicsLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, wary(breaker.Thresholds))
		tr := abatehttp.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
			_, err := io.ReadAll(req.Body)
			return nil, err
		}), g)
		func() {
			defer func() { _ = recover() }()
			_, _ = tr.RoundTrip(newRequest(t, "POST", "http://payments.test", io.NopCloser(panics{})))
			t.Error("it did not panic")
		}()
		<-time.After(time.Minute) // a timer that goes on would tell a call that is over
		if s := g.State(); s.Bulkhead.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	}) // which waits until no timer is left
}

type panics struct{}

func (panics) Read([]byte) (int, error) { panic("no") }

// Why an attempt's context has ended does not change, whatever time passes.
func TestTheContextOfAnUploadEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside context.Context
		tr := abatehttp.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
			inside = req.Context()
			return answer(req, 200, nil, "ok"), nil
		}), guard(t, wary(breaker.Thresholds)))
		mustDo(t, &http.Client{Transport: tr}, newRequest(t, "POST", "http://payments.test", io.NopCloser(flood{})))
		before := inside.Err()
		<-time.After(time.Minute)
		if after := inside.Err(); before != context.Canceled || after != before {
			t.Errorf("%v, and later %v", before, after)
		}
	})
}
