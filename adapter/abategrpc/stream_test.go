package abategrpc_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
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
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/retry"
)

// stream begins a stream to the shop.
func (b *backend) stream(t *testing.T, ctx context.Context, kind string, opts ...grpc.CallOption) grpc.ClientStream {
	t.Helper()
	ss, err := b.conn.NewStream(ctx, kinds[kind], "/shop.Payment/"+kind, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return ss
}

func send(t *testing.T, ss grpc.ClientStream, words ...string) {
	t.Helper()
	for _, w := range words {
		if err := ss.SendMsg(wrapperspb.String(w)); err != nil {
			t.Fatalf("sending %q: %v", w, err)
		}
	}
}

// hear reads what a client sends, to its end.
func hear(ss grpc.ServerStream) (all []string, err error) {
	for {
		in := new(text)
		switch err := ss.RecvMsg(in); {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return all, err
		}
		all = append(all, in.Value)
	}
}

// collect reads what a server sends, to its end.
func collect(ss grpc.ClientStream) (all []string, err error) {
	for {
		in := new(text)
		switch err := ss.RecvMsg(in); {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return all, err
		}
		all = append(all, in.Value)
	}
}

var errNo = status.Error(codes.Unavailable, "no")

func TestAStreamIsRepeatedBeforeItsFirstMessage(t *testing.T) {
	for _, kind := range []string{"Watch", "Upload", "Talk"} {
		t.Run(kind, func(t *testing.T) {
			b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(n int, ss grpc.ServerStream) error {
				if n == 1 {
					return errNo // before it has read anything
				}
				if n == 2 {
					_ = ss.SendHeader(metadata.Pairs("h", "2")) // a header alone is no answer
				}
				heard, err := hear(ss)
				if n < 4 {
					return errNo
				}
				if err != nil {
					return err
				}
				return ss.SendMsg(wrapperspb.String(strings.Join(heard, ",")))
			})
			ss := b.stream(t, t.Context(), kind)
			want := []string{"a"}
			if kind != "Watch" {
				want = []string{"a", "b", "c"}
			}
			send(t, ss, want...)
			if err := ss.CloseSend(); err != nil {
				t.Fatal(err)
			}
			var got []string
			var err error
			if kind == "Upload" {
				out := new(text)
				err = ss.RecvMsg(out)
				got = []string{out.Value}
			} else {
				got, err = collect(ss)
			}
			if err != nil || !slices.Equal(got, []string{strings.Join(want, ",")}) || b.calls.Load() != 4 {
				t.Errorf("%q, error %v, after %d tries", got, err, b.calls.Load())
			}
			if said := b.said("grpc-previous-rpc-attempts"); !slices.Equal(said, []string{"", "1", "2", "3"}) {
				t.Errorf("the server was told of previous attempts %q", said)
			}
		})
	}
}

func TestAStreamTellsTheObserverOfItsContextWhatItDoes(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(n int, ss grpc.ServerStream) error {
		if n == 1 {
			return errNo
		}
		heard, err := hear(ss)
		if err != nil {
			return err
		}
		return ss.SendMsg(wrapperspb.String(strings.Join(heard, ",")))
	})
	var mu sync.Mutex
	told := make(map[core.EventKind]int)
	ctx := abate.WithObserver(t.Context(), abate.ObserverFunc(func(e abate.Event) {
		mu.Lock()
		defer mu.Unlock()
		told[e.Kind]++
	}))
	ss := b.stream(t, ctx, "Talk")
	send(t, ss, "a")
	if err := ss.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(ss); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if told[core.AttemptBegan] != 2 || told[core.RetryScheduled] != 1 || told[core.CallEnded] != 1 {
		t.Errorf("it was told %v", told)
	}
}

func TestAStreamIsNeverRepeatedAfterItsFirstMessage(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(n int, ss grpc.ServerStream) error {
		if n > 1 {
			return nil
		}
		_ = ss.SendMsg(wrapperspb.String("first"))
		return errNo
	})
	ss := b.stream(t, t.Context(), "Watch")
	send(t, ss, "a")
	got, err := collect(ss)
	if status.Code(err) != codes.Unavailable || !slices.Equal(got, []string{"first"}) || b.calls.Load() != 1 {
		t.Errorf("%q, error %v, after %d tries", got, err, b.calls.Load())
	}
}

