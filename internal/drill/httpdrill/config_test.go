package httpdrill_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/drill/httpdrill"
	"github.com/abate-go/abate/policyfile"
)

func TestDefaultDrillShowsAStorm(t *testing.T) {
	c := httpdrill.Default()
	if found := c.Problems(); len(found) > 0 {
		t.Errorf("problems: %q", found)
	}
	if found := c.Notes(); len(found) > 0 {
		t.Errorf("notes: %q", found)
	}
	if !slices.Equal(c.Acts, []string{"unguarded", "guarded"}) {
		t.Errorf("acts %q", c.Acts)
	}
	if s := c.Scenario; len(c.Acts)*int(s.WarmUp+s.Duration+s.Model.Drain) > int(51*time.Second) {
		t.Errorf("both acts take %v", 2*(s.WarmUp+s.Duration+s.Model.Drain))
	}
}

func TestBothBuiltInActsWaitAndRetryAlike(t *testing.T) {
	c := httpdrill.Default()
	for i := range c.Scenario.Variants {
		v := &c.Scenario.Variants[i]
		p, db := v.PolicyOf("checkout", "payment-service"), v.PolicyOf("payment-service", "payment-db")
		if p.AttemptTimeout != time.Second || p.MaxRetries != 3 || db.AttemptTimeout != 500*time.Millisecond ||
			db.MaxRetries != 0 {
			t.Errorf("%s: clients wait %v and retry %d times, the service %v and %d times", v.Name, p.AttemptTimeout,
				p.MaxRetries, db.AttemptTimeout, db.MaxRetries)
		}
	}
}

