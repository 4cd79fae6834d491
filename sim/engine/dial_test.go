package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// guarded is world with a policy for connections, called c.
func guarded(policy, connections string, lines ...string) string {
	return strings.TrimSuffix(world(policy, lines...), "}}}\n") + ", services: {c: {" + connections + "}}}}}\n"
}

// evenly is a policy for connections that opens ten a second, and nothing else.
const evenly = "retryBudget: {disabled: true}, circuitBreaker: {disabled: true}, maxRetries: 0, pacing: {perSecond: " +
	"10, jitter: 0.001, maxWait: 10s}"

func TestConnectionsAreOpenedUnderTheirOwnPolicy(t *testing.T) {
	const clients = "clients: {f: {once: 3, calls: [{to: s, pool: 3, connect: c}]}}"
	const service = "services: {s: {serviceTime: 10ms, connections: {max: 9, cost: 5ms}}}"
	r := run(t, guarded(plain, evenly, clients, service))
	wantEnds(t, r, "3 answered")
	sum, largest := latencies(r)
	// 15 ms each, and the second and third wait for 100 ms and 200 ms
	within(t, "sum of latencies", sum.Seconds(), 0.3445, 0.3455)
	within(t, "largest latency", largest.Seconds(), 0.2145, 0.2155)
	s := service1(t, r)
	equal(t, "attempts to connect", total(s.Connects), 3)
	equal(t, "refused", total(s.Unopened), 0)
	equal(t, "most in 100 ms", value(t, r, "connectPeak(s) < 9"), 2)
	equal(t, "connects(s)", value(t, r, "connects(s) < 9/s"), 0.3)
}

func TestAnIdleConnectionNeedsNoTurn(t *testing.T) {
	r := run(t, guarded(plain, evenly, "clients: {f: {once: 40, within: 2s, calls: [{to: s, pool: 3, connect: c}]}}",
		"services: {s: {serviceTime: 10ms}}"))
	wantEnds(t, r, "40 answered")
	_, largest := latencies(r)
	equal(t, "largest latency", largest, 10*ms)
	equal(t, "attempts to connect", total(service1(t, r).Connects), 1)
}

func TestWithoutAPolicyForThemConnectionsAreOpenedAsBefore(t *testing.T) {
	text := world(plain, "clients: {f: {rate: 100, instances: 3, calls: [{to: s, pool: 4, latency: 1ms}]}}",
		"services: {s: {workers: 4, serviceTime: exponential 20ms, connections: {max: 20, cost: 1ms}}}",
		"faults: [{at: 5s, for: 1s, restart: s}]")
	want := hash(t, run(t, text))
	with := strings.Replace(text, "pool: 4", "pool: 4, connect: c", 1)
	with = strings.TrimSuffix(with, "}\n") + ", other: {policy: {services: {c: {preset: connections}}}}}\n"
	if got := hash(t, playVariant(t, read(t, with), 0, 1)); got != want {
		t.Errorf("the run is another one: %s, want %s", got, want)
	}
	if got := hash(t, playVariant(t, read(t, with), 1, 1)); got == want {
		t.Error("with a policy the run is the same: the test shows nothing")
	}
}

// A refused connection is tried again by the policy for connections, and by no other.
func TestARefusedConnectionIsTriedAgainByItsOwnPolicy(t *testing.T) {
	const twice = "retryBudget: {disabled: true}, circuitBreaker: {disabled: true}, maxRetries: 1, backoff: fixed, " +
		"jitter: none, initialDelay: 100ms"
	r := run(t, guarded(thrice("10ms"), twice, "clients: {f: {once: 4, calls: [{to: s, pool: 4, connect: c}]}}",
		"services: {s: {serviceTime: 1s, connections: {max: 1}}}"))
	wantEnds(t, r, "1 answered, 3 no-connection")
	equal(t, "attempts of calls", edge(t, r, "f", "s").Attempts, 4)
	equal(t, "attempts to connect", total(service1(t, r).Connects), 7)
	equal(t, "refused", total(service1(t, r).Unopened), 6)
	equal(t, "unopened(s)", value(t, r, "unopened(s) < 9"), 6)
	equal(t, "connectPeak(s)", value(t, r, "connectPeak(s) < 9"), 4)
}

func TestAnOpenCircuitForConnectionsRefusesRequestsThatNeedOne(t *testing.T) {
	const once = "maxRetries: 0, circuitBreaker: {disabled: false, failureThreshold: 1, waitDurationInOpenState: 1h, " +
		"maxWaitDurationInOpenState: 1h}"
	r := run(t, guarded(thrice("10ms"), once, "clients: {f: {once: 5, within: 500ms, calls: [{to: s, pool: 4, connect: "+
		"c}]}}", "services: {s: {serviceTime: 1s, connections: {max: 1}}}"))
	wantEnds(t, r, "1 answered, 1 no-connection, 3 circuit-open")
	equal(t, "attempts to connect", total(service1(t, r).Connects), 2)
	equal(t, "attempts of calls", edge(t, r, "f", "s").Attempts, 5)
}

func TestATurnThatIsTooFarAwayIsARefusal(t *testing.T) {
	short := strings.Replace(evenly, "maxWait: 10s", "maxWait: 150ms", 1)
	r := run(t, guarded(plain, short, "clients: {f: {once: 4, calls: [{to: s, pool: 4, connect: c}]}}",
		"services: {s: {serviceTime: 1s}}"))
	wantEnds(t, r, "2 answered, 2 attempts-limited")
}

