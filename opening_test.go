package abate_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/breaker"
)

// brittle is a guard whose circuit opens at the second failure, for two seconds, and that repeats nothing.
func brittle(t *testing.T) *abate.Guard {
	t.Helper()
	p := abate.DefaultPolicy()
	p.MaxRetries = 0
	p.CircuitBreaker.FailureThreshold = 2
	p.CircuitBreaker.WaitDurationInOpenState, p.CircuitBreaker.MaxWaitDurationInOpenState = 2*time.Second, 2*time.Second
	p.Rand = func() uint64 { return 1 << 63 }
	g, err := abate.New("orders-db", p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// one is a call of one attempt that ends with err. It returns what the caller gets.
func one(t *testing.T, g *abate.Guard, now time.Duration, err error) error {
	t.Helper()
	var c abate.Call
	step := g.Begin(&c, now, abate.NoDeadline)
	if step.Action == abate.Attempt {
		o := abate.Outcome{Err: err}
		if err != nil {
			o.Class = abate.Failure
		}
		step = c.AttemptDone(now, 0, o)
	}
	if step.Action != abate.Finish {
		t.Fatalf("step %+v", step)
	}
	return step.Err
}

func TestAnOpenCircuitSaysWhyItIsOpen(t *testing.T) {
	g := brittle(t)
	refused := func(now time.Duration, want string) {
		t.Helper()
		err := one(t, g, now, nil)
		if err == nil || err.Error() != want || !errors.Is(err, abate.ErrCircuitOpen) {
			t.Errorf("at %v: %v\nwant %s", now, err, want)
		}
	}
	first, second := errors.New("connection reset"), errors.New("connection refused")
	_ = one(t, g, 0, first)
	_ = one(t, g, 1, second)
	refused(2, "orders-db: circuit open, call refused (consecutive failures, the last: connection refused)")
	if err := one(t, g, 2, nil); errors.Is(err, second) {
		t.Errorf("%v is another call's", second)
	}
	probe := errors.New("the database system is starting up")
	if err := one(t, g, 3*time.Second, probe); !errors.Is(err, probe) {
		t.Fatalf("the probe ended with %v", err)
	}
	refused(3*time.Second+1, "orders-db: circuit open, call refused (probe failed, the last: the database system is starting up)")

	p := *g.Describe()
	p.MaxRetries = 1
	if err := g.UpdateAt(3*time.Second+2, p); err != nil {
		t.Fatal(err)
	}
	refused(3*time.Second+3, "orders-db: circuit open, call refused (probe failed, the last: the database system is starting up)")
	p.CircuitBreaker.Mode = breaker.ForcedOpen
	if err := g.UpdateAt(3*time.Second+4, p); err != nil {
		t.Fatal(err)
	}
	refused(3*time.Second+5, "orders-db: circuit open, call refused (forced open)")
}

func TestACircuitThatBeginsOpenSaysSo(t *testing.T) {
	p := abate.DefaultPolicy()
	p.CircuitBreaker.Mode = breaker.ForcedOpen
	g, err := abate.New("orders-db", p)
	if err != nil {
		t.Fatal(err)
	}
	if err := one(t, g, 0, nil); err == nil || err.Error() != "orders-db: circuit open, call refused (forced open)" {
		t.Errorf("%v", err)
	}
}

// What a dependency says may be long, and no text at all.
func TestOfALongFailureAPartIsKept(t *testing.T) {
	g := brittle(t)
	for now := range time.Duration(2) {
		_ = one(t, g, now, errors.New(strings.Repeat("\u20ac", 1000)))
	}
	var e *abate.Error
	if err := one(t, g, 2, nil); !errors.As(err, &e) || len(e.Opened) > 250 || !utf8.ValidString(e.Opened) || !strings.HasSuffix(e.Opened, "\u20ac...") {
		t.Errorf("%v", err)
	}
}

func TestARefusalCostsNothing(t *testing.T) {
	g := brittle(t)
	for now := range time.Duration(2) {
		_ = one(t, g, now, errors.New("away"))
	}
	var c abate.Call
	if n := testing.AllocsPerRun(100, func() {
		if step := g.Begin(&c, 2, abate.NoDeadline); step.Err == nil {
			t.Fatal("not refused")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
