package abategrpc_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/retry"
)

const chargeMethod = "/shop.Payment/Charge"

// eager retries every method three times, at once.
func eager() abate.Policy {
	return abate.Policy{
		Retry: abate.Retry{MaxRetries: 3, Backoff: retry.NoBackoff}, RetryMethods: []string{"/shop.Payment/*"},
	}
}

func guard(t testing.TB, p abate.Policy) *abate.Guard {
	t.Helper()
	g, err := abate.New("payments", alone(p))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// backend is a shop that counts its calls, and remembers what they said.
type backend struct {
	conn    *grpc.ClientConn
	server  *grpc.Server
	address string
	calls   atomic.Int64
	mu      sync.Mutex
	heard   []metadata.MD
}

func (b *backend) note(ctx context.Context) int {
	md, _ := metadata.FromIncomingContext(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = append(b.heard, md)
	return int(b.calls.Add(1))
}

// said returns the values of a name in the metadata of all calls so far, "" for none.
func (b *backend) said(name string) (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, md := range b.heard {
		v := ""
		for i, one := range md[name] {
			if v = v + one; i > 0 {
				v = "several"
			}
		}
		all = append(all, v)
	}
	return all
}

type (
	charges = func(n int, ctx context.Context, in *text) (*text, error)
	talks   = func(n int, ss grpc.ServerStream) error
)

// stand starts a shop on loopback, and a connection to it under c. n in the handlers counts the calls from 1.
// Goroutines that are left at the end fail the test.
func stand(t testing.TB, c *abategrpc.Client, charge charges, talk talks, options ...grpc.DialOption) *backend {
	t.Helper()
	checkGoroutines(t)
	b := new(backend)
	s := &shop{
		charge: func(ctx context.Context, in *text) (*text, error) { return charge(b.note(ctx), ctx, in) },
		talk:   func(ss grpc.ServerStream) error { return talk(b.note(ss.Context()), ss) },
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.server = grpc.NewServer()
	b.server.RegisterService(s.desc(), s)
	go func() { _ = b.server.Serve(listener) }()
	t.Cleanup(b.server.Stop)
	b.address = listener.Addr().String()
	options = append(append(c.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials())), options...)
	if b.conn, err = grpc.NewClient(b.address, options...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.conn.Close() })
	return b
}

// checked are the tests that look for goroutines at their end: the first to be set up sees what was there before.
var checked sync.Map

func checkGoroutines(t testing.TB) {
	if _, again := checked.LoadOrStore(t, true); again {
		return
	}
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		end := time.Now().Add(patience)
		for runtime.NumGoroutine() > before && time.Now().Before(end) {
			runtime.Gosched()
		}
		if n := runtime.NumGoroutine(); n > before {
			stacks := make([]byte, 1<<16)
			t.Errorf("%d goroutines are left, %d were there before\n%s", n, before, stacks[:runtime.Stack(stacks, true)])
		}
	})
}

func (b *backend) call(ctx context.Context, opts ...grpc.CallOption) (string, error) {
	out := new(text)
	err := b.conn.Invoke(ctx, chargeMethod, wrapperspb.String("x"), out, opts...)
	return out.Value, err
}

// fails answers every call with an error.
func fails(c codes.Code) charges {
	return func(int, context.Context, *text) (*text, error) { return nil, status.Error(c, "no") }
}

// failsUntil answers with UNAVAILABLE until call n, which succeeds.
func failsUntil(n int) charges {
	return func(i int, _ context.Context, _ *text) (*text, error) {
		if i < n {
			return nil, status.Error(codes.Unavailable, "no")
		}
		return wrapperspb.String("yes " + strconv.Itoa(i)), nil
	}
}

func TestACallIsRepeatedUntilItSucceeds(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), failsUntil(3), nil)
	got, err := b.call(t.Context())
	if got != "yes 3" || err != nil || b.calls.Load() != 3 {
		t.Errorf("%q, error %v, after %d calls", got, err, b.calls.Load())
	}
	if said := b.said("grpc-previous-rpc-attempts"); said[0] != "" || said[1] != "1" || said[2] != "2" {
		t.Errorf("the server was told of previous attempts %q", said)
	}
}