func TestTheDrillRefusesWhatItDoesNotPlay(t *testing.T) {
	tests := []struct {
		name     string
		from, to string
		want     string
	}{
		{"a poll of users", "rate: 40, arrivals: jittered", "users: 40, think: 1s",
			"clients.shop: the drill supports an open loop with a rate; use abate sim"},
		{"a curve", "rate: 40, arrivals: jittered", "curve: [{at: 0s, rate: 40}]",
			"clients.shop.curve: the drill supports a constant rate"},
		{"a daily shape", "rate: 40,", "rate: 40, daily: {swing: 40%},",
			"clients.shop.daily: the drill supports a constant rate"},
		{"a high rate", "rate: 40,", "rate: 40000,", "clients.shop.rate: 4e+04 is out of range; the drill supports " +
			"20 to 5000 requests per second"},
		{"a low rate", "rate: 40,", "rate: 4,", "clients.shop.rate: 4 is out of range"},
		{"many instances", "instances: 10", "instances: 10000",
			"clients.shop.instances: 10000 is out of range; the drill supports at most 1000"},
		{"two fleets", "clients: {", "clients: {b: {rate: 40, calls: [pay]}, ", "clients: 2 fleets; the drill supports one"},
		{"a slow network", "calls: [pay]", "calls: [{to: pay, latency: 5ms}]",
			"clients.shop.calls.pay.latency: the drill supports this machine's own network"},
		{"many calls", "calls: [pay]", "calls: [{to: pay, times: 3}]",
			"clients.shop.calls.pay: the drill supports one call per request"},
		{"some calls", "calls: [db]", "calls: [{to: db, share: 50%}]",
			"services.pay.calls.db: the drill supports one call per request"},
		{"optional calls", "calls: [db]", "calls: [{to: db, optional: true}]",
			"services.pay.calls.db.optional: the drill supports calls that the request needs"},
		{"a pool", "calls: [db]", "calls: [{to: db, pool: 3}]",
			"services.pay.calls.db.pool: the drill supports connections without a limit"},
		{"replicas behind", "db: {}", "db: {replicas: 2}",
			"services.db.replicas: the drill supports one replica of the service behind the one that the clients call"},
		{"many replicas", "workers: 3,", "workers: 3, replicas: 51,",
			"services.pay.replicas: 51 is out of range; the drill supports at most 50"},
		{"a look at queues", "workers: 3,", "workers: 3, replicas: 2, balancing: least-queue,",
			"services.pay.balancing: the drill supports replicas that are chosen without a look at their queues"},
		{"another choice", "calls: [pay]", "calls: [{to: pay, else: [db]}]",
			"clients.shop.calls.pay.else: the drill supports calls that nobody is asked for instead"},
		{"probes", "workers: 3,", "workers: 3, probes: {liveness: {period: 5s}},",
			"services.pay: the drill supports replicas that stay as they are"},
		{"a service that gets slower", "workers: 3,", "workers: 3, slowsDown: 0.1,", "services.pay.slowsDown: "},
		{"an endless queue", "queue: {limit: 150}, ", "",
			"services.pay.queue: the drill supports a queue with a limit of at most 1000000, or none"},
		{"a queue bounded by work", "{limit: 150}", "{work: 1s}", "services.pay.queue"},
		{"a silent queue", "{limit: 150}", "{limit: 150, whenFull: silence}", "services.pay.queue.whenFull: "},
		{"the newest first", "{limit: 150}", "{limit: 150, order: lifo}", "services.pay.queue.order: "},
		{"deadlines", "{limit: 150}", "{limit: 150, dropExpired: true}", "services.pay.queue.dropExpired: "},
		{"consumers", "rate: 40,", "rate: 40, topic: {partitions: 40},",
			"clients.shop.topic: the drill supports callers, not consumers; abate drill kafka runs those"},
		{"a lock", "workers: 3,", "workers: 3, optimisticLock: true,", "services.pay.optimisticLock: "},
		{"half a second of Retry-After", "workers: 3,", "workers: 3, retryAfter: 1500ms,",
			"services.pay.retryAfter: the drill supports whole seconds"},
		{"no workers", "workers: 3, serviceTime: 50ms, queue: {limit: 150}", "serviceTime: 50ms", "services.pay.workers: "},
		{"workers behind", "db: {}", "db: {workers: 3, serviceTime: 1ms}", "services.db.workers: "},
		{"a chain", "db: {}", "db: {calls: [x]}\n  x: {}",
			"services: 3; the drill supports the service that the clients call and at most one behind it"},
		{"another fault", "outage: db, mode: blackhole", "loss: db, rate: 50%",
			"faults[0]: loss of db: the drill supports outage, slowdown and errors of a service"},
		{"a zone", "db: {}\nfaults:\n  - {at: 1s,", "db: {zones: [a]}\nfaults:\n  - {zone: a, at: 1s,",
			"faults[0].zone: the drill supports faults without a zone"},
		{"no time before", "at: 1s", "at: 200ms", "faults: 200ms before the first; the drill needs at least 1s"},
		{"no time after", "for: 1500ms", "for: 2500ms", "faults: 1s after the last; the drill needs at least 2s"},
		{"an hour", "duration: 4500ms", "duration: 1h", "duration: 1h0m0s is out of range; the drill supports at most 10m0s"},
		{"a long warm-up", "warmUp: 200ms", "warmUp: 5m", "warmUp: 5m0s is out of range"},
		{"a long drain", "drain: 300ms", "drain: 5m", "model.drain: 5m0s is out of range"},
		{"cancellation", "drain: 300ms", "drain: 300ms, cancellation: propagates", "model.cancellation: "},
		{"draws on arrival", "drain: 300ms", "drain: 300ms, serviceTimeDrawn: arrival", "model.serviceTimeDrawn: "},
		{"more than the service can do", "rate: 40,", "rate: 58,",
			"clients.shop.rate: 58/s is more than nine tenths of what pay can do (3 workers / 50ms = 60/s)"},
		{"a service that is slow by nature", "workers: 3, serviceTime: 50ms", "workers: 30, serviceTime: 350ms",
			"services.pay.serviceTime: 350ms is not below the attemptTimeout of 300ms in storm"},
		{"too many attempts", "rate: 40, arrivals: jittered", "rate: 2000, arrivals: even",
			"clients.shop.rate: 2000/s × 4 attempts in storm is more than the 5000 attempts per second"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := drillOf(t, read(t, small, tt.from, tt.to))
			found := c.Problems()
			if !slices.ContainsFunc(found, func(p string) bool { return strings.HasPrefix(p, "small.yaml: "+tt.want) }) {
				t.Errorf("problems %q, want one that begins %q", found, tt.want)
			}
			if _, err := httpdrill.Run(t.Context(), c); err == nil {
				t.Error("Run accepted it")
			}
		})
	}
	if found := drillOf(t, read(t, small)).Problems(); len(found) > 0 {
		t.Errorf("problems of what it does run: %q", found)
	}
}

func TestScaledScenariosAreRefused(t *testing.T) {
	s := read(t, small)
	s.Scale = 2
	if found := httpdrill.New(s).Problems(); len(found) != 1 ||
		!strings.HasPrefix(found[0], "small.yaml: scale: 2; the drill runs everything at full size") {
		t.Errorf("problems %q", found)
	}
}

