package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// pooled is a fleet whose requests come at once and use a pool.
func pooled(once, pool string) string {
	return "clients: {f: {once: " + once + ", calls: [{to: s, pool: " + pool + "}]}}"
}

func TestConnectionsCostTheirMaking(t *testing.T) {
	for name, c := range map[string]struct {
		clients, service string
		sum, largest     time.Duration
		most             uint32
	}{
		"one connection for all": {
			pooled("3", "1"), "serviceTime: 100ms, connections: {cost: 10ms}", 110*ms + 210*ms + 310*ms, 310 * ms, 1,
		},
		"one each, one core": {
			pooled("3", "3"), "serviceTime: 100ms, connections: {cost: 10ms}", 110*ms + 120*ms + 130*ms, 130 * ms, 3,
		},
		"one each, three cores": {
			pooled("3", "3"), "serviceTime: 100ms, connections: {cost: 10ms, cores: 3}", 330 * ms, 110 * ms, 3,
		},
		"fewer than there might be": {
			pooled("3", "9"), "serviceTime: 100ms, connections: {cost: 10ms, cores: 3}", 330 * ms, 110 * ms, 3,
		},
		"a handshake takes its way": {"clients: {f: {once: 1, calls: [{to: s, pool: 1, latency: 5ms}]}}",
			"serviceTime: 100ms, connections: {cost: 10ms}", 130 * ms, 130 * ms, 1},
		"without cost": {pooled("2", "1"), "serviceTime: 100ms", 300 * ms, 200 * ms, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, world(plain, c.clients, "services: {s: {"+c.service+"}}"))
			sum, largest := latencies(r)
			equal(t, "sum of latencies", sum, c.sum)
			equal(t, "largest latency", largest, c.largest)
			equal(t, "most connections", slices.Max(service1(t, r).Conns), c.most)
			equal(t, "connections at the end", service1(t, r).Conns[len(r.Services[0].Conns)-1], c.most)
			equal(t, "connections(s)", value(t, r, "connections(s) < 9"), float64(c.most))
		})
	}
}

func TestAServiceRefusesFurtherConnections(t *testing.T) {
	r := run(t, world(plain, "clients: {f: {once: 10, instances: 10, calls: [{to: s, pool: 4}]}}",
		"services: {s: {serviceTime: 100ms, connections: {max: 6}}}"))
	wantEnds(t, r, "6 answered, 4 no-connection")
	equal(t, "most connections", slices.Max(service1(t, r).Conns), 6)
	equal(t, "refused", total(service1(t, r).Rejected), 4)
}

// 50 instances with 20 connections each at a database for 100: the others have to try again.
func TestAConnectionStorm(t *testing.T) {
	r := run(t, world(plain, "clients: {f: {once: 1000, instances: 50, calls: [{to: s, pool: 20}]}}",
		"services: {s: {serviceTime: 1s, connections: {max: 100, cost: 5ms}}}"))
	wantEnds(t, r, "100 answered, 900 no-connection")
}

func TestWaitingForAConnectionHasATimeout(t *testing.T) {
	r := run(t, world(plain+", attemptTimeout: 150ms", pooled("3", "1"), "services: {s: {serviceTime: 100ms}}"))
	wantEnds(t, r, "1 answered, 2 timed-out") // the second would end at 200 ms, the third never gets the connection
	equal(t, "connections at the end", service1(t, r).Conns[len(r.Services[0].Conns)-1], 0)
}

func TestATimeoutClosesItsConnectionAndTheNextConnectsAgain(t *testing.T) {
	r := run(t, world(plain+", attemptTimeout: 150ms", "clients: {f: {once: 4, within: 2s, calls: [{to: s, pool: 1}]}}",
		"services: {s: {serviceTime: 200ms, connections: {cost: 50ms}}}"))
	wantEnds(t, r, "4 timed-out")
	s := service1(t, r)
	equal(t, "work for nobody", time.Duration(total(s.WasteNS)), 800*ms)
	equal(t, "connections at the end", s.Conns[len(s.Conns)-1], 0)
}

