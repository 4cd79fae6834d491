package abatehttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/retry"
)

func TestCancelDuringBackoffReturnsBothErrors(t *testing.T) {
	b := serve(t, always(503))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := abate.Policy{Retry: abate.Retry{MaxRetries: 3, InitialDelay: time.Hour, MaxDelay: time.Hour, Jitter: "none"}}
	p.Observer = abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.RetryScheduled {
			cancel()
		}
	})
	client, _ := newClient(t, guard(t, p))
	_, err := client.Do(newRequest(t, "GET", b.URL, nil).WithContext(ctx))
	var status *abatehttp.StatusError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &status) || status.StatusCode != 503 {
		t.Errorf("error %v", err)
	}
}

func TestCallersCancellationIsNobodysFailure(t *testing.T) {
	entered := make(chan struct{})
	b := serve(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	})
	p := eager()
	p.CircuitBreaker.FailureThreshold = 1
	g := guard(t, p)
	client, _ := newClient(t, g)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-entered; cancel() }()
		if _, err := client.Do(newRequest(t, "GET", b.URL, nil).WithContext(ctx)); !errors.Is(err, context.Canceled) ||
			errors.Is(err, abate.ErrCircuitOpen) {
			t.Errorf("error %v", err)
		}
	}
	if b.requests.Load() != 3 {
		t.Errorf("%d requests", b.requests.Load())
	}
}

func TestOldCancelChannelIsNobodysFailure(t *testing.T) {
	entered := make(chan struct{})
	b := serve(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	p, events := watched(eager())
	client, _ := newClient(t, guard(t, p))
	req := newRequest(t, "GET", b.URL, nil)
	cancel := make(chan struct{})
	//lint:ignore SA1019 callers still use it
	req.Cancel = cancel
	go func() { <-entered; close(cancel) }()
	if _, err := client.Do(req); err == nil {
		t.Error("no error")
	}
	if ended := events.all(core.AttemptEnded); len(ended) != 1 || ended[0].Class != abate.Ignored {
		t.Errorf("attempts: %+v", ended)
	}
}

func TestOldCancelChannelEndsTheWaits(t *testing.T) {
	backoff := abate.Policy{
		Retry: abate.Retry{MaxRetries: 1, InitialDelay: time.Hour, MaxDelay: time.Hour, Jitter: retry.NoJitter},
	}
	queue := abate.Policy{Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 1, MaxWait: time.Hour}}
	for name, p := range map[string]abate.Policy{"back-off": backoff, "queue": queue, "reading the body": eager()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				occupied, leave := context.WithCancel(t.Context())
				transport := abatehttp.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
					if req.Method == "HEAD" {
						return stuck(req)
					}
					return nil, io.ErrUnexpectedEOF
				}), guard(t, p))
				if name == "queue" {
					go transport.RoundTrip(newRequest(t, "HEAD", "http://payments.test", nil).WithContext(occupied))
					synctest.Wait()
				}
				cancel := make(chan struct{})
				time.AfterFunc(time.Second, func() { close(cancel) })
				req := put(t, "http://payments.test", nil)
				body := deaf{make(chan struct{})}
				if name == "reading the body" {
					req.Body = body
				}
				//lint:ignore SA1019 callers still use it
				req.Cancel = cancel
				begin := time.Now()
				if _, err := transport.RoundTrip(req); !errors.Is(err, context.Canceled) || time.Since(begin) != time.Second {
					t.Errorf("error %v after %v", err, time.Since(begin))
				}
				leave()
				close(body.release)
			})
		})
	}
}

func TestOldCancelChannelLeavesTheAnswerToItsReader(t *testing.T) {
	for name, c := range map[string]struct {
		policy abate.Policy
		status int
		method string
	}{
		"closed": {eager(), 200, "GET"}, "time limit": {patient(), 200, "GET"}, "no body": {eager(), 204, "GET"},
		"upgrade": {eager(), 101, "GET"}, "fallback": {degrading(), 501, "GET"}, "error": {eager(), 0, "POST"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // which fails if the goroutine that watches the channel is left over
				var attempt context.Context
				base := roundTrip(func(req *http.Request) (*http.Response, error) {
					attempt = req.Context()
					if c.status == 0 {
						return nil, io.ErrUnexpectedEOF
					}
					return answer(req, c.status, nil, "x"), nil
				})
				req := newRequest(t, c.method, "http://payments.test", nil).WithContext(context.WithoutCancel(t.Context()))
				//lint:ignore SA1019 callers still use it
				req.Cancel = make(chan struct{})
				resp, err := abatehttp.NewTransport(base, guard(t, c.policy)).RoundTrip(req)
				if err != nil {
					return
				}
				if synctest.Wait(); c.status == 200 && attempt.Err() != nil {
					t.Error("the context ended before the body was used")
				}
				if c.status == 200 {
					resp.Body.Close()
				}
			})
		})
	}
}

func TestClientTimeoutEndsTheWholeCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // on a busy machine 20 ms may be over before the call begins
		p, events := watched(eager())
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		client := &http.Client{Transport: abatehttp.NewTransport(base, guard(t, p)), Timeout: 20 * time.Millisecond}
		began := time.Now()
		_, err := client.Do(newRequest(t, "GET", "http://payments.test", nil))
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != client.Timeout {
			t.Errorf("error %v after %v", err, took)
		}
		if ended := events.all(core.AttemptEnded); len(ended) != 1 || ended[0].Class != abate.Failure {
			t.Errorf("attempts: %+v", ended)
		}
	})
}