func TestAnAttemptToConnectHasATimeoutOfItsOwn(t *testing.T) {
	const impatient = "attemptTimeout: 50ms, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}, " +
		"maxRetries: 1, backoff: fixed, jitter: none, initialDelay: 100ms"
	r := run(t, guarded(plain, impatient, "clients: {f: {once: 1, calls: [{to: s, pool: 4, connect: c}]}}",
		"services: {s: {serviceTime: 1ms, connections: {max: 10, cost: 120ms, cores: 2}}}"))
	wantEnds(t, r, "1 timed-out")
	s := service1(t, r)
	equal(t, "attempts to connect", total(s.Connects), 2)
	// the first is done, for nobody, before the second begins
	equal(t, "connections while they are made", slices.Max(s.Conns), 1)
	equal(t, "connections at the end", s.Conns[len(s.Conns)-1], 0)
}

// Who connects when its time is up leaves nothing behind; who could not be in time does not begin to wait.
func TestARequestThatGivesUpGivesUpItsConnection(t *testing.T) {
	for name, c := range map[string]struct {
		connections, service, ends string
		open                       uint32
	}{
		"while it connects": {plain, "serviceTime: 1ms, connections: {cost: 200ms, cores: 9}", "3 timed-out", 0},
		"before it waits for a turn": {strings.Replace(evenly, "perSecond: 10,", "perSecond: 1,", 1), "serviceTime: 1ms",
			"1 answered, 2 attempts-limited", 1},
		"before it waits for a retry": {
			thrice("1s"), "serviceTime: 1ms, connections: {max: 1}", "1 answered, 2 no-connection", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, guarded(plain+", attemptTimeout: 100ms", c.connections,
				"clients: {f: {once: 3, calls: [{to: s, pool: 9, connect: c}]}}", "services: {s: {"+c.service+"}}"))
			wantEnds(t, r, c.ends)
			s := service1(t, r)
			equal(t, "connections at the end", s.Conns[len(s.Conns)-1], c.open)
		})
	}
}

// A restart breaks all connections. The guards open their circuits, and let connections back slowly when it is over.
func TestAfterARestartConnectionsComeBackAtThePace(t *testing.T) {
	lines := []string{"duration: 20s", "clients: {f: {users: 200, think: 50ms, instances: 10, calls: [{to: s, pool: 20, " +
		"connect: c, latency: 100us}]}}",
		"services: {s: {workers: 4, serviceTime: 1ms, connections: {max: 100, cost: 3ms, cores: 2}}}",
		"faults: [{at: 8s, for: 2s, restart: s}]"}
	naive := run(
		t, world(plain, slices.Concat(lines[:1], []string{strings.Replace(lines[1], "connect: c, ", "", 1)}, lines[2:])...))
	paced := run(t, guarded(plain, "preset: connections", lines...))
	n, p := service1(t, naive), service1(t, paced)
	if a, b := between(naive, n.Connects, 8*time.Second, 20*time.Second),
		between(paced, p.Connects, 8*time.Second, 20*time.Second); b*20 > a {
		t.Errorf("%d attempts to connect under a guard, %d without", b, a)
	}
	within(t, "time until all serve", value(t, paced, "serving < 5s"), 0.01, 5)
	for b := 100; b < len(p.Connects); b++ { // 10 instances, which come back in rounds
		if n := p.Connects[b]; n > 30 {
			t.Errorf("%d attempts to connect in bin %d", n, b)
		}
	}
	// the pools want twice as many as the server has, and ask now and then
	within(t, "goodput of the last second", float64(between(paced, paced.Fleets[0].Good, 19*time.Second, 20*time.Second))/
		float64(between(paced, paced.Fleets[0].Offered, 19*time.Second, 20*time.Second)), 0.995, 1)
}

func TestGuardedConnectionsSurviveEveryFault(t *testing.T) {
	for name, fault := range map[string]string{
		"refuse": "outage: s, mode: refuse", "fail": "outage: s, mode: fail", "hang": "outage: s",
		"blackhole":              "outage: s, mode: blackhole",
		"restart of the service": "restart: s", "restart of the fleet": "restart: f", "loss": "loss: s, rate: 50%",
		"slowdown": "slowdown: s, factor: 50",
	} {
		t.Run(name, func(t *testing.T) {
			policy := "maxRetries: 2, initialDelay: 20ms, attemptTimeout: 200ms, retryBudget: {disabled: true}, " +
				"circuitBreaker: {disabled: true}"
			r := run(t, guarded(policy, "preset: connections, attemptTimeout: 150ms", "duration: 30s",
				"clients: {f: {rate: 100, instances: 3, calls: [{to: s, pool: 4, latency: 1ms, connect: c}]}}",
				"services: {s: {replicas: 2, workers: 4, serviceTime: exponential 20ms, queue: {limit: 20}, connections: {max: "+
					"20, cost: 1ms, cores: 4}}}", "faults: [{at: 10s, for: 5s, "+fault+"}]"))
			within(t, "goodput before it", value(t, r, "goodput(before) > 50%"), 0.75, 1)
			within(t, "goodput at the end", float64(between(r, r.Fleets[0].Good, 25*time.Second, 30*time.Second))/float64(
				between(r, r.Fleets[0].Offered, 25*time.Second, 30*time.Second)), 0.97, 1)
			s := service1(t, r)
			if last := s.Conns[len(s.Conns)-1]; last > 12 || last == 0 {
				t.Errorf("%d connections at the end, of three pools of four", last)
			}
		})
	}
}
