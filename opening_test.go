package abate_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/bulkhead"
)

// brittle is a guard whose circuit opens at the second failure, for two seconds, and that repeats nothing.
func brittle(t *testing.T) *abate.Guard {
	t.Helper()
	p := abate.DefaultPolicy()
	p.MaxRetries = 0
	p.CircuitBreaker.FailureThreshold = 2
	p.CircuitBreaker.WaitDurationInOpenState, p.CircuitBreaker.MaxWaitDurationInOpenState = 2*time.Second, 2*time.Second
	p.Rand = func() uint64 { return 1 << 63 }
	g, err := abate.New("orders-db", alone(p))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// one is a call of one attempt that ends with err. It returns what the caller gets.
func one(t *testing.T, g *abate.Guard, now time.Duration, err error) error {
	t.Helper()
	var c core.Call
	step := g.Begin(&c, now, core.NoDeadline)
	if step.Action == core.Attempt {
		o := abate.Outcome{Err: err}
		if err != nil {
			o.Class = abate.Failure
		}
		step = c.AttemptDone(now, 0, o)
	}
	if step.Action != core.Finish {
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
	probe := errors.New("the database system\n\tis starting up\n")
	if err := one(t, g, 3*time.Second, probe); !errors.Is(err, probe) {
		t.Fatalf("the probe ended with %v", err)
	}
	refused(3*time.Second+1, "orders-db: circuit open, call refused (probe failed, the last: the database system is "+
		"starting up)")

	p := *g.Describe()
	p.MaxRetries = 1
	if err := g.UpdateAt(3*time.Second+2, p); err != nil {
		t.Fatal(err)
	}
	refused(3*time.Second+3, "orders-db: circuit open, call refused (probe failed, the last: the database system is "+
		"starting up)")
	p.CircuitBreaker.Mode = breaker.ForcedOpen
	if err := g.UpdateAt(3*time.Second+4, p); err != nil {
		t.Fatal(err)
	}
	refused(3*time.Second+5, "orders-db: circuit open, call refused (forced open)")
}

func TestACircuitThatBeginsOpenSaysSo(t *testing.T) {
	p := abate.DefaultPolicy()
	p.CircuitBreaker.Mode = breaker.ForcedOpen
	g, err := abate.New("orders-db", alone(p))
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
	if err := one(t, g, 2, nil); !errors.As(err, &e) || len(e.Opened) > 250 || !utf8.ValidString(e.Opened) ||
		!strings.HasSuffix(e.Opened, "\u20ac...") {
		t.Errorf("%v", err)
	}
}

func TestARefusalCostsNothing(t *testing.T) {
	g := brittle(t)
	for now := range time.Duration(2) {
		_ = one(t, g, now, errors.New("away"))
	}
	var c core.Call
	if n := testing.AllocsPerRun(100, func() {
		if step := g.Begin(&c, 2, core.NoDeadline); step.Err == nil {
			t.Fatal("not refused")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whoever waited for a place or a turn first is told as much as the others.
func TestARefusalAfterAWaitSaysWhyTheCircuitIsOpen(t *testing.T) {
	g := brittle(t)
	p := *g.Describe()
	p.Bulkhead.MaxConcurrentCalls, p.Bulkhead.MaxQueue = 1, 1
	if err := g.UpdateAt(0, p); err != nil {
		t.Fatal(err)
	}
	down := abate.Outcome{Class: abate.Failure, Err: errors.New("connection refused")}
	_ = one(t, g, 0, down.Err)
	var first, second core.Call
	g.Begin(&first, 1, core.NoDeadline)
	if step := g.Begin(&second, 1, core.NoDeadline); step.Action != core.Queue {
		t.Fatalf("step %+v", step)
	}
	w := &bulkhead.Waiter{Wake: func() {}}
	second.Enqueue(1, w)
	first.AttemptDone(2, 0, down)
	step := second.Admitted(3)
	var e *abate.Error
	if !errors.As(step.Err, &e) || e.Opened != "consecutive failures, the last: connection refused" || e.Elapsed != 2 {
		t.Errorf("step %+v", step)
	}
	var later *abate.Error
	if err := one(t, g, 4, nil); !errors.As(err, &later) || later.Elapsed != 0 {
		t.Errorf("what all share has been changed: %v", err)
	}
}

// What was under way when somebody forced the circuit open has nothing to do with it.
func TestNoFailureExplainsACircuitThatIsForcedOpen(t *testing.T) {
	g := brittle(t)
	p := *g.Describe()
	p.CircuitBreaker.Mode = breaker.ForcedOpen
	var c core.Call
	g.Begin(&c, 0, core.NoDeadline)
	if err := g.UpdateAt(1, p); err != nil {
		t.Fatal(err)
	}
	c.AttemptDone(2, 0, abate.Outcome{Class: abate.Failure, Err: errors.New("connection refused")})
	if err := one(t, g, 3, nil); err == nil || err.Error() != "orders-db: circuit open, call refused (forced open)" {
		t.Errorf("%v", err)
	}
}

// Changes of a breaker may be told in the wrong order: here the circuit opens before it is told that it was closed.
func TestTheLateNewsOfAClosedCircuitDoesNotHideWhyItIsOpenNow(t *testing.T) {
	g := brittle(t)
	p := *g.Describe()
	p.CircuitBreaker.FailureThreshold = 1
	p.CircuitBreaker.Mode = breaker.ForcedOpen
	if err := g.UpdateAt(0, p); err != nil {
		t.Fatal(err)
	}
	p.CircuitBreaker.Mode = breaker.Enforce
	told := false
	p.Observer = abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.PolicyChanged && !told {
			told = true
			_ = one(t, g, 1, errors.New("connection refused"))
		}
	})
	if err := g.UpdateAt(1, p); err != nil {
		t.Fatal(err)
	}
	if err := one(t, g, 2, nil); err == nil ||
		err.Error() != "orders-db: circuit open, call refused (consecutive failures, the last: connection refused)" {
		t.Errorf("%v", err)
	}
}

type careless struct{ text string }

func (c *careless) Error() string { return c.text }

// An error that cannot tell its text is no reason to lose the permits of the call.
func TestAFailureWithoutATextOpensTheCircuitAllTheSame(t *testing.T) {
	g := brittle(t)
	for now := range time.Duration(2) {
		_ = one(t, g, now, (*careless)(nil))
	}
	if err := one(t, g, 2, nil); err == nil || !strings.Contains(err.Error(), "consecutive failures, the last: ") {
		t.Errorf("%v", err)
	}
}

func TestFailuresOfATerseCallerAreNotWrittenDown(t *testing.T) {
	g := brittle(t)
	under := make([]core.Call, 4)
	for i := range under {
		under[i].Caller = core.Terse
		g.Begin(&under[i], 0, core.NoDeadline)
	}
	_ = one(t, g, 0, errors.New("connection reset"))
	_ = one(t, g, 1, errors.New("connection refused"))
	late := abate.Outcome{Class: abate.Failure, Err: errors.New("broken pipe")}
	next := 0
	if n := testing.AllocsPerRun(len(under)-1, func() {
		under[next].AttemptDone(2, 0, late)
		next++
	}); n != 0 {
		t.Errorf("%v allocations for a text that nobody reads", n)
	}
	const want = "orders-db: circuit open, call refused (consecutive failures, the last: connection refused)"
	if err := one(t, g, 3, nil); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