func TestAllProblemsAreFoundAtOnce(t *testing.T) {
	s := read(t, small)
	s.Services[0].SlowsDown, s.Services[0].OptimisticLock, s.Clients[0].Instances, s.Duration, s.Faults = 3, true, 1e6,
		time.Hour, nil
	found := drillOf(t, s).Problems()
	if len(found) != 5 {
		t.Errorf("%d problems, want 5: %q", len(found), found)
	}
}

func ptr[T any](v T) *T { return &v }

func TestChangesThatAreWrongNameTheFlag(t *testing.T) {
	second := time.Second
	tests := []struct {
		name   string
		change httpdrill.Changes
		want   string
	}{
		{"no capacity", httpdrill.Changes{Capacity: ptr(0)}, "--capacity: 0 is out of range; allowed: 1 to 10000"},
		{"negative rate", httpdrill.Changes{Rate: ptr(-5.0)}, "--rate: -5 is out of range"},
		{"rate is no number", httpdrill.Changes{Rate: ptr(math.NaN())}, "--rate: NaN is out of range"},
		{"endless rate", httpdrill.Changes{Rate: ptr(math.Inf(1))},
			"--rate: +Inf is out of range; allowed: 20 to 5000 requests per second"},
		{"no clients", httpdrill.Changes{Clients: ptr(0)}, "--clients: 0"},
		{"no queue", httpdrill.Changes{Queue: ptr(0)}, "--queue: 0"},
		{"huge queue", httpdrill.Changes{Queue: ptr(math.MaxInt)}, "--queue: "},
		{"no service time", httpdrill.Changes{ServiceTime: ptr(0 * second)}, "--service-time: 0s is out of range"},
		{"no time before", httpdrill.Changes{Before: ptr(0 * second)}, "--before: 0s"},
		{"negative outage", httpdrill.Changes{Outage: ptr(-second)}, "--outage: -1s"},
		{"outage of a day", httpdrill.Changes{Outage: ptr(24 * time.Hour)},
			"--outage: 24h0m0s is out of range; allowed: 500ms to 10m0s"},
		{"no time after", httpdrill.Changes{After: ptr(second)}, "--after: 1s"},
		{"more within than after", httpdrill.Changes{Within: ptr(time.Minute)},
			"--within: 1m0s is out of range; allowed: 1s to 14s"},
		{"no answer in time", httpdrill.Changes{ServiceTime: ptr(second), Capacity: ptr(1000)},
			"quickstart.yaml: services.payment-service.serviceTime: 1s is not below the attemptTimeout of 1s"},
		{"more load than capacity", httpdrill.Changes{Rate: ptr(390.0)},
			"quickstart.yaml: clients.checkout.rate: 390/s is more than nine tenths"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := httpdrill.Default()
			found := c.Change(tt.change)
			if len(found) == 0 || !strings.HasPrefix(found[0], tt.want) {
				t.Errorf("problems %q, want first one that begins %q", found, tt.want)
			}
		})
	}
}

func TestChangesReachTheScenario(t *testing.T) {
	c := httpdrill.Default()
	found := c.Change(httpdrill.Changes{
		Rate: ptr(30.0), Clients: ptr(3), Capacity: ptr(5), ServiceTime: ptr(20 * time.Millisecond), Queue: ptr(400),
		Before: ptr(2 * time.Second), Outage: ptr(3 * time.Second), After: ptr(3 * time.Second),
	})
	if len(found) > 0 {
		t.Fatal(found)
	}
	s := c.Scenario
	x, f := s.Services[0], s.Faults[0]
	if s.Clients[0].Rate != 30 || s.Clients[0].Instances != 3 || x.Workers != 5 ||
		x.ServiceTime.Mean() != 20*time.Millisecond || x.Queue.Limit != 400 {
		t.Errorf("clients %+v, service %+v", s.Clients[0], x)
	}
	if f.At != 2*time.Second || f.For != 3*time.Second || s.Duration != 8*time.Second {
		t.Errorf("fault %+v of %v", f, s.Duration)
	}
	if text := c.Guarded().Expect[1].Text; text != "recovery < 3s in 90% of runs" { // there is no more time
		t.Errorf("expected: %s", text)
	}
	if found := c.Change(httpdrill.Changes{Within: ptr(2 * time.Second)}); len(found) > 0 ||
		c.Guarded().Expect[1].Value != 2 {
		t.Errorf("%q, expected %+v", found, c.Guarded().Expect[1])
	}
}

