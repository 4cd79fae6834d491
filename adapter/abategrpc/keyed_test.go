package abategrpc_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/retry"
)

// keyed is a protection that keeps keys.
func keyed(methods ...string) inbound.Protection {
	if len(methods) == 0 {
		methods = []string{"/shop.Payment/Charge"}
	}
	return inbound.Protection{Idempotency: idempotency.Config{Methods: methods}}
}

// counting is a handler that answers with the number of the run.
func counting(runs *atomic.Int32) unary {
	return func(ctx context.Context, in *text) (*text, error) {
		n := runs.Add(1)
		_ = grpc.SetHeader(ctx, metadata.Pairs("location", "/charges/1", "x-bin", string([]byte{0, 255})))
		_ = grpc.SetTrailer(ctx, metadata.Pairs("took", "1ms", "set-cookie", "secret"))
		if code, failed := strings.CutPrefix(in.Value, "fail "); failed {
			var c codes.Code
			if err := c.UnmarshalJSON([]byte(`"` + code + `"`)); err != nil {
				return nil, errors.New("a plain error")
			}
			return nil, status.Error(c, "no")
		}
		return wrapperspb.String(strings.Repeat("#", int(n)) + in.Value), nil
	}
}

// decided are what became of keys, as the gate's observer heard it.
func (l *gateLog) decided() string {
	var all []string
	for _, e := range l.all(inbound.KeyDecided) {
		all = append(all, e.Detail)
	}
	return strings.Join(all, " ")
}

func TestACallWithAKeyIsDoneOnce(t *testing.T) {
	var runs atomic.Int32
	conn, _, log := protect(t, keyed(), counting(&runs))
	first := charge(t.Context(), conn, "a", "idempotency-key", "k1")
	if first.err != nil || first.text != "#a" || len(first.trailer["idempotency-replayed"]) != 0 {
		t.Fatalf("%+v", first)
	}
	for _, md := range [][]string{
		{"idempotency-key", "k1"}, {"x-idempotency-key", "k1"}, {"idempotency-key", `"k1"`},
		{"idempotency-key", "k1", "x-idempotency-key", "k1"},
	} {
		again := charge(t.Context(), conn, "a", md...)
		if again.err != nil || again.text != "#a" || again.one(t, "idempotency-replayed") != "true" ||
			again.one(t, "took") != "1ms" {
			t.Errorf("%v: %+v", md, again)
		}
		if got := again.header["location"]; len(got) != 1 || got[0] != "/charges/1" ||
			again.header["x-bin"][0] != "\x00\xff" {
			t.Errorf("header %v", again.header)
		}
		if len(again.trailer["set-cookie"]) != 0 {
			t.Error("a cookie was kept")
		}
	}
	if other := charge(t.Context(), conn, "a", "idempotency-key", "k2"); other.text != "##a" {
		t.Errorf("%+v", other)
	}
	if none := charge(t.Context(), conn, "a"); none.text != "###a" {
		t.Errorf("%+v", none)
	}
	if got := log.decided(); got != "run replay replay replay replay run" {
		t.Error(got)
	}
}

func TestWhichAnswersAreKept(t *testing.T) {
	for code, kept := range map[string]bool{
		"INVALID_ARGUMENT": true, "NOT_FOUND": true, "ALREADY_EXISTS": true, "PERMISSION_DENIED": true,
		"FAILED_PRECONDITION": true, "OUT_OF_RANGE": true,
		"CANCELLED": false, "UNKNOWN": false, "DEADLINE_EXCEEDED": false, "RESOURCE_EXHAUSTED": false, "ABORTED": false,
		"UNIMPLEMENTED": false,
		"INTERNAL":      false, "UNAVAILABLE": false, "DATA_LOSS": false, "UNAUTHENTICATED": false, "plain": false,
	} {
		t.Run(code, func(t *testing.T) {
			var runs atomic.Int32
			conn, _, _ := protect(t, keyed("POST"), counting(&runs))
			first := charge(t.Context(), conn, "fail "+code, "idempotency-key", "k")
			again := charge(t.Context(), conn, "fail "+code, "idempotency-key", "k")
			if first.err == nil || again.err == nil || first.err.Error() != again.err.Error() {
				t.Errorf("%v, then %v", first.err, again.err)
			}
			if replayed := again.one(t, "idempotency-replayed") == "true"; replayed != kept || runs.Load() == 1 != kept {
				t.Errorf("replayed %v after %d runs", replayed, runs.Load())
			}
		})
	}
}