func TestAStreamIsNotRepeatedWithoutConsent(t *testing.T) {
	p := eager()
	p.RetryMethods = nil
	b := stand(t, abategrpc.NewClient(guard(t, p)), nil, func(int, grpc.ServerStream) error { return errNo })
	ss := b.stream(t, t.Context(), "Watch")
	send(t, ss, "a")
	if _, err := collect(ss); status.Code(err) != codes.Unavailable || b.calls.Load() != 1 {
		t.Errorf("error %v after %d tries", err, b.calls.Load())
	}
	ss = b.stream(t, abategrpc.WithIdempotencyKey(t.Context(), "k"), "Watch")
	send(t, ss, "a")
	if _, err := collect(ss); !errors.Is(err, abate.ErrAttemptsExhausted) || status.Code(err) != codes.Unavailable ||
		b.calls.Load() != 5 {
		t.Errorf("error %v after %d tries", err, b.calls.Load())
	}
	if _, err := collect(ss); status.Code(err) != codes.Unavailable {
		t.Errorf("asked again, the stream ends with %v", err)
	}
}

func TestAStreamThatHasSentMuchIsNotRepeated(t *testing.T) {
	for _, c := range []struct {
		name  string
		held  int
		sizes []int
		tries int64
	}{
		{"fits", 1000, []int{100, 200, 300}, 2},
		{"too long", 1000, []int{100, 200, 1300}, 1},
		{"many that are empty", 1000, make([]int, 200), 1},
		{"never held", -1, []int{1}, 1},
		{"default, fits", 0, []int{30_000, 30_000}, 2},
		{"default, too long", 0, []int{30_000, 36_000}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := abategrpc.NewClient(guard(t, eager()))
			client.MaxBuffered = c.held
			b := stand(t, client, nil, func(n int, ss grpc.ServerStream) error {
				heard, err := hear(ss)
				if err != nil {
					return err
				}
				if n == 1 {
					return errNo
				}
				return ss.SendMsg(wrapperspb.String(strconv.Itoa(len(heard))))
			})
			ss := b.stream(t, t.Context(), "Upload")
			for _, size := range c.sizes {
				send(t, ss, strings.Repeat("x", size))
			}
			_ = ss.CloseSend()
			out := new(text)
			err := ss.RecvMsg(out)
			if b.calls.Load() != c.tries || (err == nil) != (c.tries > 1) ||
				err == nil && out.Value != strconv.Itoa(len(c.sizes)) {
				t.Errorf("%q, error %v, after %d tries", out.Value, err, b.calls.Load())
			}
		})
	}
}

func TestMessagesMayBeUsedAgainAfterSendMsg(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(n int, ss grpc.ServerStream) error {
		heard, err := hear(ss)
		if n == 1 || err != nil {
			return errNo
		}
		return ss.SendMsg(wrapperspb.String(strings.Join(heard, ",")))
	})
	ss := b.stream(t, t.Context(), "Upload")
	m := new(text)
	for _, m.Value = range []string{"a", "b", "c"} {
		if err := ss.SendMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	_ = ss.CloseSend()
	m.Value = "d"
	out := new(text)
	if err := ss.RecvMsg(out); err != nil || out.Value != "a,b,c" {
		t.Errorf("%q, error %v", out.Value, err)
	}
}

// A long upload whose server fails at once is repeated while it is sent, not only when it asks for the answer: by then
// it would have sent too much.
func TestAnUploadNoticesThatItHasToBeRepeated(t *testing.T) {
	begun := make(chan int, 8)
	b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(n int, ss grpc.ServerStream) error {
		begun <- n
		if n == 1 {
			return errNo
		}
		heard, err := hear(ss)
		if err != nil {
			return err
		}
		return ss.SendMsg(wrapperspb.String(strconv.Itoa(len(heard))))
	})
	ss := b.stream(t, t.Context(), "Upload")
	sent := 0
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	for try := 0; try < 2; { // until it has been repeated
		send(t, ss, "x")
		sent++
		select {
		case try = <-begun:
		case <-pause.C:
		}
	}
	for ; sent < 500; sent++ {
		send(t, ss, strings.Repeat("x", 1000))
	}
	_ = ss.CloseSend()
	out := new(text)
	if err := ss.RecvMsg(out); err != nil || out.Value != strconv.Itoa(sent) {
		t.Errorf("%q of %d, error %v", out.Value, sent, err)
	}
}