func TestWhichCallsAreRepeated(t *testing.T) {
	const all = 4
	none, listed, service, code := abate.Policy{}, abate.Policy{}, abate.Policy{}, abate.Policy{}
	for _, p := range []*abate.Policy{&none, &listed, &service, &code} {
		p.Retry = abate.Retry{MaxRetries: 3, Backoff: retry.NoBackoff}
	}
	listed.RetryMethods, service.RetryMethods = []string{chargeMethod}, []string{"/shop.Payment/*"}
	code.RetryOn = []string{"ABORTED", "UNAVAILABLE"}
	other, never := none, service
	other.RetryMethods, never.NeverRetryOn = []string{"/shop.Payment/Refund"}, []string{"UNAVAILABLE"}
	for _, c := range []struct {
		name   string
		policy abate.Policy
		code   codes.Code
		key    string
		calls  int64
	}{
		{"no consent", none, codes.Unavailable, "", 1},
		{"a key", none, codes.Unavailable, "k1", all},
		{"listed", listed, codes.Unavailable, "", all},
		{"the service is listed", service, codes.Unavailable, "", all},
		{"another method is listed", other, codes.Unavailable, "", 1},
		{"codes are consent", code, codes.Unavailable, "", all},
		{"a code that is named", code, codes.Aborted, "", all},
		{"a code that is not named", code, codes.ResourceExhausted, "", 1},
		{"overload", service, codes.ResourceExhausted, "", all},
		{"the server's deadline", service, codes.DeadlineExceeded, "", all},
		{"never", never, codes.Unavailable, "", 1},
		{"INTERNAL", service, codes.Internal, "", 1},
		{"UNKNOWN", service, codes.Unknown, "", 1},
		{"CANCELLED by the server", service, codes.Canceled, "", 1},
		{"NOT_FOUND", service, codes.NotFound, "k2", 1},
		{"INVALID_ARGUMENT", service, codes.InvalidArgument, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := stand(t, abategrpc.NewClient(guard(t, c.policy)), fails(c.code), nil)
			ctx := t.Context()
			if c.key != "" {
				ctx = abategrpc.WithIdempotencyKey(ctx, c.key)
			}
			_, err := b.call(ctx)
			if status.Code(err) != c.code || b.calls.Load() != c.calls {
				t.Errorf("%v after %d calls, not %v after %d", err, b.calls.Load(), c.code, c.calls)
			}
			for _, key := range b.said("x-idempotency-key") {
				if key != c.key {
					t.Errorf("a try came with the key %q", key)
				}
			}
		})
	}
}

// withTrailer fails with UNAVAILABLE and a trailer, then succeeds.
func withTrailer(pairs ...string) charges {
	return func(n int, ctx context.Context, _ *text) (*text, error) {
		if n > 1 {
			return wrapperspb.String("yes"), nil
		}
		_ = grpc.SetTrailer(ctx, metadata.Pairs(pairs...))
		return nil, status.Error(codes.Unavailable, "no")
	}
}

func TestPushbackIsObeyed(t *testing.T) {
	const name = "grpc-retry-pushback-ms"
	for _, c := range []struct {
		name    string
		trailer []string
		waits   time.Duration // negative: there is no other try
	}{
		{"nothing said", nil, 0},
		{"zero", []string{name, "0"}, 0},
		{"positive", []string{name, "40"}, 40 * time.Millisecond},
		{"never", []string{name, "-1"}, -1},
		{"another negative", []string{name, "-9223372036854775808"}, -1},
		{"garbage", []string{name, "soon"}, -1},
		{"a fraction", []string{name, "1.5"}, -1},
		{"empty", []string{name, ""}, -1},
		{"overflow", []string{name, "99999999999999999999"}, -1},
		{"two values", []string{name, "10", name, "10"}, -1},
		{"final", []string{"abate-retries-made", "1;final"}, -1},
		{"made, not final", []string{"abate-retries-made", "1"}, 0},
		{"made garbage", []string{"abate-retries-made", "many;final"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var delay time.Duration
			p := eager()
			p.Observer = abate.ObserverFunc(func(e abate.Event) {
				if e.Kind == core.RetryScheduled {
					delay = e.Delay
				}
			})
			b := stand(t, abategrpc.NewClient(guard(t, p)), withTrailer(c.trailer...), nil)
			_, err := b.call(t.Context())
			switch {
			case c.waits < 0 && (status.Code(err) != codes.Unavailable || b.calls.Load() != 1):
				t.Errorf("error %v after %d calls", err, b.calls.Load())
			case c.waits >= 0 && (err != nil || delay < c.waits || c.waits == 0 && delay > 0):
				t.Errorf("error %v, and a wait of %v", err, delay)
			}
		})
	}
}