func TestDetailsOfAStoredErrorComeBack(t *testing.T) {
	conn, _, _ := protect(t, keyed(), func(context.Context, *text) (*text, error) {
		st, err := status.New(codes.NotFound, "no such card").WithDetails(wrapperspb.String("detail"))
		if err != nil {
			return nil, err
		}
		return nil, st.Err()
	})
	charge(t.Context(), conn, "a", "idempotency-key", "k")
	a := charge(t.Context(), conn, "a", "idempotency-key", "k")
	details := status.Convert(a.err).Details()
	if len(details) != 1 || details[0].(*text).Value != "detail" || a.one(t, "idempotency-replayed") != "true" {
		t.Error(a.err, details, a.trailer)
	}
}

func TestBadKeysAreRefused(t *testing.T) {
	required := keyed("POST")
	required.Idempotency.Required = true
	small := keyed()
	small.Idempotency.MaxAnswer = 1
	for name, c := range map[string]struct {
		protection inbound.Protection
		before     []string // metadata of a call "a" before
		md         []string
		want       codes.Code
		reason     string
	}{
		"none where one is needed": {required, nil, nil, codes.InvalidArgument, "idempotency-key-missing"},
		"an empty one": {
			keyed(), nil, []string{"idempotency-key", ""}, codes.InvalidArgument, "idempotency-key-invalid",
		},
		"two of them": {keyed(), nil, []string{"idempotency-key", "a", "idempotency-key", "b"}, codes.InvalidArgument,
			"idempotency-key-invalid"},
		"two under two names": {keyed(), nil, []string{"idempotency-key", "a", "x-idempotency-key", "b"},
			codes.InvalidArgument, "idempotency-key-invalid"},
		"a long one": {keyed(), nil, []string{"idempotency-key", strings.Repeat("k", 256)}, codes.InvalidArgument,
			"idempotency-key-invalid"},
		"a control character": {
			keyed(), nil, []string{"idempotency-key", "a b"}, codes.InvalidArgument, "idempotency-key-invalid",
		},
		"another message": {keyed(), []string{"idempotency-key", "k"}, []string{"idempotency-key", "k"},
			codes.FailedPrecondition, "idempotency-mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			conn, _, log := protect(t, c.protection, counting(&runs))
			if c.before != nil {
				charge(t.Context(), conn, "a", c.before...)
			}
			had := runs.Load()
			a := charge(t.Context(), conn, "b", c.md...)
			if info, _ := a.details(t); a.code() != c.want || info.Reason != c.reason || runs.Load() != had {
				t.Errorf("%v, %v, %d runs", a.err, info, runs.Load()-had)
			}
			if done := log.await(t, inbound.RequestDone, 1); done[len(done)-1].Class == abate.Failure {
				t.Errorf("%+v", done)
			}
		})
	}
	t.Run("an answer too large", func(t *testing.T) {
		var runs atomic.Int32
		conn, _, _ := protect(t, small, counting(&runs))
		if a := charge(t.Context(), conn, "a long one", "idempotency-key", "k"); a.err != nil {
			t.Fatal(a.err)
		}
		a := charge(t.Context(), conn, "a long one", "idempotency-key", "k")
		if info, _ := a.details(t); a.code() != codes.AlreadyExists || info.Reason != "idempotency-not-stored" ||
			runs.Load() != 1 {
			t.Error(a.err, info)
		}
	})
}