// slowSend is a stream whose SendMsg takes until it is told to end, and then says that the stream is over.
type slowSend struct {
	play
	entered, goOn chan struct{}
}

func (s *slowSend) SendMsg(any) error {
	close(s.entered)
	<-s.goOn
	return io.EOF
}

func TestAMessageThatWasSentAgainMeanwhileIsSent(t *testing.T) {
	client := abategrpc.NewClient(guard(t, eager()))
	first := &slowSend{play{ctx: t.Context()}, make(chan struct{}), make(chan struct{})}
	second := &play{ctx: t.Context(), patience: -1, answers: 2}
	tries := []grpc.ClientStream{first, second}
	ss, err := client.Stream(t.Context(), kinds["Talk"], nil, "/shop.Payment/Talk",
		func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			next := tries[0]
			tries = tries[1:]
			return next, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error)
	go func() { sent <- ss.SendMsg(wrapperspb.String("a")) }()
	<-first.entered
	if err := ss.RecvMsg(new(text)); err != nil { // the first try has failed, and the second answers
		t.Fatal(err)
	}
	close(first.goOn)
	if err := <-sent; err != nil || !slices.Equal(second.heard, []string{"a"}) {
		t.Errorf("error %v, and the second try has heard %q", err, second.heard)
	}
}

// quiet is a stream whose answer takes until it is told to come.
type quiet struct {
	play
	entered, goOn chan struct{}
}

func (s *quiet) RecvMsg(m any) error {
	close(s.entered)
	<-s.goOn
	return s.play.RecvMsg(m)
}

// asked is a quiet stream that tells when its header is asked for: the sender does, when it has noticed the end.
type asked struct {
	quiet
	header chan struct{}
}

func (s *asked) Header() (metadata.MD, error) {
	close(s.header)
	return nil, nil
}

// Who reads the next try may do so for long: until the sender has sent more, for one.
func TestASenderDoesNotWaitForTheReaderOfTheNextTry(t *testing.T) {
	client := abategrpc.NewClient(guard(t, eager()))
	first := &asked{quiet{play{ctx: t.Context()}, make(chan struct{}), make(chan struct{})}, make(chan struct{})}
	second := &quiet{play{ctx: t.Context(), patience: -1, answers: 2}, make(chan struct{}), make(chan struct{})}
	tries := []grpc.ClientStream{first, second}
	ss, err := client.Stream(t.Context(), kinds["Talk"], nil, "/shop.Payment/Talk",
		func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			next := tries[0]
			tries = tries[1:]
			return next, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	sent, read := make(chan error, 1), make(chan error, 1)
	go func() { read <- ss.RecvMsg(new(text)) }()
	<-first.entered
	go func() { sent <- ss.SendMsg(wrapperspb.String("a")) }()
	<-first.header // the sender is about to wait for the reader
	for range 1000 {
		runtime.Gosched()
	}
	close(first.goOn)
	<-second.entered
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case err := <-sent:
		if err != nil || !slices.Equal(second.heard, []string{"a"}) {
			t.Errorf("error %v, and the second try has heard %q", err, second.heard)
		}
	case <-late.C:
		t.Error("the sender hangs")
	}
	close(second.goOn)
	if err := <-read; err != nil {
		t.Error(err)
	}
}

func TestAnEarlyAnswerIsNotLost(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(_ int, ss grpc.ServerStream) error {
		return ss.SendMsg(wrapperspb.String("enough")) // and reads nothing
	})
	ss := b.stream(t, t.Context(), "Upload")
	var err error
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	for end := time.Now().Add(patience); err == nil && time.Now().Before(end); <-pause.C {
		err = ss.SendMsg(wrapperspb.String("x"))
	}
	out := new(text)
	if got := ss.RecvMsg(out); err != io.EOF || got != nil || out.Value != "enough" || b.calls.Load() != 1 {
		t.Errorf("sending ends with %v, reading with %v and %q, after %d tries", err, got, out.Value, b.calls.Load())
	}
}