func TestAGivenUpHandshakeLeavesNothingBehind(t *testing.T) {
	r := run(t, world(plain+", attemptTimeout: 50ms", pooled("5", "5"),
		"services: {s: {serviceTime: 1ms, connections: {max: 10, cost: 100ms}}}"))
	wantEnds(t, r, "5 timed-out")
	s := service1(t, r)
	equal(t, "connections while they are made", s.Conns[0], 5)
	equal(t, "connections at the end", s.Conns[len(s.Conns)-1], 0)
}

func TestARestartOfTheServiceBreaksConnections(t *testing.T) {
	r := run(t, world(plain, "clients: {f: {once: 20, within: 2s, calls: [{to: s, pool: 1}]}}",
		"services: {s: {serviceTime: 10ms, connections: {max: 4, cost: 30ms}}}",
		"faults: [{restart: s, at: 550ms, for: 100ms}]"))
	wantEnds(t, r, "19 answered, 1 refused") // the one at 600 ms
	sum, largest := latencies(r)
	equal(t, "latencies: 19 of 10 ms, and connecting twice", sum, 250*ms)
	equal(t, "largest latency", largest, 40*ms)
	s := service1(t, r)
	equal(t, "connections before", s.Conns[4], 1)
	equal(t, "connections at the end", s.Conns[len(s.Conns)-1], 1)
}

func TestARestartOfTheCallerClosesItsConnections(t *testing.T) {
	r := run(t, world(plain, "clients: {f: {once: 40, within: 4s, instances: 2, calls: [{to: s, pool: 3}]}}",
		"services: {s: {serviceTime: 150ms, connections: {max: 50}}}",
		"faults: [{restart: f, at: 2050ms, for: 500ms}]"))
	s := service1(t, r)
	equal(t, "connections before", s.Conns[19], 2)
	equal(t, "connections while the fleet is away", s.Conns[23], 0)
	equal(t, "connections at the end", s.Conns[len(s.Conns)-1], 2)
}

// Handshakes under way when connections begin to be refused are refused too.
func TestARefusingOutageBreaksHandshakes(t *testing.T) {
	r := run(t, world(plain, pooled("5", "5"), "services: {s: {serviceTime: 10ms, connections: {max: 9, cost: 100ms}}}",
		"faults: [{outage: s, at: 150ms, for: 2s, mode: refuse}]"))
	wantEnds(t, r, "1 answered, 4 refused") // one was made by then, and the others were on their way
	s := service1(t, r)
	for b, n := range s.Conns[2:] {
		equal(t, "connections after it began, bin "+time.Duration(b+2).String(), n, 0)
	}
}

func TestPoolsSurviveEveryFault(t *testing.T) {
	for name, fault := range map[string]string{
		"refuse": "outage: s, mode: refuse", "fail": "outage: s, mode: fail", "hang": "outage: s",
		"blackhole":              "outage: s, mode: blackhole",
		"restart of the service": "restart: s", "restart of the fleet": "restart: f", "loss": "loss: s, rate: 50%",
		"slowdown": "slowdown: s, factor: 50",
	} {
		t.Run(name, func(t *testing.T) {
			policy := "maxRetries: 2, initialDelay: 20ms, attemptTimeout: 200ms, retryBudget: {disabled: true}, " +
				"circuitBreaker: {disabled: true}"
			r := run(t,
				world(policy, "duration: 20s", "clients: {f: {rate: 100, instances: 3, calls: [{to: s, pool: 4, latency: 1ms}]}}",
					"services: {s: {replicas: 2, workers: 4, serviceTime: exponential 20ms, queue: {limit: 20}, connections: {max: "+
						"20, cost: 1ms, cores: 4}}}", "faults: [{at: 5s, for: 5s, "+fault+"}]"))
			s := service1(t, r)
			equal(t, "connections at the end, of three pools of four", s.Conns[len(s.Conns)-1], 12)
			within(t, "goodput after it", value(t, r, "goodput(after) > 50%"), 0.9, 1)
			within(t, "most connections", value(t, r, "connections(s) < 41"), 6, 40)
			if n := r.Fleets[0].Ends[engine.Answered]; n < 1000 {
				t.Errorf("only %d answers", n)
			}
		})
	}
}