func TestARepeatOfWhatIsRunningComesLater(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	conn, _, _ := protect(t, keyed(), func(context.Context, *text) (*text, error) {
		close(inside)
		<-leave
		return wrapperspb.String("done"), nil
	})
	var all sync.WaitGroup
	all.Go(func() { charge(context.Background(), conn, "a", "idempotency-key", "k") })
	<-inside
	a := charge(t.Context(), conn, "a", "idempotency-key", "k")
	if info, retry := a.details(t); a.code() != codes.Aborted || info.Reason != "idempotency-running" || retry <= 0 {
		t.Error(a.err, info, retry)
	}
	close(leave)
	all.Wait()
	if a = charge(t.Context(), conn, "a", "idempotency-key", "k"); a.err != nil || a.text != "done" ||
		a.one(t, "idempotency-replayed") != "true" {
		t.Errorf("%+v", a)
	}
}

func TestWhatAClientDidNotWaitForIsDoneAndStored(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	var runs atomic.Int32
	conn, _, log := protect(t, keyed(), func(ctx context.Context, _ *text) (*text, error) {
		runs.Add(1)
		close(inside)
		<-leave
		ended <- errors.Join(ctx.Err(), grpc.SetHeader(ctx, metadata.Pairs("a", "b")),
			grpc.SetTrailer(ctx, metadata.Pairs("c", "d")))
		return wrapperspb.String("done"), nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { charge(ctx, conn, "a", "idempotency-key", "k") })
	<-inside
	cancel()
	all.Wait()
	close(leave)
	if err := <-ended; err != nil {
		t.Errorf("the handler noticed: %v", err)
	}
	log.await(t, inbound.RequestDone, 1)
	a := charge(t.Context(), conn, "a", "idempotency-key", "k")
	if a.err != nil || a.text != "done" || runs.Load() != 1 || a.one(t, "c") != "d" {
		t.Errorf("%+v after %d runs", a, runs.Load())
	}
}

func TestAPanicLetsTheKeyGo(t *testing.T) {
	var runs atomic.Int32
	recovering := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (
		resp any, err error) {
		defer func() {
			if recover() != nil {
				err = status.Error(codes.Internal, "panic")
			}
		}()
		return next(ctx, req)
	}
	s := &shop{charge: func(context.Context, *text) (*text, error) {
		if runs.Add(1) == 1 {
			panic("boom")
		}
		return wrapperspb.String("done"), nil
	}}
	conn := s.serve(t, append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(recovering)},
		abategrpc.ServerOptions(newGate(t, keyed()))...)...)
	if a := charge(t.Context(), conn, "a", "idempotency-key", "k"); a.code() != codes.Internal {
		t.Fatal(a.err)
	}
	if a := charge(t.Context(), conn, "a", "idempotency-key", "k"); a.text != "done" ||
		len(a.trailer["idempotency-replayed"]) != 0 {
		t.Errorf("%+v", a)
	}
}

// away is a store that cannot be reached.
type away struct{ idempotency.Store }

func (away) Begin(context.Context, string, idempotency.Fingerprint, time.Duration) (idempotency.Begun, error) {
	return idempotency.Begun{}, errors.New("connection refused")
}

func TestAStoreThatIsAway(t *testing.T) {
	for when, want := range map[string]codes.Code{"": codes.Unavailable, "open": codes.OK} {
		p := keyed()
		p.Store, p.Idempotency.WhenAway = away{}, when
		conn, _, log := protect(t, p, echo)
		a := charge(t.Context(), conn, "a", "idempotency-key", "k")
		if a.code() != want || log.decided() != "away" {
			t.Errorf("%q: %v, %s", when, a.err, log.decided())
		}
		if want == codes.OK {
			continue
		}
		if info, retry := a.details(t); info.Reason != "idempotency-unavailable" || retry < time.Second ||
			a.one(t, "grpc-retry-pushback-ms") == "" {
			t.Error(info, retry)
		}
	}
}

// forgetful is a store that is away when a call ends.
type forgetful struct{ idempotency.Store }

func (forgetful) Renew(context.Context, string, uint64, time.Duration) error {
	return errors.New("connection refused")
}

func (forgetful) Complete(context.Context, string, uint64, idempotency.Response, time.Duration) error {
	return errors.New("connection refused")
}