func TestWithinIsExpectedOfTheGuardedActAlone(t *testing.T) {
	c := drillOf(t, read(t, small))
	if found := c.Change(httpdrill.Changes{Within: ptr(time.Second)}); len(found) > 0 {
		t.Fatal(found)
	}
	storm, guarded := c.Scenario.Variants[0].Expect, c.Scenario.Variants[1].Expect
	if len(storm) != 1 || len(guarded) != 2 || guarded[1].Value != 1 || guarded[1].Measure != "recovery" {
		t.Errorf("expected of the storm: %v, of the guarded: %v", storm, guarded)
	}
}

func TestMomentsOfSeveralFaultsAreNotChanged(t *testing.T) {
	s := read(t, small, "mode: blackhole}", "mode: blackhole}\n  - {at: 1500ms, for: 1s, errors: pay, rate: 10%}")
	c := drillOf(t, s)
	found := c.Change(httpdrill.Changes{Outage: ptr(time.Second)})
	if len(found) != 1 || found[0] != "--outage: the scenario has 2 faults, not one; change it there" {
		t.Errorf("problems %q", found)
	}
}

func TestNotesTellWhenNoStormIsToBeExpected(t *testing.T) {
	c := httpdrill.Default()
	if found := c.Change(httpdrill.Changes{Rate: ptr(90.0), Queue: ptr(100)}); len(found) > 0 {
		t.Fatal(found)
	}
	notes := strings.Join(c.Notes(), "\n")
	for _, want := range []string{"within the capacity of 400/s", "a full queue is 0.3 s of work"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q: %s", want, notes)
		}
	}
}

func TestPolicyOfTheUserIsPlayedAsItIs(t *testing.T) {
	tests := []struct{ name, yaml, note string }{
		{"complete", "services: {payment-service: {attemptTimeout: 1s}}", ""},
		{"another service", "defaults: {attemptTimeout: 1s}\nservices: {other: {maxRetries: 1}}",
			"my.yaml does not list payment-service"},
		{"no timeout", "services: {payment-service: {maxRetries: 1}}", "sets no attemptTimeout"},
		{"fallback", "services: {payment-service: {attemptTimeout: 1s, fallback: {status: 200}}}",
			"a degraded answer is not goodput"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := httpdrill.Default()
			file, err := policyfile.Parse("my.yaml", []byte(tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			if found := c.Change(httpdrill.Changes{Policy: file}); len(found) > 0 {
				t.Fatal(found)
			}
			notes := strings.Join(c.Notes(), "\n")
			if (tt.note == "") != (notes == "") || !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
			want, _ := file.Policy("payment-service")
			v := c.Guarded()
			if got := v.PolicyOf("checkout", "payment-service"); got.AttemptTimeout != want.AttemptTimeout ||
				got.MaxRetries != want.MaxRetries || !got.CircuitBreaker.Enabled() {
				t.Errorf("clients follow %+v", got)
			}
			if got := v.PolicyOf("payment-service", "payment-db"); got.AttemptTimeout != 500*time.Millisecond {
				t.Errorf("the service waits %v for its database", got.AttemptTimeout)
			}
			if other := c.Scenario.Variants[0].PolicyOf("checkout", "payment-service"); other.CircuitBreaker.Enabled() {
				t.Error("the unguarded act follows it, too")
			}
		})
	}
}

func TestBuiltInPolicyIsAFileOfItsOwn(t *testing.T) {
	text := httpdrill.QuickstartPolicy()
	file, err := policyfile.Parse("printed.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	p, listed := file.Policy("payment-service")
	built := httpdrill.Default().Guarded().PolicyOf("checkout", "payment-service")
	if !listed || string(p.Format("x")) != string(built.Format("x")) {
		t.Errorf("it is another one:\n%s", text)
	}
	// Nobody tuned it: but for what only the owner of a service knows, it is the default.
	byDefault := policyfile.DefaultPolicy()
	byDefault.AttemptTimeout = time.Second
	if string(built.Format("x")) != string(byDefault.Format("x")) {
		t.Errorf("the guarded act has a policy of its own:\n%s", built.Format("x"))
	}
	if !strings.HasPrefix(text, "services:\n  payment-service:\n") ||
		!strings.Contains(text, "# as long as the unguarded clients wait; all else is the default") {
		t.Errorf("it is not as written:\n%s", text)
	}
}

func TestIntroShowsTheArithmetic(t *testing.T) {
	var out strings.Builder
	httpdrill.Default().Intro(&out)
	for _, want := range []string{"20 workers / 50ms = 400", "250/s × 4 = 1,000/s", "payment-db is down for 5 s"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("the introduction lacks %q:\n%s", want, out.String())
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines > 10 {
		t.Errorf("the introduction has %d lines", lines)
	}
}
