package abate_test

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

func gate(t *testing.T, p inbound.Protection) *inbound.Gate {
	t.Helper()
	g, err := inbound.NewGate("orders", p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func limited(c ratelimit.Config) inbound.ArrivalLimit { return inbound.ArrivalLimit{Config: c} }

// places is a shedder with so many places and so many who may wait.
func places(n, queue int) shed.Config {
	return shed.Config{Concurrency: shed.Fixed, MaxConcurrency: n, MaxQueue: queue}
}

// arrive has a request arrive and says what became of it.
func arrive(g *inbound.Gate, now time.Duration, r inbound.Request) (*inbound.Arrival, core.Step) {
	a := new(inbound.Arrival)
	if r.Deadline == 0 {
		r.Deadline = core.NoDeadline
	}
	step := g.Arrive(a, now, r)
	if step.Action == core.Measure {
		step = a.Measured(now, a.ReadCPU())
	}
	return a, step
}

func TestAGateWithoutPartsLetsEverythingPass(t *testing.T) {
	g := gate(t, inbound.Protection{})
	for range 1000 {
		a, step := arrive(g, 0, inbound.Request{})
		if step.Action != core.Handle || step.Until != core.NoDeadline {
			t.Fatalf("%+v", step)
		}
		if _, on := a.Limit(); on || a.NoRetry(0) {
			t.Fatal("it has something to say")
		}
	}
}

func TestExpiredRequestsAreRefusedFirst(t *testing.T) {
	g := gate(t, inbound.Protection{RateLimit: limited(perSecond(1, 1))})
	a, step := arrive(g, 100, inbound.Request{Deadline: 100})
	if step.Action != core.Refuse || step.Err != abate.ErrDeadline || a.Refusal().Shed != shed.Expired {
		t.Errorf("%+v, %+v", step, a.Refusal())
	}
	if _, step = arrive(g, 100, inbound.Request{}); step.Action != core.Handle {
		t.Errorf("the expired one took a token: %+v", step)
	}
}

func TestTheEarlierDeadlineCounts(t *testing.T) {
	g := gate(t, inbound.Protection{Timeout: time.Second})
	if _, step := arrive(g, 5, inbound.Request{}); step.Until != 5+time.Second {
		t.Errorf("the gate's: %v", step.Until)
	}
	if _, step := arrive(g, 5, inbound.Request{Deadline: 100 * ms}); step.Until != 100*ms {
		t.Errorf("the caller's: %v", step.Until)
	}
}

func TestRequestsAboveTheLimitAreToldWhenToComeBack(t *testing.T) {
	g := gate(t, inbound.Protection{RateLimit: limited(perSecond(0.1, 2)), Rand: func() uint64 {
		return uint64(5 * time.Second)
	}})
	for left := range int64(2) {
		a, step := arrive(g, 0, inbound.Request{Key: "a"})
		if d, on := a.Limit(); step.Action != core.Handle || !on || d.Limit != 2 || d.Remaining != 1-left {
			t.Fatalf("%+v, %+v", step, d)
		}
	}
	a, step := arrive(g, 0, inbound.Request{Key: "a"})
	if r := a.Refusal(); step.Action != core.Refuse || r.Reason != abate.ErrRateLimited ||
		r.RetryAfter != 10*time.Second || r.WholeSeconds() != 10 || r.NoRetry {
		t.Errorf("%+v, %+v", step, r)
	}
	// the one before has its token first
	if a, _ := arrive(g, 0, inbound.Request{Key: "a"}); a.Refusal().RetryAfter != 20*time.Second {
		t.Errorf("the next one: %+v", a.Refusal())
	}
	if _, step := arrive(g, 0, inbound.Request{Key: "b"}); step.Action != core.Handle {
		t.Errorf("another key: %+v", step)
	}
}

func TestAClosedLimitTellsCallersNotToComeBack(t *testing.T) {
	g := gate(t, inbound.Protection{RateLimit: limited(perSecond(0, 0))})
	a, step := arrive(g, 0, inbound.Request{})
	if r := a.Refusal(); step.Action != core.Refuse || !r.NoRetry || r.RetryAfter != 0 {
		t.Errorf("%+v, %+v", step, r)
	}
}

func TestCostsAddUp(t *testing.T) {
	limit := limited(perSecond(1, 10))
	limit.Cost = 4
	g := gate(t, inbound.Protection{RateLimit: limit})
	for i, want := range []core.Action{core.Handle, core.Handle, core.Refuse} {
		if _, step := arrive(g, 0, inbound.Request{}); step.Action != want {
			t.Errorf("request %d: %+v", i, step)
		}
	}
	if _, step := arrive(g, 0, inbound.Request{Cost: 2}); step.Action != core.Handle {
		t.Errorf("a cheap one: %+v", step)
	}
}

// fleetOf is a FleetLimiter that knows nothing by itself.
type fleetOf struct {
	known  bool
	answer ratelimit.Decision
	asked  []string
}

func (f *fleetOf) TryTake(_ time.Duration, key string, _ float64) (ratelimit.Decision, bool) {
	return f.answer, f.known
}

func (f *fleetOf) Take(_ context.Context, key string, _ float64) ratelimit.Decision {
	f.asked = append(f.asked, key)
	return f.answer
}

func TestAFleetIsAskedOnlyWhenThisInstanceDoesNotKnow(t *testing.T) {
	fleet := &fleetOf{answer: ratelimit.Decision{Allowed: true}}
	g := gate(t, inbound.Protection{RateLimit: limited(perSecond(0, 0)), Fleet: fleet})
	a, step := arrive(g, 0, inbound.Request{Key: "k"})
	if step.Action != core.Ask {
		t.Fatalf("%+v", step)
	}
	if step = a.Limited(ms, a.AskFleet(t.Context())); step.Action != core.Handle || len(fleet.asked) != 1 ||
		fleet.asked[0] != "k" {
		t.Errorf("%+v, asked for %v", step, fleet.asked)
	}
	fleet.known, fleet.answer = true, ratelimit.Decision{Over: true, RetryAfter: time.Second}
	if a, step = arrive(g, 0, inbound.Request{Key: "k"}); step.Action != core.Refuse ||
		a.Refusal().RetryAfter < time.Second || len(fleet.asked) != 1 {
		t.Errorf("%+v, asked for %v", step, fleet.asked)
	}
}

func TestAnAnswerOfTheFleetThatComesTooLateIsNotUsed(t *testing.T) {
	g := gate(t, inbound.Protection{
		RateLimit: limited(perSecond(1, 1)), Fleet: &fleetOf{answer: ratelimit.Decision{Allowed: true}},
	})
	a, _ := arrive(g, 0, inbound.Request{Deadline: 10 * ms})
	if step := a.Limited(10*ms, a.AskFleet(t.Context())); step.Action != core.Refuse || step.Err != abate.ErrDeadline {
		t.Errorf("%+v", step)
	}
}

func TestPlacesAreGivenBackAndPassedOn(t *testing.T) {
	g := gate(t, inbound.Protection{Shed: places(1, 5)})
	first, step := arrive(g, 0, inbound.Request{})
	if step.Action != core.Handle {
		t.Fatalf("%+v", step)
	}
	second, step := arrive(g, ms, inbound.Request{})
	if step.Action != core.Queue {
		t.Fatalf("%+v", step)
	}
	woken := 0
	w := &shed.Waiter{Wake: func() { woken++ }}
	if step = second.Enqueue(ms, w); step.Action != core.Queued || step.Until <= ms || step.Until == core.NoDeadline {
		t.Fatalf("%+v", step)
	}
	first.Done(2*ms, abate.Success)
	if woken != 1 {
		t.Fatalf("woken %d times", woken)
	}
	if step = second.Woken(2*ms, w); step.Action != core.Handle {
		t.Fatalf("%+v", step)
	}
	second.Done(3*ms, abate.Success)
	second.Done(3*ms, abate.Success) // again: nothing
	if st := g.StateAt(3 * ms).Shed; st.InFlight != 0 || st.Queued != 0 {
		t.Errorf("%+v", st)
	}
}

func TestWhoLeavesTheQueueHoldsNothing(t *testing.T) {
	for name, permitComes := range map[string]bool{"before a place was free": false, "as a place came free": true} {
		g := gate(t, inbound.Protection{Shed: places(1, 5)})
		first, _ := arrive(g, 0, inbound.Request{})
		second, _ := arrive(g, 0, inbound.Request{})
		w := &shed.Waiter{Wake: func() {}}
		second.Enqueue(0, w)
		if permitComes {
			first.Done(ms, abate.Success)
		}
		if step := second.LeaveQueue(ms, w, context.Canceled); step.Action != core.Refuse || step.Err != context.Canceled {
			t.Errorf("%s: %+v", name, step)
		}
		if !permitComes {
			first.Done(ms, abate.Success)
		}
		if st := g.StateAt(ms).Shed; st.InFlight != 0 || st.Queued != 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

func TestAWaitThatTookTooLongIsRefusedForOverload(t *testing.T) {
	g := gate(t, inbound.Protection{Shed: places(1, 5)})
	arrive(g, 0, inbound.Request{})
	second, _ := arrive(g, 0, inbound.Request{})
	w := &shed.Waiter{Wake: func() {}}
	until := second.Enqueue(0, w).Until
	step := second.LeaveQueue(until, w, nil)
	if r := second.Refusal(); step.Action != core.Refuse || r.Reason != abate.ErrOverloaded || r.RetryAfter < time.Second {
		t.Errorf("%+v, %+v", step, r)
	}
}

func TestAShadowRefusesNothingAndSaysWhatItWouldHave(t *testing.T) {
	refused := 0
	limit, shadow := limited(perSecond(1, 1)), places(1, 0)
	limit.Shadow, shadow.Shadow = true, true
	g := gate(
		t, inbound.Protection{RateLimit: limit, Shed: shadow, Observer: inbound.GateObserverFunc(func(e inbound.GateEvent) {
			if e.Shadow {
				refused++
			}
		})})
	for i := range 100 {
		if _, step := arrive(g, 0, inbound.Request{}); step.Action != core.Handle {
			t.Fatalf("request %d: %+v", i, step)
		}
	}
	if refused < 150 {
		t.Errorf("%d of 198 refusals were told", refused)
	}
}

func TestAGateTellsItsStory(t *testing.T) {
	var story []string
	g := gate(t, inbound.Protection{RateLimit: limited(perSecond(1, 1)),
		Observer: inbound.GateObserverFunc(func(e inbound.GateEvent) {
			if e.Gate != "orders" || e.Priority != shed.Sheddable {
				t.Errorf("%+v", e)
			}
			line := e.Kind.String()
			if e.Reason != nil {
				line += " " + e.Reason.Error()
			}
			story = append(story, line)
		})})
	a, _ := arrive(g, 0, inbound.Request{Priority: shed.Sheddable})
	a.Done(ms, abate.Success)
	arrive(g, ms, inbound.Request{Priority: shed.Sheddable})
	want := []string{"limit-decided", "request-admitted", "request-done", "limit-decided", "request-refused rate limited"}
	if !reflect.DeepEqual(story, want) {
		t.Errorf("%q", story)
	}
}

func TestUpdateKeepsWhatWasUsed(t *testing.T) {
	p := inbound.Protection{RateLimit: limited(perSecond(0.001, 3)), Shed: places(2, 0)}
	g := gate(t, p)
	first, _ := arrive(g, 0, inbound.Request{})
	for range 2 {
		a, _ := arrive(g, 0, inbound.Request{})
		a.Done(0, abate.Success)
	}
	p.RateLimit.Cost = 2 // something that is not the limit itself
	if err := g.UpdateAt(0, p); err != nil {
		t.Fatal(err)
	}
	if _, step := arrive(g, 0, inbound.Request{}); step.Action != core.Refuse {
		t.Errorf("an update filled the bucket: %+v", step)
	}
	if n := g.StateAt(0).Shed.InFlight; n != 1 {
		t.Errorf("%d in flight", n)
	}
	first.Done(0, abate.Success)
	if n := g.StateAt(0).Shed.InFlight; n != 0 {
		t.Errorf("%d in flight", n)
	}
}

func TestAnInvalidProtectionChangesNothing(t *testing.T) {
	g := gate(t, inbound.Protection{Timeout: time.Second})
	err := g.Update(inbound.Protection{Timeout: -1, Caller: "nobody"})
	var field *abate.FieldError
	if !errors.As(err, &field) || g.Describe().Timeout != time.Second {
		t.Errorf("%v, %v", err, g.Describe().Timeout)
	}
	if _, err := inbound.NewGate("", inbound.Protection{}); err == nil {
		t.Error("a gate without a name was made")
	}
}

func TestTheProcessorIsLookedAtFourTimesASecond(t *testing.T) {
	asked := 0
	p := inbound.Protection{Shed: shed.Config{CPU: 0.9}, CPU: func() float64 { asked++; return 0.1 }}
	g := gate(t, p)
	for i := range 10_000 {
		arrive(g, time.Duration(i)*ms, inbound.Request{})
	}
	if asked != 40 {
		t.Errorf("asked %d times in 10 seconds", asked)
	}
}

func TestAnArrivalDoesNotLookAtTheProcessorItself(t *testing.T) {
	asked := 0
	p := inbound.Protection{Shed: shed.Config{CPU: 0.5}, CPU: func() float64 { asked++; return 1 }}
	g := gate(t, p)
	var a inbound.Arrival
	step := g.Arrive(&a, 0, inbound.Request{Deadline: core.NoDeadline})
	if asked != 0 || step.Action != core.Measure {
		t.Fatalf("asked %d times by a decision, which then says %+v", asked, step)
	}
	if step = a.Measured(0, 0.9); step.Action != core.Handle || g.StateAt(0).Shed.CPU != 0.9 {
		t.Errorf("%+v after a load of 0.9, which the gate takes for %v", step, g.StateAt(0).Shed.CPU)
	}
	if a.ReadCPU() != 1 || asked != 1 {
		t.Errorf("ReadCPU asks the protection's source %d times", asked)
	}
	a.Done(0, abate.Success)
	if _, step := arrive(g, 249*ms, inbound.Request{}); step.Action != core.Handle || asked != 1 {
		t.Errorf("asked %d times a quarter of a second later, %+v", asked, step)
	}
}

func TestAGateWithoutALimitForTheProcessorIsNotGivenItsLoad(t *testing.T) {
	g := gate(t, inbound.Protection{Shed: places(1, 1)})
	var a inbound.Arrival
	if step := g.Arrive(&a, 0, inbound.Request{Deadline: core.NoDeadline}); step.Action != core.Handle {
		t.Errorf("%+v", step)
	}
}

func TestOnlyListedPeersAreTrusted(t *testing.T) {
	g := gate(t, inbound.Protection{TrustedPeers: []string{"10.0.0.0/8", "127.0.0.1", "fd00::/8", "::ffff:192.0.2.0/120"}})
	for text, want := range map[string]bool{"10.1.2.3": true, "11.1.2.3": false, "127.0.0.1": true, "127.0.0.2": false,
		"::ffff:10.1.2.3": true, "fd00::1": true, "fe80::1%eth0": false, "192.0.2.7": true, "192.0.3.7": false} {
		if got := g.Trusts(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if gate(t, inbound.Protection{}).Trusts(netip.MustParseAddr("127.0.0.1")) {
		t.Error("nobody is to be trusted who is not listed")
	}
}

func TestKeysAreRememberedAcrossUpdates(t *testing.T) {
	p := inbound.Protection{Idempotency: idempotency.Config{Methods: []string{"POST"}}}
	g := gate(t, p)
	store, c, on := g.Idempotency()
	if !on || c.Lease == 0 {
		t.Fatalf("%v, %+v", on, c)
	}
	if begun, err := store.Begin(t.Context(), "k", idempotency.Fingerprint{}, time.Minute); err != nil ||
		begun.State != idempotency.Run {
		t.Fatalf("%+v, %v", begun, err)
	}
	p.Idempotency.Required = true
	if err := g.Update(p); err != nil {
		t.Fatal(err)
	}
	store, _, _ = g.Idempotency()
	if begun, err := store.Begin(t.Context(), "k", idempotency.Fingerprint{}, time.Minute); err != nil ||
		begun.State != idempotency.Running {
		t.Errorf("%+v, %v", begun, err)
	}
	if _, _, on := gate(t, inbound.Protection{}).Idempotency(); on {
		t.Error("keys are looked at although no methods are listed")
	}
}

func TestAnArrivalAllocatesNothing(t *testing.T) {
	p := inbound.DefaultProtection()
	p.RateLimit = limited(perSecond(1e9, 1e6))
	p.RateLimit.Key = "caller"
	g := gate(t, p)
	now := time.Duration(0)
	var a inbound.Arrival
	one := func() {
		now += ms
		a = inbound.Arrival{}
		if step := g.Arrive(&a, now, inbound.Request{Deadline: core.NoDeadline, Key: "tenant-1", Attempt: 1}); step.Action !=
			core.Handle {
			t.Fatalf("%+v", step)
		}
		a.Done(now+100*time.Microsecond, abate.Success)
	}
	if n := testing.AllocsPerRun(1000, one); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTheProcessorIsLookedAtBeforeTheOriginToo(t *testing.T) {
	asked := 0
	g := gate(t, inbound.Protection{Shed: shed.Config{CPU: 0.9}, CPU: func() float64 { asked++; return 0.1 }})
	for i := range 1000 { // as under testing/synctest, whose clock is years behind
		arrive(g, time.Duration(i)*ms-time.Hour, inbound.Request{})
	}
	if asked != 4 {
		t.Errorf("asked %d times in a second", asked)
	}
}

func TestDeadlinesBeforeTheOriginCountInTheQueue(t *testing.T) {
	for _, now := range []time.Duration{-time.Hour, -10 * ms} { // the deadline is before the origin, and at it
		g := gate(t, inbound.Protection{Shed: places(1, 5)})
		first, _ := arrive(g, now, inbound.Request{})
		var second inbound.Arrival
		if step := g.Arrive(&second, now, inbound.Request{Deadline: now + 10*ms}); step.Action != core.Queue {
			t.Fatalf("%+v", step)
		}
		woken := 0
		w := &shed.Waiter{Wake: func() { woken++ }}
		if step := second.Enqueue(now, w); step.Action != core.Queued || step.Until > now+10*ms {
			t.Fatalf("%+v", step)
		}
		first.Done(now+10*ms, abate.Success)
		if step := second.Woken(now+10*ms, w); woken != 1 || step.Action != core.Refuse ||
			second.Refusal().Shed != shed.Expired {
			t.Errorf("at %v: woken %d times, %+v, %+v", now, woken, step, second.Refusal())
		}
		if st := g.StateAt(now + 20*ms).Shed; st.InFlight != 0 || st.Queued != 0 {
			t.Errorf("at %v: %+v", now, st)
		}
	}
}

func TestARequestThatWakesUpTooLateIsNotHandled(t *testing.T) {
	g := gate(t, inbound.Protection{Shed: places(1, 5)})
	first, _ := arrive(g, 0, inbound.Request{})
	second, _ := arrive(g, 0, inbound.Request{Deadline: 10 * ms})
	w := &shed.Waiter{Wake: func() {}}
	second.Enqueue(0, w)
	first.Done(9*ms, abate.Success)
	step := second.Woken(10*ms, w)
	if r := second.Refusal(); step.Action != core.Refuse || step.Err != abate.ErrDeadline || r.Shed != shed.Expired {
		t.Errorf("%+v, %+v", step, r)
	}
	if st := g.StateAt(10 * ms).Shed; st.InFlight != 0 || st.Queued != 0 {
		t.Errorf("%+v", st)
	}
}

func TestSheddingThatIsSwitchedOnAgainKnowsWhatIsInFlight(t *testing.T) {
	on := inbound.Protection{Shed: places(2, 0)}
	on.Shed.NoQueue = true
	g := gate(t, on)
	if err := g.UpdateAt(0, inbound.Protection{}); err != nil {
		t.Fatal(err)
	}
	first, _ := arrive(g, 0, inbound.Request{})
	second, _ := arrive(g, 0, inbound.Request{})
	if st := g.StateAt(0).Shed; st != (shed.State{}) {
		t.Errorf("while it is off: %+v", st)
	}
	if err := g.UpdateAt(0, on); err != nil {
		t.Fatal(err)
	}
	if _, step := arrive(g, 0, inbound.Request{}); step.Action != core.Refuse {
		t.Errorf("a third one in two places: %+v", step)
	}
	first.Done(0, abate.Success)
	second.Done(0, abate.Success)
	if n := g.StateAt(0).Shed.InFlight; n != 0 {
		t.Errorf("%d in flight", n)
	}
}

func TestKeysThatAreToBeSharedAreNotKeptInTheMemoryOfEach(t *testing.T) {
	g := gate(t, inbound.Protection{Idempotency: idempotency.Config{Methods: []string{"POST"}, Fleet: true}})
	store, _, on := g.Idempotency()
	if !on {
		t.Fatal("keys are not looked at")
	}
	if b, err := store.Begin(t.Context(), "k", idempotency.Fingerprint{}, time.Minute); err == nil ||
		!strings.Contains(err.Error(), "Protection.Store") {
		t.Errorf("%+v, %v", b, err)
	}
}