func TestSendAndRecvMayRunBesideEachOther(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(n int, ss grpc.ServerStream) error {
		for i := 0; ; i++ {
			in := new(text)
			switch err := ss.RecvMsg(in); {
			case err == io.EOF:
				return nil
			case err != nil:
				return err
			case n < 4 && i == 20*n:
				return errNo
			}
			if n == 4 {
				if err := ss.SendMsg(in); err != nil {
					return err
				}
			}
		}
	})
	ss := b.stream(t, t.Context(), "Talk")
	const all = 300
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range all {
			if err := ss.SendMsg(wrapperspb.String(strconv.Itoa(i))); err != nil {
				t.Errorf("sending %d: %v", i, err)
				return
			}
		}
		_ = ss.CloseSend()
	})
	got, err := collect(ss)
	wg.Wait()
	if err != nil || len(got) != all {
		t.Fatalf("%d messages, error %v", len(got), err)
	}
	for i, m := range got {
		if m != strconv.Itoa(i) {
			t.Fatalf("message %d is %q", i, m)
		}
	}
}

func TestHeaderAndTrailerAreThoseOfTheLastTry(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(n int, ss grpc.ServerStream) error {
		ss.SetTrailer(metadata.Pairs("t", strconv.Itoa(n)))
		if n < 3 {
			return errNo
		}
		_ = ss.SetHeader(metadata.Pairs("h", strconv.Itoa(n)))
		return ss.SendMsg(wrapperspb.String("yes"))
	})
	var trailer metadata.MD
	var finished []error
	ss := b.stream(t, t.Context(), "Watch", grpc.Trailer(&trailer), grpc.OnFinish(func(err error) {
		finished = append(finished, err)
	}))
	send(t, ss, "a")
	_ = ss.CloseSend()
	header, err := ss.Header() // nothing has been read yet: it repeats the stream
	if got := header.Get("h"); err != nil || !slices.Equal(got, []string{"3"}) {
		t.Errorf("header %v, error %v", got, err)
	}
	if _, err := collect(ss); err != nil {
		t.Error(err)
	}
	if got := ss.Trailer().Get("t"); !slices.Equal(got, []string{"3"}) || !slices.Equal(trailer.Get("t"), got) {
		t.Errorf("trailers %v and %v", got, trailer)
	}
	if len(finished) != 1 || finished[0] != nil {
		t.Errorf("OnFinish was called with %v", finished)
	}
}

func TestWhoHasSeenTheHeaderGetsNoOther(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(_ int, ss grpc.ServerStream) error {
		_ = ss.SendHeader(metadata.Pairs("h", "1"))
		_, _ = hear(ss)
		return errNo
	})
	ss := b.stream(t, t.Context(), "Talk")
	if header, err := ss.Header(); err != nil || header.Get("h") == nil {
		t.Fatalf("header %v, error %v", header, err)
	}
	_ = ss.CloseSend()
	if _, err := collect(ss); status.Code(err) != codes.Unavailable || b.calls.Load() != 1 {
		t.Errorf("error %v after %d tries", err, b.calls.Load())
	}
}

func TestAStreamWithoutMessagesSucceeds(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(int, grpc.ServerStream) error { return nil })
	ss := b.stream(t, t.Context(), "Watch")
	send(t, ss, "a")
	if got, err := collect(ss); err != nil || len(got) != 0 || b.calls.Load() != 1 {
		t.Errorf("%q, error %v, after %d tries", got, err, b.calls.Load())
	}
	if err := ss.RecvMsg(new(text)); err != io.EOF {
		t.Errorf("and then %v", err)
	}
}

// one is a policy with one place, so that a call that does not end is noticed.
func one() abate.Policy {
	p := eager()
	p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true}
	return p
}