func TestRetryInfoIsALowerBoundForTheWait(t *testing.T) {
	var delay time.Duration
	var class abate.Class
	p := eager()
	p.Observer = abate.ObserverFunc(func(e abate.Event) {
		switch {
		case e.Kind == core.RetryScheduled:
			delay = e.Delay
		case e.Kind == core.AttemptEnded && e.Attempt == 1:
			class = e.Class
		}
	})
	b := stand(t, abategrpc.NewClient(guard(t, p)), func(n int, _ context.Context, _ *text) (*text, error) {
		if n > 1 {
			return wrapperspb.String("yes"), nil
		}
		st, err := status.New(codes.Unavailable, "no").WithDetails(
			&errdetails.RetryInfo{RetryDelay: durationpb.New(20 * time.Millisecond)}, &errdetails.RetryInfo{},
			&errdetails.ErrorInfo{Reason: "x"})
		if err != nil {
			return nil, err
		}
		return nil, st.Err()
	}, nil)
	if _, err := b.call(t.Context()); err != nil || delay < 20*time.Millisecond || class != abate.Overload {
		t.Errorf("error %v, wait %v, class %v", err, delay, class)
	}
}

func TestErrorsOfAGuardHaveCodes(t *testing.T) {
	exhausted := eager()
	exhausted.RetryBudget = budget.Config{Kind: budget.Tokens, MaxTokens: 1}
	open := eager()
	open.CircuitBreaker = breaker.Config{FailureThreshold: 1}
	full := eager()
	full.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true}
	limited := eager()
	limited.RateLimit.Config = ratelimit.Config{Limit: ratelimit.Rate{Tokens: 1, Per: time.Hour}, Burst: 1}
	for _, c := range []struct {
		name   string
		policy abate.Policy
		reason error
		code   codes.Code
	}{
		{"attempts exhausted", eager(), abate.ErrAttemptsExhausted, codes.Unavailable},
		{"budget exhausted", exhausted, abate.ErrBudgetExhausted, codes.Unavailable},
		{"circuit open", open, abate.ErrCircuitOpen, codes.Unavailable},
		{"bulkhead full", full, abate.ErrBulkheadFull, codes.Unavailable},
		{"rate limited", limited, abate.ErrRateLimited, codes.ResourceExhausted},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := guard(t, c.policy)
			b := stand(t, abategrpc.NewClient(g), fails(codes.Unavailable), nil)
			var err error
			for i := 0; i < 3 && !(errors.Is(err, c.reason) && i > 1); i++ {
				if c.reason == abate.ErrBulkheadFull {
					_, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) {
						_, err = b.call(t.Context())
						return 0, nil
					})
					continue
				}
				_, err = b.call(t.Context())
			}
			var end *abate.Error
			if !errors.Is(err, c.reason) || !errors.As(err, &end) || end.Guard != "payments" {
				t.Fatalf("error %v", err)
			}
			if st, ok := status.FromError(err); !ok || st.Code() != c.code || st.Message() == "" {
				t.Errorf("status %v, %v", st, ok)
			}
			if wrapped := errors.Join(errors.New("charge"), err); status.Code(wrapped) != c.code {
				t.Errorf("the wrapped error has the code %v", status.Code(wrapped))
			}
			unavailable := status.Error(codes.Unavailable, "no")
			if end.Attempts > 0 && !errors.Is(err, unavailable) {
				t.Errorf("the last attempt's status is not in %v", err)
			}
		})
	}
}

func TestTheLastAttemptsDetailsAreKept(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), func(n int, _ context.Context, _ *text) (*text, error) {
		st, err := status.New(codes.Unavailable, "no").WithDetails(&errdetails.ErrorInfo{Reason: strconv.Itoa(n)})
		if err != nil {
			return nil, err
		}
		return nil, st.Err()
	}, nil)
	_, err := b.call(t.Context())
	st, _ := status.FromError(err)
	if d := st.Details(); len(d) != 1 || d[0].(*errdetails.ErrorInfo).Reason != "4" || st.Message() != "no" {
		t.Errorf("%v, details %v", st, d)
	}
}

func TestCallersGetWhatTheLastAttemptBrought(t *testing.T) {
	for _, until := range []int{3, 9} { // one that succeeds, one that does not
		b := stand(t, abategrpc.NewClient(guard(t, eager())), func(n int, ctx context.Context, in *text) (*text, error) {
			_ = grpc.SetHeader(ctx, metadata.Pairs("h", strconv.Itoa(n), "h"+strconv.Itoa(n), ""))
			_ = grpc.SetTrailer(ctx, metadata.Pairs("t", strconv.Itoa(n), "t"+strconv.Itoa(n), ""))
			return failsUntil(until)(n, ctx, in)
		}, nil)
		var (
			header, trailer metadata.MD
			from            peer.Peer
			finished        []error
			last            = strconv.Itoa(min(until, 4))
		)
		_, err := b.call(t.Context(), grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from),
			grpc.OnFinish(func(err error) { finished = append(finished, err) }), grpc.MaxCallRecvMsgSize(1<<20))
		if (err == nil) != (until == 3) {
			t.Fatal(err)
		}
		if got := trailer["t"]; len(got) != 1 || got[0] != last || trailer["t1"] != nil {
			t.Errorf("trailer %v, not of attempt %v", trailer, last)
		}
		if got := header["h"]; until == 3 && (len(got) != 1 || got[0] != last || header["h1"] != nil) {
			t.Errorf("header %v, not of attempt %v", header, last)
		}
		if from.Addr == nil || from.Addr.String() != b.address {
			t.Errorf("peer %v", from)
		}
		if len(finished) != 1 || status.Code(finished[0]) != status.Code(err) {
			t.Errorf("OnFinish was called with %v", finished)
		}
	}
}