// A refusal in place of an answer has none of its trailers. The calls that were made for it count all the same.
func TestARefusalInPlaceOfAnAnswerHasNothingOfIt(t *testing.T) {
	p := trusting(keyed())
	p.Store, p.Idempotency.Lease = forgetful{idempotency.NewMemory(1<<20, core.Now)}, 200*time.Millisecond
	conn, _, _ := protect(t, p, func(ctx context.Context, in *text) (*text, error) {
		_ = grpc.SetTrailer(ctx, metadata.Pairs("order", "17"))
		fail(ctx, t)
		return in, nil
	})
	a := charge(t.Context(), conn, "a", "idempotency-key", "k", "abate-retry-allowance", "2")
	if a.code() != codes.Unavailable || a.one(t, "abate-reason") != "idempotency-unrecorded" {
		t.Fatal(a.err, a.trailer)
	}
	if got := a.one(t, "order"); got != "" {
		t.Errorf("the trailer of the answer went out: %q", got)
	}
	if got := a.one(t, "abate-retries-made"); got != "2" {
		t.Errorf("%q retries were made", got)
	}
}

// fail makes a call that is repeated for as long as its tree allows.
func fail(ctx context.Context, t *testing.T) {
	g, err := abate.New("bank", abate.Policy{
		Retry: abate.Retry{MaxRetries: 5, Backoff: retry.NoBackoff}, RetryBudget: budget.Config{Disabled: true},
	})
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = abate.Do(ctx, g, func(context.Context) (int, error) { return 0, errors.New("no") })
}

// Whoever has an answer that is not recorded may see its call done again by the next try.
func TestAnAnswerThatIsNotRecordedIsNotGivenOut(t *testing.T) {
	for when, want := range map[string]codes.Code{"": codes.Unavailable, "open": codes.OK} {
		p := keyed()
		p.Store, p.Idempotency.WhenAway, p.Idempotency.Lease = forgetful{idempotency.NewMemory(1<<20, core.Now)}, when,
			200*time.Millisecond
		conn, _, log := protect(t, p, echo)
		a := charge(t.Context(), conn, "a", "idempotency-key", "k")
		if a.code() != want || !strings.Contains(log.decided(), "unrecorded") {
			t.Errorf("%q: %v, %s", when, a.err, log.decided())
		}
		if want == codes.OK {
			continue
		}
		if info, retry := a.details(t); info.Reason != "idempotency-unrecorded" || retry < time.Second {
			t.Error(info, retry)
		}
		if b := charge(t.Context(), conn, "a", "idempotency-key", "k"); b.code() != codes.Aborted { // long after the lease
			t.Errorf("a repeat gets %v", b.err)
		}
	}
}

func TestKeysBelongToACaller(t *testing.T) {
	var runs atomic.Int32
	p := trusting(keyed())
	p.Caller = "header:x-tenant"
	conn, _, _ := protect(t, p, counting(&runs))
	one := charge(t.Context(), conn, "a", "idempotency-key", "k", "x-tenant", "one")
	two := charge(t.Context(), conn, "a", "idempotency-key", "k", "x-tenant", "two")
	if one.text != "#a" || two.text != "##a" {
		t.Error(one.text, two.text)
	}
}

func TestTheHandlerIsToldOfItsTry(t *testing.T) {
	var tries []abategrpc.Try
	conn, _, _ := protect(t, keyed(), func(ctx context.Context, in *text) (*text, error) {
		try, ok := abategrpc.TryOf(ctx)
		if ok != (in.Value == "keyed") {
			t.Errorf("a try: %v", ok)
		}
		tries = append(tries, try)
		return nil, status.Error(codes.Unavailable, "again")
	})
	charge(t.Context(), conn, "keyed", "idempotency-key", "k")
	charge(t.Context(), conn, "keyed", "idempotency-key", "k")
	charge(t.Context(), conn, "plain")
	if tries[0].Key != "k" || tries[1].Token <= tries[0].Token || tries[0].TakenOver {
		t.Errorf("%+v", tries)
	}
}