func TestAStreamGivesItsPlaceBack(t *testing.T) {
	hangs := func(_ int, ss grpc.ServerStream) error {
		<-ss.Context().Done()
		return ss.Context().Err()
	}
	speaks := func(n int, ss grpc.ServerStream) error {
		_ = ss.SendMsg(wrapperspb.String("first"))
		return hangs(n, ss)
	}
	leave := func(cancel func(), _ *backend, _ grpc.ClientStream) { cancel() }
	for name, c := range map[string]struct {
		talk talks
		end  func(cancel func(), b *backend, ss grpc.ClientStream)
	}{
		"with its first message": {speaks, func(_ func(), _ *backend, ss grpc.ClientStream) {
			_ = ss.RecvMsg(new(text))
		}},
		"when it is abandoned":          {hangs, leave},
		"when its connection is closed": {hangs, func(_ func(), b *backend, _ grpc.ClientStream) { _ = b.conn.Close() }},
		"when its server stops": {hangs, func(_ func(), b *backend, ss grpc.ClientStream) {
			b.server.Stop()
			_, _ = collect(ss)
		}},
		"at its end": {func(int, grpc.ServerStream) error {
			return nil
		}, func(_ func(), _ *backend, ss grpc.ClientStream) { _, _ = collect(ss) }},
		"after all tries": {func(int, grpc.ServerStream) error {
			return errNo
		}, func(_ func(), _ *backend, ss grpc.ClientStream) { _, _ = collect(ss) }},
		"when it cannot send": {hangs, func(_ func(), _ *backend, ss grpc.ClientStream) { _ = ss.SendMsg("no message") }},
	} {
		t.Run(name, func(t *testing.T) {
			g := guard(t, one())
			b := stand(t, abategrpc.NewClient(g), nil, c.talk)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ss := b.stream(t, ctx, "Talk")
			if g.State().Bulkhead.InFlight != 1 {
				t.Fatalf("%+v", g.State().Bulkhead)
			}
			if _, err := b.conn.NewStream(ctx, kinds["Talk"], "/shop.Payment/Talk"); !errors.Is(err, abate.ErrBulkheadFull) ||
				status.Code(err) != codes.Unavailable {
				t.Errorf("a second stream: %v", err)
			}
			c.end(cancel, b, ss)
			eventually(t, func() bool { return g.State().Bulkhead.InFlight == 0 })
		})
	}
}

func TestATimeLimitEndsWithTheFirstMessage(t *testing.T) {
	p := eager()
	p.AttemptTimeout = 500 * time.Millisecond
	var tries atomic.Int32 // two, unless the machine is so busy that the second, too, is too slow
	p.Observer = abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.AttemptBegan {
			tries.Add(1)
		}
	})
	goOn := make(chan struct{})
	b := stand(t, abategrpc.NewClient(guard(t, p)), nil, func(n int, ss grpc.ServerStream) error {
		if _, ok := ss.Context().Deadline(); ok {
			t.Error("the server has a deadline that ends after the first message")
		}
		if n == 1 { // too slow
			<-ss.Context().Done()
			return ss.Context().Err()
		}
		_ = ss.SendMsg(wrapperspb.String("first"))
		<-goOn
		return ss.SendMsg(wrapperspb.String("second"))
	})
	ss := b.stream(t, t.Context(), "Watch")
	send(t, ss, "a")
	if err := ss.RecvMsg(new(text)); err != nil {
		t.Fatal(err)
	}
	until := tries.Load()
	later := time.NewTimer(2 * p.AttemptTimeout)
	<-later.C
	close(goOn)
	if got, err := collect(ss); err != nil || !slices.Equal(got, []string{"second"}) || until < 2 ||
		tries.Load() != until {
		t.Errorf("%q, error %v, after %d tries, %d before the first message", got, err, tries.Load(), until)
	}
}

// The timeout is the deadline of the whole stream, as that of a service config is. Where the first message is the end,
// an attempt's time limit is one too. A caller's own deadline is never made longer.
func TestATimeoutIsTheDeadlineOfAStreamThatTheServerHears(t *testing.T) {
	for name, c := range map[string]struct {
		method           string
		timeout, attempt time.Duration
		own              time.Duration // the caller's
		want             time.Duration // what the server has, at most and not much less; 0 for no deadline
	}{
		"none":                                {"Watch", 0, 0, 0, 0},
		"the policy's":                        {"Watch", time.Hour, 0, 0, time.Hour},
		"the policy's, in both directions":    {"Talk", time.Hour, 0, 0, time.Hour},
		"the policy's beside an attempt's":    {"Talk", time.Hour, 10 * time.Minute, 0, time.Hour},
		"an attempt's of a stream of answers": {"Watch", 0, 10 * time.Minute, 0, 0},
		"an attempt's, with one answer":       {"Upload", time.Hour, 10 * time.Minute, 0, time.Hour}, // its caller may pause
		"the caller's, which is less":         {"Watch", time.Hour, 0, 20 * time.Minute, 20 * time.Minute},
		"the caller's, which is more":         {"Watch", time.Hour, 0, 3 * time.Hour, time.Hour},
		"the caller's, with one answer":       {"Upload", time.Hour, 30 * time.Minute, 20 * time.Minute, 20 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			p := eager()
			p.Timeout, p.AttemptTimeout = c.timeout, c.attempt
			had := make(chan time.Duration, 1)
			b := stand(t, abategrpc.NewClient(guard(t, p)), nil, func(_ int, ss grpc.ServerStream) error {
				left := time.Duration(0)
				if until, ok := ss.Context().Deadline(); ok {
					left = time.Until(until)
				}
				had <- left
				if err := ss.RecvMsg(new(wrapperspb.StringValue)); err != nil { // a call that has ended takes no message
					return err
				}
				return ss.SendMsg(wrapperspb.String("x"))
			})
			ctx := t.Context()
			if c.own > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.own)
				defer cancel()
			}
			ss := b.stream(t, ctx, c.method)
			send(t, ss, "a")
			if err := ss.CloseSend(); err != nil {
				t.Fatal(err)
			}
			if _, err := collect(ss); err != nil {
				t.Error(err)
			}
			// grpc-go rounds up
			if left := <-had; left > c.want+time.Second || left < c.want-5*time.Minute || (left == 0) != (c.want == 0) {
				t.Errorf("the server had %v, want %v", left, c.want)
			}
		})
	}
}