func TestTheDeadlineIsWhatIsReallyLeft(t *testing.T) {
	var left []time.Duration
	p := eager()
	p.Timeout, p.AttemptTimeout = time.Hour, time.Minute
	b := stand(t, abategrpc.NewClient(guard(t, p)), func(n int, ctx context.Context, in *text) (*text, error) {
		d, ok := ctx.Deadline()
		if !ok {
			t.Error("no deadline")
		}
		left = append(left, time.Until(d))
		return failsUntil(2)(n, ctx, in)
	}, nil)
	if _, err := b.call(t.Context()); err != nil {
		t.Fatal(err)
	}
	const less = 30 * time.Second // than the policy gives
	ctx, cancel := context.WithTimeout(t.Context(), less)
	defer cancel()
	if _, err := b.call(ctx); err != nil {
		t.Fatal(err)
	}
	for i, most := range []time.Duration{time.Minute, time.Minute, less} {
		if left[i] > most || left[i] <= 0 {
			t.Errorf("attempt %d had %v", i+1, left[i])
		}
	}
}

func TestAnAttemptThatIsTooSlowIsAFailure(t *testing.T) {
	p := eager()
	p.AttemptTimeout = 30 * time.Millisecond
	var classes []abate.Class
	p.Observer = abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.AttemptEnded {
			classes = append(classes, e.Class)
		}
	})
	b := stand(t, abategrpc.NewClient(guard(t, p)), func(n int, ctx context.Context, _ *text) (*text, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, nil)
	_, err := b.call(t.Context())
	if status.Code(err) != codes.DeadlineExceeded || !errors.Is(err, abate.ErrAttemptsExhausted) || b.calls.Load() > 4 {
		t.Errorf("%v after %d calls", err, b.calls.Load())
	}
	for _, c := range classes {
		if c != abate.Failure {
			t.Errorf("classes %v", classes)
		}
	}
}

func TestACallerThatLeavesIsNobodysFailure(t *testing.T) {
	p := eager()
	p.CircuitBreaker = breaker.Config{FailureThreshold: 1}
	g := guard(t, p)
	inside := make(chan struct{}, 1)
	b := stand(t, abategrpc.NewClient(g), func(_ int, ctx context.Context, _ *text) (*text, error) {
		inside <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-inside
		cancel()
	}()
	if _, err := b.call(ctx); status.Code(err) != codes.Canceled {
		t.Errorf("error %v", err)
	}
	if s := g.State().Breaker.State; s != breaker.Closed {
		t.Errorf("the breaker is %v", s)
	}
	if _, err := b.call(ctx); status.Code(err) != codes.Canceled || b.calls.Load() != 1 {
		t.Errorf("error %v after %d calls", err, b.calls.Load())
	}
}

func TestACallerThatLeavesDuringAWaitIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := abate.Policy{
		Retry: abate.Retry{MaxRetries: 1, Backoff: retry.FixedBackoff, InitialDelay: time.Hour, MaxDelay: time.Hour,
			Jitter: retry.NoJitter}, RetryMethods: []string{chargeMethod},
	}
	p.Observer = abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.RetryScheduled {
			cancel()
		}
	})
	b := stand(t, abategrpc.NewClient(guard(t, p)), fails(codes.Unavailable), nil)
	_, err := b.call(ctx)
	if status.Code(err) != codes.Canceled || !errors.Is(err, context.Canceled) ||
		!errors.Is(err, status.Error(codes.Unavailable, "no")) {
		t.Errorf("error %v", err)
	}
}

// alone declines in words what a policy that retries or hedges gets if it says nothing: budget and circuit breaker.
func alone(p abate.Policy) abate.Policy {
	if p.Budget == nil && p.RetryBudget == (budget.Config{}) {
		p.RetryBudget.Disabled = true
	}
	if p.CircuitBreaker == (breaker.Config{}) {
		p.CircuitBreaker.Disabled = true
	}
	return p
}
