package abateprom_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/policy/throttle"
)

// gate makes one whose protection is adjusted, and adds it.
func (f fixture) gate(t testing.TB, name string, p inbound.Protection) *inbound.Gate {
	t.Helper()
	f.AdjustProtection(name, &p)
	g, err := inbound.NewGate(name, p)
	if err != nil {
		t.Fatal(err)
	}
	f.AddGate(g)
	return g
}

// gateObserver is what AdjustProtection sets in the protection of service.
func (f fixture) gateObserver(service string) inbound.GateObserver {
	var p inbound.Protection
	f.AdjustProtection(service, &p)
	return p.Observer
}

// once is a rate limit of one token.
var once = inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 1, Per: time.Hour}, Burst: 1}}

// one is a concurrency limit of one place and no queue.
var one = shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 1}

// arrive lets a request arrive, and refuses to queue.
func arrive(g *inbound.Gate, a *inbound.Arrival, now time.Duration, r inbound.Request) core.Step {
	step := g.Arrive(a, now, r)
	if step.Action == core.Measure {
		step = a.Measured(now, a.ReadCPU())
	}
	if step.Action == core.Queue {
		var w shed.Waiter
		w.Wake = func() {}
		if step = a.Enqueue(now, &w); step.Action == core.Queued {
			step = a.LeaveQueue(now, &w, context.Canceled)
		}
	}
	return step
}

func TestWhatAGateDoesIsCounted(t *testing.T) {
	m := metrics(t)
	g := m.gate(t, "orders", inbound.Protection{RateLimit: once, Timeout: time.Second})
	var first, second, late inbound.Arrival
	arrive(g, &first, 0, inbound.Request{Deadline: core.NoDeadline, Priority: shed.CriticalPlus, Key: "tenant"})
	first.Done(250*time.Millisecond, abate.Failure)
	arrive(g, &second, 0, inbound.Request{Deadline: core.NoDeadline, Key: "tenant"})
	arrive(g, &late, time.Second, inbound.Request{Deadline: time.Second, Priority: shed.Sheddable})
	m.fetch(t).want(t, map[string]float64{
		`rate_limit_allowed_total{service="orders"}`:                               1,
		`rate_limit_rejected_total{service="orders"}`:                              1,
		`abate_requests_admitted_total{priority="CRITICAL_PLUS",service="orders"}`: 1,
		`abate_requests_admitted_total{priority="CRITICAL",service="orders"}`:      0,
		`abate_requests_refused_total{reason="rate_limited",service="orders"}`:     1,
		`abate_requests_refused_total{reason="deadline",service="orders"}`:         1,
		`abate_requests_done_total{class="failure",service="orders"}`:              1,
		`abate_request_duration_seconds_bucket{service="orders",le="0.1"}`:         0,
		`abate_request_duration_seconds_bucket{service="orders",le="0.25"}`:        1,
		`abate_queue_delay_seconds_count{service="orders"}`:                        1,
		`shed_total{priority="SHEDDABLE",reason="expired",service="orders"}`:       1,
		`shed_total{priority="CRITICAL",reason="queue-full",service="orders"}`:     0,
		`abate_rate_limit_shadow_total{service="orders"}`:                          0,
		`abate_idempotency_total{result="replay",service="orders"}`:                0,
		`abate_requests_refused_total{reason="overloaded",service="orders"}`:       0,
		`abate_rate_limit_keys{service="orders"}`:                                  1,
	})
}

func TestShedRequestsAreCountedByReasonAndPriority(t *testing.T) {
	m := metrics(t)
	o := m.gateObserver("s")
	for i, reason := range shed.Reasons {
		for j, priority := range shed.Priorities {
			for range 10*i + j + 1 {
				o.ObserveGate(inbound.GateEvent{
					Kind: inbound.RequestRefused, Reason: abate.ErrOverloaded, Shed: reason, Priority: priority,
				})
			}
		}
	}
	p, total := m.scrape(t), 0.0
	for i, reason := range shed.Reasons {
		for j, priority := range shed.Priorities {
			p.want(t, map[string]float64{
				fmt.Sprintf(`shed_total{priority=%q,reason=%q,service="s"}`, priority, reason): float64(10*i + j + 1),
			})
			total += float64(10*i + j + 1)
		}
	}
	p.want(t, map[string]float64{`abate_requests_refused_total{reason="overloaded",service="s"}`: total})
	if n := len(p.of("shed_total")); n != len(shed.Reasons)*len(shed.Priorities) {
		t.Errorf("%d series", n)
	}
}