func TestAStreamEndsAtThePolicysTimeout(t *testing.T) {
	p := eager()
	p.Timeout = 500 * time.Millisecond
	b := stand(t, abategrpc.NewClient(guard(t, p)), nil, func(_ int, ss grpc.ServerStream) error {
		_ = ss.SendMsg(wrapperspb.String("first"))
		<-ss.Context().Done()
		return ss.Context().Err()
	})
	ss := b.stream(t, t.Context(), "Watch")
	send(t, ss, "a")
	if got, err := collect(ss); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAStreamThatStaysSilentIsTooSlow(t *testing.T) {
	p := eager()
	p.AttemptTimeout = 20 * time.Millisecond
	b := stand(t, abategrpc.NewClient(guard(t, p)), nil, func(_ int, ss grpc.ServerStream) error {
		<-ss.Context().Done()
		return ss.Context().Err()
	})
	ss := b.stream(t, t.Context(), "Watch")
	send(t, ss, "a")
	if _, err := collect(ss); status.Code(err) != codes.DeadlineExceeded || !errors.Is(err, abate.ErrAttemptsExhausted) {
		t.Errorf("error %v", err)
	}
}

func TestWhoCancelsAStreamIsNobodysFailure(t *testing.T) {
	p := eager()
	p.CircuitBreaker = breaker.Config{FailureThreshold: 1}
	g := guard(t, p)
	b := stand(t, abategrpc.NewClient(g), nil, func(_ int, ss grpc.ServerStream) error {
		<-ss.Context().Done()
		return ss.Context().Err()
	})
	for range 30 { // whether it is the reader who notices first, or not
		ctx, cancel := context.WithCancel(t.Context())
		ss := b.stream(t, ctx, "Watch")
		send(t, ss, "a")
		go cancel()
		if _, err := collect(ss); status.Code(err) != codes.Canceled {
			t.Fatalf("error %v", err)
		}
	}
	if s := g.State().Breaker.State; s != breaker.Closed {
		t.Errorf("the breaker is %v", s)
	}
}

// unhurried is a context whose time is up before what depends on it hears of that, one after the other.
type unhurried struct {
	context.Context
	mu      sync.Mutex
	ended   atomic.Bool
	done    chan struct{}
	hearers []func()
}

func (u *unhurried) Done() <-chan struct{} { return u.done }

func (u *unhurried) Err() error {
	if u.ended.Load() {
		return context.DeadlineExceeded
	}
	return nil
}

// AfterFunc is what package context asks for in a context that is not its own.
func (u *unhurried) AfterFunc(f func()) func() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.hearers = append(u.hearers, f)
	return func() bool { return !u.ended.Load() }
}

// expire ends the context. Between the first who hears of it, and the others, it waits.
func (u *unhurried) expire(wait func()) {
	u.ended.Store(true)
	close(u.done)
	u.mu.Lock()
	all := slices.Clone(u.hearers)
	u.mu.Unlock()
	for i, tell := range all {
		if tell(); i == 0 {
			wait()
		}
	}
}

