package abatenet_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatenet"
	"github.com/abate-go/abate/startup"
)

func guard(t testing.TB, change func(*abate.Policy)) *abate.Guard {
	t.Helper()
	p := abate.ConnectionPolicy()
	p.Rand = func() uint64 { return 1 << 63 }
	if change != nil {
		change(&p)
	}
	g, err := abate.New("cache", p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// script is a network whose dials end in turn as it says; nil is a connection. The last one holds on.
type script struct {
	ends  []error
	dials atomic.Int32
}

func (s *script) dial(context.Context, string, string) (net.Conn, error) {
	n := int(s.dials.Add(1)) - 1
	if err := s.ends[min(n, len(s.ends)-1)]; err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	server.Close()
	return client, nil
}

func TestADialIsTriedAgainWhereThatMayHelp(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	notFound := &net.DNSError{Err: "no such host", Name: "cache", IsNotFound: true}
	address := &net.AddrError{Err: "missing port in address", Addr: "cache"}
	for _, test := range []struct {
		name  string
		ends  []error
		dials int32
		err   error
		own   bool // the error is Dial's own, not wrapped
	}{
		{"refused at first", []error{refused, nil}, 2, nil, false},
		{"a name that comes a moment later", []error{notFound, notFound, nil}, 3, nil, false},
		{"refused for good", []error{refused}, 3, refused, false},
		{"an address that is none", []error{address}, 1, address, true},
		{"no permission", []error{syscall.EACCES}, 1, syscall.EACCES, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{ends: test.ends}
				d := &abatenet.Dialer{Guard: guard(t, nil), Dial: s.dial}
				conn, err := d.DialContext(t.Context(), "tcp", "cache:6379")
				if s.dials.Load() != test.dials || !errors.Is(err, test.err) || test.own && err != test.err {
					t.Errorf("%d dials, error %v; want %d and %v", s.dials.Load(), err, test.dials, test.err)
				}
				if (conn == nil) != (err != nil) {
					t.Errorf("connection %v with error %v", conn, err)
				}
				if conn != nil {
					conn.Close()
				}
			})
		})
	}
}

func TestThePolicysOwnClassifyWins(t *testing.T) {
	s := &script{ends: []error{syscall.EACCES, nil}}
	d := &abatenet.Dialer{Dial: s.dial, Guard: guard(t, func(p *abate.Policy) {
		p.Backoff, p.Pacing.Disabled = "none", true
		p.Classify = func(err error) abate.Outcome { return abate.Outcome{Class: abate.Failure, Err: err} }
	})}
	if conn, err := d.DialContext(t.Context(), "tcp", "cache:6379"); err != nil || conn == nil {
		t.Errorf("after %d dials: %v", s.dials.Load(), err)
	}
}

func TestAServerThatIsAwayIsNotDialledByEveryCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{ends: []error{syscall.ECONNREFUSED}}
		d := &abatenet.Dialer{Guard: guard(t, nil), Dial: s.dial}
		const callers = 1000
		var open atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				_, err := d.DialContext(t.Context(), "tcp", "cache:6379")
				if errors.Is(err, abate.ErrCircuitOpen) {
					open.Add(1)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		// Ten seconds and more: three failures, then probes that come every second at last.
		if n := s.dials.Load(); n < 6 || n > 25 {
			t.Errorf("%d dials for %d callers", n, callers)
		}
		if open := open.Load(); open < callers*9/10 {
			t.Errorf("only %d of %d were told that the circuit is open", open, callers)
		}
	})
}

func TestACallerWhoLeavesLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	g := guard(t, func(p *abate.Policy) { p.Pacing.Disabled = true })
	dialling := make(chan struct{}, 1)
	d := &abatenet.Dialer{Guard: g, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		dialling <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	for range 50 {
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := d.DialContext(ctx, "tcp", "cache:6379")
			ended <- err
		}()
		<-dialling
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("left, and got %v", err)
		}
	}
	if n := g.State().Breaker.State.String(); n != "closed" {
		t.Errorf("callers who leave have made the circuit %s", n)
	}
	if !settles(func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}

// settles waits for something that other goroutines do in a moment.
func settles(done func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 4000 {
		if done() {
			return true
		}
		<-tick.C
	}
	return false
}

func TestAHangingDialEndsAtTheAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &abatenet.Dialer{Guard: guard(t, nil), Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		began := time.Now()
		_, err := d.DialContext(t.Context(), "tcp", "cache:6379")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, abate.ErrAttemptsExhausted) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took < 15*time.Second || took > 18*time.Second { // three attempts of 5 s
			t.Errorf("took %v", took)
		}
	})
}

func TestWithoutAGuardEveryConnectionIsOpened(t *testing.T) {
	for name, g := range map[string]*abate.Guard{"nil": nil, "zero": new(abate.Guard)} {
		dials := 0
		d := abatenet.Dialer{Guard: g, Dial: func(context.Context, string, string) (net.Conn, error) {
			dials++
			return nil, syscall.ECONNREFUSED
		}}
		if _, err := d.DialContext(t.Context(), "tcp", "cache:6379"); !errors.Is(err, syscall.ECONNREFUSED) || dials != 1 {
			t.Errorf("%s: %d dials, error %v", name, dials, err)
		}
	}
}

func TestTheConnectionIsTheOneThatWasDialled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := (&abatenet.Dialer{Guard: guard(t, nil)}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, plain := conn.(*net.TCPConn); !plain {
		t.Errorf("a %T", conn)
	}
}

// What drivers ask for, word for word: DialFunc of pgx, Dialer of go-redis, the argument of kgo.Dialer, DialContext of
// net/http.
var _ func(ctx context.Context, network, addr string) (net.Conn, error) = (*abatenet.Dialer)(nil).DialContext

// denied is what a server says to a wrong password, as pgx reports it.
type denied struct{}

func (denied) Error() string    { return "password authentication failed (SQLSTATE 28P01)" }
func (denied) SQLState() string { return "28P01" }

func TestAStartWithAWrongPasswordEndsAtOnce(t *testing.T) {
	p := abate.ConnectionPolicy()
	p.Classify = abatenet.Classify
	tries := 0
	_, err := startup.Connect(t.Context(), "db", p, func(context.Context) (int, error) { tries++; return 0, denied{} })
	if tries != 1 || !errors.Is(err, denied{}) {
		t.Errorf("%d tries, error %v", tries, err)
	}
}