func TestMessagesThatAreNotProtobufCannotBeKeyed(t *testing.T) {
	intercept := abategrpc.UnaryServerInterceptor(newGate(t, keyed("POST")))
	called := false
	_, err := intercept(arriving("idempotency-key", "k"), "text", charging, func(context.Context, any) (any, error) {
		called = true
		return nil, nil
	})
	if status.Code(err) != codes.Unimplemented || called {
		t.Error(err, called)
	}
	// An answer that is none is given, and reported to the repeats.
	resp, err := intercept(arriving("idempotency-key", "k2"), wrapperspb.String("a"), charging,
		func(context.Context, any) (any, error) {
			return 5, nil
		})
	if resp != 5 || err != nil {
		t.Error(resp, err)
	}
	if _, err = intercept(arriving("idempotency-key", "k2"), wrapperspb.String("a"), charging, fine); status.Code(err) !=
		codes.AlreadyExists {
		t.Error(err)
	}
}

// A copy with the same key finds the first one running, and must not be taken for the answer.
func TestAHedgeWithAKeyWaitsForTheFirstCopy(t *testing.T) {
	var runs, calls atomic.Int32
	refused := make(chan struct{})
	log := new(gateLog)
	p := keyed()
	p.Observer = inbound.GateObserverFunc(func(e inbound.GateEvent) {
		log.ObserveGate(e)
		if e.Kind == inbound.KeyDecided && e.Detail == "running" && calls.Add(1) == 1 {
			close(refused)
		}
	})
	s := &shop{charge: func(context.Context, *text) (*text, error) {
		runs.Add(1)
		<-refused
		return wrapperspb.String("done"), nil
	}}
	plain := s.serve(t, abategrpc.ServerOptions(newGate(t, p))...)
	g, err := abate.New("payments", alone(abate.Policy{Hedge: hedge.Config{Delay: time.Millisecond}}))
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, plain.Target(), abategrpc.DialOptions(g)...)
	a := charge(t.Context(), conn, "a", "idempotency-key", "k")
	if a.err != nil || a.text != "done" || runs.Load() != 1 {
		t.Errorf("%+v after %d runs, %s", a, runs.Load(), log.decided())
	}
}

// A try whose connection was lost is still at work when the next one comes: that one gets the answer, later.
func TestARetryWithAKeyGetsTheAnswerOfTheRunningTry(t *testing.T) {
	var runs atomic.Int32
	again := make(chan struct{}, 1)
	p := keyed()
	p.Observer = inbound.GateObserverFunc(func(e inbound.GateEvent) {
		if e.Kind == inbound.KeyDecided && e.Detail == "running" {
			select {
			case again <- struct{}{}:
			default: // it has been told already
			}
		}
	})
	s := &shop{charge: func(context.Context, *text) (*text, error) {
		runs.Add(1)
		<-again
		return wrapperspb.String("done"), nil
	}}
	plain := s.serve(t, abategrpc.ServerOptions(newGate(t, p))...)
	g, err := abate.New("payments",
		alone(abate.Policy{AttemptTimeout: time.Second, Retry: abate.Retry{MaxRetries: 5, InitialDelay: time.Millisecond}}))
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, plain.Target(), abategrpc.DialOptions(g)...)
	a := charge(t.Context(), conn, "a", "idempotency-key", "k")
	if a.err != nil || a.text != "done" || runs.Load() != 1 || a.one(t, "idempotency-replayed") != "true" {
		t.Errorf("%+v after %d runs", a, runs.Load())
	}
}

func TestHedgesThatMeetTheirFirstCopyDoNotOpenTheBreaker(t *testing.T) {
	refused := make(chan struct{}, 1) // one of the two copies of the call in the air
	s := &shop{charge: func(_ context.Context, in *text) (*text, error) {
		<-refused
		return in, nil
	}}
	plain := s.serve(t, abategrpc.ServerOptions(newGate(t, keyed()))...)
	policy := hasty()
	policy.CircuitBreaker = abate.DefaultPolicy().CircuitBreaker
	policy.Observer = abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.AttemptEnded && e.Class == abate.Overload {
			refused <- struct{}{}
		}
	})
	conn := dial(t, plain.Target(), abategrpc.DialOptions(guard(t, policy))...)
	for i := range 30 {
		if a := charge(t.Context(), conn, "a", "idempotency-key", strconv.Itoa(i)); a.err != nil {
			t.Fatalf("call %d: %v", i, a.err)
		}
	}
}