// The guard may hear of a deadline before grpc-go does, and lets the try go: the caller is told of the deadline all the
// same.
func TestAStreamWhoseTimeIsUpIsNotCalledCancelled(t *testing.T) {
	g := guard(t, one())
	b := stand(t, abategrpc.NewClient(g), nil, func(_ int, ss grpc.ServerStream) error {
		<-ss.Context().Done()
		return ss.Context().Err()
	})
	ctx := &unhurried{Context: t.Context(), done: make(chan struct{})}
	ended := make(chan error, 2)
	ss := b.stream(t, ctx, "Talk", grpc.OnFinish(func(err error) { ended <- err }))
	got := make(chan error, 1)
	go func() { got <- ss.RecvMsg(new(text)) }()
	ctx.expire(func() { eventually(t, func() bool { return g.State().Bulkhead.InFlight == 0 }) })
	if err := <-got; status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("error %v", err)
	}
	if err := <-ended; status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("OnFinish was told %v", err)
	}
}

func TestAStreamWhoseCallerLeavesDuringAWaitIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := abate.Policy{
		Retry:        abate.Retry{MaxRetries: 1, Backoff: retry.FixedBackoff, InitialDelay: time.Hour, MaxDelay: time.Hour},
		RetryMethods: []string{"/shop.Payment/*"},
	}
	p.Observer = abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.RetryScheduled {
			cancel()
		}
	})
	b := stand(t, abategrpc.NewClient(guard(t, p)), nil, func(int, grpc.ServerStream) error { return errNo })
	ss := b.stream(t, ctx, "Watch")
	send(t, ss, "a")
	if _, err := collect(ss); status.Code(err) != codes.Canceled || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestWhoLeavesAStreamAfterItsFirstMessageHearsOfItsEnd(t *testing.T) {
	for name, leave := range map[string]func(cancel func(), b *backend){
		"cancelled":                func(cancel func(), _ *backend) { cancel() },
		"its connection is closed": func(_ func(), b *backend) { _ = b.conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(_ int, ss grpc.ServerStream) error {
				_ = ss.SendMsg(wrapperspb.String("first"))
				<-ss.Context().Done()
				return nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 2)
			ss := b.stream(t, ctx, "Talk", grpc.OnFinish(func(err error) { ended <- err }))
			if err := ss.RecvMsg(new(text)); err != nil {
				t.Fatal(err)
			}
			leave(cancel, b)
			select {
			case err := <-ended:
				if status.Code(err) != codes.Canceled {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(patience):
				t.Error("nobody was told")
			}
		})
	}
}

// The first message and the end come at the same moment.
func TestTheEndOfAStreamIsToldOnce(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(_ int, ss grpc.ServerStream) error {
		for ss.SendMsg(wrapperspb.String("more")) == nil {
		}
		return nil
	})
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 8)
		ss := b.stream(t, ctx, "Talk", grpc.OnFinish(func(err error) { ended <- err }))
		go cancel()
		_ = ss.RecvMsg(new(text))
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("nobody was told")
		}
		if _, _ = collect(ss); len(ended) > 0 {
			t.Fatal("it was told again")
		}
	}
}

// "Read a stream to its end, or cancel its context. Either gives all permits back."
func TestAStreamThatIsCancelledGivesTheProbesPermitBack(t *testing.T) {
	const opened = 10 * time.Millisecond
	g := guard(t, abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 1, WaitDurationInOpenState: opened,
		MaxWaitDurationInOpenState: opened, PermittedCallsInHalfOpen: 1, SuccessThreshold: 1,
		HalfOpenPermitLease: time.Hour}})
	var ill atomic.Bool
	ill.Store(true)
	b := stand(t, abategrpc.NewClient(g), nil, func(_ int, ss grpc.ServerStream) error {
		if ill.Load() {
			return errNo
		}
		if err := ss.SendMsg(wrapperspb.String("one")); err != nil {
			return err
		}
		<-ss.Context().Done()
		return nil
	})
	open := func(ctx context.Context) error {
		ss := b.stream(t, ctx, "Watch")
		send(t, ss, "a")
		_ = ss.CloseSend()
		return ss.RecvMsg(new(text))
	}
	if err := open(t.Context()); err == nil {
		t.Fatal("it succeeded")
	}
	ill.Store(false)
	eventually(t, func() bool { return g.Breaker().RetryIn(core.Now()) == 0 })
	ctx, cancel := context.WithCancel(t.Context())
	if err := open(ctx); err != nil {
		t.Fatal(err)
	}
	if s := g.State().Breaker.State; s != breaker.HalfOpen {
		t.Fatal(s)
	}
	cancel() // and reads no more
	eventually(t, func() bool { return g.State().Breaker.State == breaker.Closed })
}