func TestAShadowRefusesNobody(t *testing.T) {
	m := metrics(t)
	limit, places := once, one
	limit.Shadow, places.Shadow = true, true
	g := m.gate(t, "s", inbound.Protection{RateLimit: limit, Shed: places})
	var all [3]inbound.Arrival
	for i := range all {
		if step := arrive(g, &all[i], 0, inbound.Request{Deadline: core.NoDeadline}); step.Action != core.Handle {
			t.Fatalf("request %d: %+v", i, step)
		}
	}
	m.gateObserver("s").ObserveGate(inbound.GateEvent{
		Kind: inbound.RequestRefused, Reason: abate.ErrOverloaded, Shed: shed.CPU, Shadow: true,
	})
	p := m.scrape(t)
	p.want(t, map[string]float64{
		`rate_limit_allowed_total{service="s"}`: 3, `rate_limit_rejected_total{service="s"}`: 0,
		`abate_rate_limit_shadow_total{service="s"}`:                     2,
		`abate_requests_admitted_total{priority="CRITICAL",service="s"}`: 3,
		`abate_shed_shadow_total{reason="cpu",service="s"}`:              1,
	})
	for name, v := range p.of("shed_total") {
		if v != 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
	for name, v := range p.of("abate_requests_refused_total") {
		if v != 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
}

func TestRefusalsNobodyKnowsAreCountedAsOther(t *testing.T) {
	m := metrics(t)
	o := m.gateObserver("s")
	o.ObserveGate(inbound.GateEvent{Kind: inbound.RequestRefused, Reason: errDown, Shed: 200, Priority: 100})
	o.ObserveGate(inbound.GateEvent{Kind: inbound.RequestRefused, Reason: context.Canceled})
	o.ObserveGate(inbound.GateEvent{Kind: inbound.RequestRefused, Shed: 200, Shadow: true})
	o.ObserveGate(inbound.GateEvent{Kind: inbound.RequestAdmitted, Priority: -100})
	o.ObserveGate(inbound.GateEvent{Kind: inbound.KeyDecided, Detail: "a new one"})
	o.ObserveGate(inbound.GateEvent{Kind: 200})
	m.scrape(t).want(t, map[string]float64{
		`abate_requests_refused_total{reason="other",service="s"}`:        1,
		`abate_requests_refused_total{reason="caller_left",service="s"}`:  1,
		`abate_requests_admitted_total{priority="SHEDDABLE",service="s"}`: 1,
		`abate_idempotency_total{result="other",service="s"}`:             1,
	})
}

func TestKeysAreCountedByWhatBecameOfThem(t *testing.T) {
	m := metrics(t)
	g := m.gate(t, "s", inbound.Protection{})
	for i, result := range []string{
		"run", "replay", "running", "mismatch", "taken-over", "missing", "full", "away", "lost",
	} {
		for range i + 1 {
			g.KeyDecided(result)
		}
		m.scrape(t).want(t, map[string]float64{
			fmt.Sprintf(`abate_idempotency_total{result=%q,service="s"}`, result): float64(i + 1),
		})
	}
	m.scrape(t).want(t, map[string]float64{`abate_idempotency_total{result="other",service="s"}`: 0})
}

func TestTheStateOfAGateIsReadAtTheScrape(t *testing.T) {
	m := metrics(t)
	g := m.gate(t, "s", inbound.Protection{Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 7, CPU: 0.9},
		CPU: func() float64 {
			return 0.5
		}})
	var running inbound.Arrival
	arrive(g, &running, 0, inbound.Request{Deadline: core.NoDeadline})
	p := m.scrape(t)
	p.want(t, map[string]float64{
		`abate_concurrency_limit{service="s"}`: 7, `abate_concurrency_running{service="s"}`: 1,
		`abate_concurrency_queued{service="s"}`:   0,
		`abate_arriving_retry_ratio{service="s"}`: 0,
	})
	if len(p.of("abate_shed_cpu_ratio")) != 1 {
		t.Error("the processor is looked at and not shown")
	}
	running.Done(0, abate.Success)
	m.scrape(t).want(t, map[string]float64{`abate_concurrency_running{service="s"}`: 0})
	if err := g.Update(inbound.Protection{}); err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{"abate_concurrency_limit", "abate_concurrency_running", "abate_concurrency_queued",
		"abate_arriving_retry_ratio",
		"abate_shed_cpu_ratio", "abate_rate_limit_keys", "abate_rate_limit_shared_total"} {
		if got := m.scrape(t).of(metric); len(got) != 0 {
			t.Errorf("what is switched off is shown: %v", got)
		}
	}
}

// TestAGateAndAGuardOfOneNameDoNotMeet: a service is often called and protected under the same name.
func TestAGateAndAGuardOfOneNameDoNotMeet(t *testing.T) {
	m := metrics(t)
	m.gate(t, "s", inbound.Protection{RateLimit: once, Shed: one})
	p := abate.Policy{Throttle: throttle.Config{K: 2}}
	p.RateLimit.Config = ratelimit.Config{Limit: ratelimit.Rate{Tokens: 30, Per: time.Minute}}
	m.guard(t, "s", p)
	m.scrape(t).want(t, map[string]float64{ // fails if a series is there twice
		`abate_attempt_rate_limit{service="s"}`: 0.5, `abate_throttle_rejection_ratio{service="s"}`: 0,
		`abate_concurrency_limit{service="s"}`: 1,
	})
}

func TestAGuardsOwnLimitsAreReasonsToo(t *testing.T) {
	m := metrics(t)
	p := abate.Policy{}
	p.RateLimit.Config = once.Config
	g := m.guard(t, "s", p)
	for range 2 {
		_ = play(g, 0, func(int) abate.Outcome { return abate.Outcome{} })
	}
	m.observer("s").Observe(abate.Event{Kind: core.CallEnded, Reason: abate.ErrThrottled})
	m.scrape(t).want(t, map[string]float64{
		`abate_call_refusals_total{reason="rate_limited",service="s"}`: 1,
		`abate_call_refusals_total{reason="throttled",service="s"}`:    1,
	})
}

func TestAdjustProtectionGivesEqualObserversToOneService(t *testing.T) {
	m, other := metrics(t), &gateTally{}
	adjusted := func(service string, before inbound.GateObserver) inbound.GateObserver {
		p := inbound.Protection{Observer: before}
		m.AdjustProtection(service, &p)
		m.AdjustProtection(service, &p)
		return p.Observer
	}
	for name, before := range map[string]inbound.GateObserver{
		"alone": nil, "with another": other, "after other metrics": metrics(t).gateObserver("a"),
	} {
		first, second := adjusted("a", before), adjusted("a", before)
		if !reflect.ValueOf(first).Comparable() || first != second {
			t.Errorf("%s: %v and %v differ", name, first, second)
		}
		if adjusted("b", before) == first {
			t.Errorf("%s: another service has the same", name)
		}
	}
	both := adjusted("c", other)
	both.ObserveGate(inbound.GateEvent{Kind: inbound.RequestDone})
	m.scrape(t).want(t, map[string]float64{`abate_requests_done_total{class="success",service="c"}`: 1})
	if other.events != 1 {
		t.Errorf("the observer before ours heard of %d events", other.events)
	}
}

type gateTally struct{ events int }

func (o *gateTally) ObserveGate(inbound.GateEvent) { o.events++ }

func TestRedisIsCountedByCommand(t *testing.T) {
	m := metrics(t)
	m.ObserveRedis("take", 15*time.Millisecond, nil)
	m.ObserveRedis("take", 20*time.Millisecond, errDown)
	m.ObserveRedis("begin", time.Millisecond, nil)
	m.RedisFallback("rateLimit")
	m.RedisFallback("rateLimit")
	m.scrape(t).want(t, map[string]float64{
		`abate_redis_duration_seconds_count{op="take"}`:            2,
		`abate_redis_duration_seconds_bucket{op="take",le="0.01"}`: 0,
		`abate_redis_duration_seconds_bucket{op="take",le="0.02"}`: 2,
		`abate_redis_errors_total{op="take"}`:                      1,
		`abate_redis_errors_total{op="begin"}`:                     0,
		`abate_redis_fallback_total{what="rateLimit"}`:             2,
	})
	for i := range 1_000 {
		m.ObserveRedis(fmt.Sprint("op-", i), 0, nil)
		m.RedisFallback(fmt.Sprint("what-\xff", i))
	}
	p := m.scrape(t)
	p.want(t, map[string]float64{
		`abate_redis_errors_total{op="other"}`: 0, `abate_redis_fallback_total{what="other"}`: 1_000 - 99,
	})
	if n := len(p.of("abate_redis_errors_total")); n != 101 {
		t.Errorf("%d commands", n)
	}
}

func TestRedisIsCountedByManyAtOnce(t *testing.T) {
	m := metrics(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				m.ObserveRedis(fmt.Sprint("op-", i%20), time.Millisecond, errDown)
			}
		})
	}
	all.Wait()
	for i := range 20 {
		m.scrape(t).want(t, map[string]float64{fmt.Sprintf(`abate_redis_errors_total{op="op-%d"}`, i): 80})
	}
}

// gateEvents are one of each kind.
var gateEvents = []inbound.GateEvent{
	{Kind: inbound.LimitDecided, Over: true},
	{Kind: inbound.RequestAdmitted, Delay: time.Millisecond},
	{Kind: inbound.RequestRefused, Reason: abate.ErrOverloaded, Shed: shed.QueueDelay},
	{Kind: inbound.RequestDone, Class: abate.Failure, Latency: time.Second},
	{Kind: inbound.KeyDecided, Detail: "lost"},
}

func TestCountingAtAGateAllocatesNothing(t *testing.T) {
	m := metrics(t)
	o := m.gateObserver("s")
	for _, e := range gateEvents {
		if n := testing.AllocsPerRun(100, func() { o.ObserveGate(e) }); n != 0 {
			t.Errorf("%v allocates %v times", e.Kind, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		m.ObserveRedis("take", time.Millisecond, errDown)
		m.RedisFallback("limit")
	}); n != 0 {
		t.Errorf("Redis allocates %v times", n)
	}
}

func BenchmarkObserveGate(b *testing.B) {
	o := metrics(b).gateObserver("s")
	for _, e := range gateEvents {
		b.Run(e.Kind.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o.ObserveGate(e)
			}
		})
	}
}

// FuzzGateNames: whatever a service, a command or a result is called, the page can be read.
func FuzzGateNames(f *testing.F) {
	f.Add("orders", "take", "run", byte(1), byte(2), byte(3))
	f.Add("\xff\xfe", "\xff", "", byte(200), byte(255), byte(128))
	f.Fuzz(func(t *testing.T, service, op, detail string, kind, why, priority byte) {
		m := metrics(t)
		m.gate(t, "g"+service, inbound.Protection{RateLimit: once, Shed: one})
		m.gateObserver(service).ObserveGate(inbound.GateEvent{
			Kind: inbound.GateEventKind(kind), Shed: shed.Reason(why), Priority: shed.Priority(priority), Detail: detail,
		})
		m.gateObserver(service).ObserveGate(inbound.GateEvent{
			Kind: inbound.RequestRefused, Shed: shed.Reason(why), Priority: shed.Priority(priority), Class: abate.Class(kind),
		})
		for _, name := range []string{op, op + "\xff", op + "\xfe"} {
			m.ObserveRedis(name, time.Duration(priority), errors.New(strings.Clone(detail)))
			m.RedisFallback(name)
		}
		if _, err := m.registry.Gather(); err != nil {
			t.Errorf("%q %q: %v", service, op, err)
		}
	})
}
