package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// dice turns the bytes of a fuzzer into choices; when they are used up it goes on with zeros.
type dice struct {
	bytes []byte
	used  int
}

func (d *dice) roll(n int) int {
	d.used++
	if d.used > len(d.bytes) {
		return 0
	}
	return int(d.bytes[d.used-1]) % n
}

// pick chooses one of the words; maybe chooses none or one.
func (d *dice) pick(words ...string) string  { return words[d.roll(len(words))] }
func (d *dice) maybe(words ...string) string { return d.pick(append([]string{""}, words...)...) }

// list joins what is not empty.
func list(items ...string) string {
	var all []string
	for _, item := range items {
		if item != "" {
			all = append(all, item)
		}
	}
	return strings.Join(all, ", ")
}

func (d *dice) time() string {
	return d.pick("10ms", "exponential 20ms", "1ms", "lognormal median 10ms p99 200ms", "'90% 5ms, 10% 300ms'",
		"uniform 1ms..50ms")
}

func (d *dice) call(to string) string {
	return "{" + list("to: "+to, d.maybe("times: 2", "times: 3"), d.maybe("share: 30%"), d.maybe("optional: true"),
		d.maybe("latency: 1ms", "latency: exponential 2ms"),
		d.maybe("pool: 1", "pool: 3", "pool: 2, connect: connections", "pool: 3, connect: connections"),
		d.maybe("naive: true"), d.maybe("priority: SHEDDABLE", "priority: CRITICAL_PLUS")) + "}"
}

func (d *dice) service(calls string) string {
	bound := d.maybe("limit: 3", "limit: 50", "none: true", "work: 200ms")
	queue := list(bound, d.maybe("dropExpired: true"), d.maybe("order: lifo", "order: codel"))
	if bound == "none: true" {
		queue = bound
	}
	if bound != "" {
		queue = list(queue, d.maybe("whenFull: silence"))
	}
	replicas, cost := d.maybe("replicas: 3"), d.maybe("cost: 5ms", "cost: exponential 5ms, cores: 2")
	if replicas != "" {
		replicas = list(replicas, d.maybe("balancing: round-robin", "balancing: least-queue", "balancing: least-request"))
	}
	if calls != "" {
		calls = list(calls, d.maybe("parallel: true"), d.maybe("callsFirst: true"))
	}
	return "{" + list("serviceTime: "+d.time(), replicas, "workers: "+d.pick("1", "4", "20"),
		d.maybe("slowsDown: 0.1"), d.maybe("slowsQueued: 0.01"), "queue: {"+queue+"}", d.maybe("errorRate: 20%"),
		d.maybe("retryAfter: 300ms"),
		d.maybe("optimisticLock: true"), d.lives(), calls, "connections: {"+list("max: 4", cost, d.maybe("whenFull: wait"),
			d.maybe("backlog: 2"))+"}") + "}"
}

func (d *dice) fleet(calls string) string {
	load := d.pick("rate: 50", "rate: 200, arrivals: even", "rate: 60, arrivals: jittered",
		"users: 8, think: exponential 50ms", "once: 70", "once: 70, within: 2s",
		"curve: [{at: 0s, rate: 5}, {at: 2s, rate: 100}, {at: 3s, rate: 0}], between: ramps")
	if d.roll(5) == 1 {
		called, _, _ := strings.Cut(strings.TrimPrefix(calls, "{to: "), ",")
		return "{" + list(strings.Replace(load, "users: 8, think: exponential 50ms", "rate: 80", 1), d.maybe("instances: 3"),
			"topic: {"+list("partitions: "+d.pick("3", "7"), "keys: 5", d.maybe("poison: 5%"))+"}",
			"calls: [{"+list("to: "+strings.Trim(called, "{}"), d.maybe("latency: exponential 2ms"), "pool: 2",
				d.maybe("naive: true"))+"}]") + "}"
	}
	if d.roll(6) == 5 {
		return d.sessions(strings.TrimSuffix(strings.TrimPrefix(strings.Split(calls, ",")[0], "{to: "), "}"))
	}
	return "{" + list(load, d.maybe("instances: 3"), d.maybe("patience: 400ms"), "calls: ["+calls+"]",
		d.maybe("parallel: true")) + "}"
}

// sessions is a fleet whose users hold one each.
func (d *dice) sessions(to string) string {
	return "{" + list("users: "+d.pick("9", "40"), d.maybe("instances: 3"), d.maybe("patience: 400ms"),
		"session: {"+list("returns: "+d.pick("50ms", "uniform 0s..500ms"), d.maybe("lasts: exponential 300ms"))+"}",
		"calls: [{"+list("to: "+to, d.maybe("latency: 1ms"), d.maybe("naive: true"))+"}]") + "}"
}

// kafka is what becomes of messages.
func (d *dice) kafka() string {
	return "kafka: {" + list(d.pick("tiers: [200ms, 500ms]", "delay: 300ms, multiplier: 1, attempts: 4"),
		d.maybe("concurrency: 3"), d.maybe("window: 4"), d.maybe("order: key", "order: park-key"),
		d.maybe("dltStrategy: retry-last", "dltStrategy: drop"), d.maybe("timeout: 1s"),
		d.maybe("drain: {disabled: true}", "drain: {maxRate: 40}")) + "}"
}

func (d *dice) fault() string {
	target := d.pick("a", "b")
	if d.roll(9) == 8 {
		return "{redis: f, at: 1s, for: 1s" + d.maybe(", share: 50%") + "}"
	}
	what := d.pick("outage: %s", "outage: %s, mode: refuse", "outage: %s, mode: blackhole", "outage: %s, mode: fail",
		"slowdown: %s, factor: 5", "slowdown: %s, add: 100ms, requests: 30%%",
		"errors: %s, rate: 40%%", "capacity: %s, factor: 0.3", "loss: %s, rate: 30%%", "restart: %s",
		"deploy: %s, factor: 3, rate: 20%%", "operator: %s, action: scale, factor: 2",
		"operator: %s, action: empty-queue", "operator: %s, action: restart", "operator: %s, action: stop-retries")
	if d.roll(4) == 1 {
		target, what = "f", d.pick("restart: %s", "surge: %s, factor: 3", "operator: %s, action: shed, rate: 50%%",
			"operator: %s, action: stop-retries", "operator: %s, action: restart")
	}
	length, share := fmt.Sprintf("for: %dms", 250+250*d.roll(4)), d.maybe("share: 50%", "share: 10%")
	if strings.Contains(what, "action: restart") || strings.Contains(what, "empty-queue") {
		length = ""
	}
	if strings.Contains(what, "surge") || strings.Contains(what, "shed") || strings.Contains(what, "stop-retries") {
		share = ""
	}
	return "{" + list(fmt.Sprintf(what, target), fmt.Sprintf("at: %dms", 500+250*d.roll(8)), length, share) + "}"
}

func (d *dice) policy() string {
	return list("maxRetries: "+d.pick("0", "3", "1"), d.maybe("backoff: fixed", "backoff: none"),
		d.maybe("jitter: none", "jitter: decorrelated", "jitter: equal"), d.maybe("initialDelay: 20ms"),
		d.maybe("attemptTimeout: 100ms", "attemptTimeout: 300ms"), d.maybe("timeout: 500ms"),
		d.maybe("retryBudget: {disabled: true}", "retryBudget: {kind: tokens}", "retryBudget: {kind: adaptive}",
			"retryBudget: {fleet: true, reserve: 3}"),
		d.maybe("circuitBreaker: {disabled: true}", "circuitBreaker: {failureThreshold: 3, slowCallRateThreshold: 0.5, "+
			"slowCallDurationThreshold: 50ms}", "circuitBreaker: {failureThreshold: 3, fleet: true}"),
		d.pick("", d.kafka()), d.maybe("bulkhead: {maxConcurrentCalls: 3}", "bulkhead: {maxConcurrentCalls: 2, maxQueue: "+
			"4, maxWait: 60ms}", "bulkhead: {maxConcurrentCalls: 2, maxQueue: 9, order: lifo}"),
		d.maybe("hedge: {delay: 20ms, maxHedges: 2}", "hedge: {quantile: 0.9}"),
		d.maybe("rateLimit: {limit: 20/s, maxWait: 200ms}", "rateLimit: {limit: 30/s, burst: 2}"),
		d.maybe("throttle: {k: 1.5, minimumNumberOfCalls: 3}"), d.maybe("outlierDetection: {disabled: true}",
			"outlierDetection: {consecutiveFailures: 1, baseEjectionTime: 100ms}"))
}

// gate is an entry of protect.
func (d *dice) gate() string {
	concurrency := d.pick("bbr", "gradient", "vegas", "aimd", "fixed, maxConcurrency: 3")
	queue := d.maybe("maxQueue: 2", "noQueue: true")
	if queue != "noQueue: true" {
		queue = list(queue, d.maybe("queueTarget: 10ms"), d.maybe("maxCallerShare: 0.5"))
	}
	shed := "shed: {" + list("concurrency: "+concurrency, queue, d.maybe("cpu: 0.7")) + "}"
	return "{" + list(d.pick(shed, "shed: {disabled: true}"), d.maybe("timeout: 100ms"),
		d.maybe("rateLimit: {limit: 20/s}", "rateLimit: {limit: 10/s, key: ip, burst: 1}",
			"rateLimit: {limit: 30/s, fleet: true, cost: 2}"),
		d.maybe("priority: {default: SHEDDABLE}")) + "}"
}

// protect puts gates in front of some services.
func (d *dice) protect() string {
	if d.roll(3) == 0 {
		return ""
	}
	return ", redis: {embedded: true}, protect: {" +
		list(d.pick("a: "+d.gate(), ""), d.pick("", "b: "+d.gate()), "c: "+d.gate()) + "}"
}

// scenario makes a scenario of 5 s: two fleets, three services, some faults, two policies.
func (d *dice) scenario() string {
	var b strings.Builder
	b.WriteString("duration: 5s\n" + d.pick("warmUp: 0s", "warmUp: 1s") + "\n")
	b.WriteString("model: {" + list(d.maybe("cancellation: propagates"), d.maybe("serviceTimeDrawn: arrival"),
		d.maybe("ties: timeout-first"), "drain: "+d.pick("2s", "0s", "30s")) + "}\n")
	kept, cache := d.cache()
	b.WriteString("clients:\n  f: " + d.fleet(d.call("a")) + "\n  g: " + d.fleet(d.call("b")+", "+d.call("c")+kept) + "\n")
	b.WriteString("services:\n  a: " + d.service("calls: ["+d.call("b")+", "+d.call("c")+"]") + "\n  b: " +
		d.service("calls: ["+d.call("c")+"]") + "\n  c: " + d.service("") + "\n" + cache)
	var faults []string
	for range d.roll(4) {
		faults = append(faults, d.fault())
	}
	services := "c: {" + d.policy() + "}"
	if strings.Contains(b.String(), "connect: connections") {
		services = list(services, "connections: {"+list("preset: connections", d.maybe("attemptTimeout: 4ms"),
			d.maybe("pacing: {disabled: true}", "pacing: {perSecond: 50, burst: 2}"), d.maybe("maxRetries: 9"))+"}")
	}
	policy := "defaults: {" + d.policy() + "}, services: {" + services + "}" + d.protect()
	if strings.Contains(policy, "fleet: true") {
		if !strings.Contains(policy, "redis:") {
			policy += ", redis: {embedded: true}"
		}
		b.WriteString(d.maybe("redis: {latency: exponential 20ms}\n"))
		if _, gate, _ := strings.Cut(policy, ", c: {shed"); strings.Contains(gate, "fleet: true") {
			faults = append(faults, d.pick("{redis: c, at: 1s, for: 1500ms}", "{redis: c, at: 2s, for: 400ms}"))
		}
	}
	b.WriteString("faults: [" + strings.Join(faults, ", ") + "]\n")
	b.WriteString("variants:\n  x: {policy: {" + policy + "}}\n")
	return b.String()
}

// FuzzEngine runs random small scenarios: the books balance, runs end, and the same seed gives the same run.
func FuzzEngine(f *testing.F) {
	for i := range byte(40) {
		bytes := make([]byte, 120)
		for k := range bytes {
			bytes[k] = byte(7*k)*i + i + byte(k*k)>>2
		}
		f.Add(uint64(i), bytes)
	}
	f.Fuzz(func(t *testing.T, seed uint64, bytes []byte) {
		text := (&dice{bytes: bytes}).scenario()
		s, err := scenario.Parse("fuzz.yaml", []byte(text))
		if err != nil {
			return // a combination that the file format refuses
		}
		e, err := engine.New(s, &s.Variants[0])
		if err != nil {
			t.Fatal(err)
		}
		looks := 0
		stop := func() bool { looks++; return looks > 200 }
		first, err := e.Run(seed, false, stop)
		if err != nil || first == nil {
			t.Fatalf("no end after %d × 65,536 events, error %v\n%s", looks, err, text)
		}
		if broken := inconsistencies(s, first); len(broken) > 0 {
			t.Errorf("seed %d: %s\n%s", seed, strings.Join(broken, "\n"), text)
		}
		if n := e.Unsettled(); n != 0 {
			t.Errorf("seed %d: balancers count %d attempts that have ended\n%s", seed, n, text)
		}
		again, err := e.Run(seed, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if hash(t, first) != hash(t, again) {
			t.Errorf("seed %d: the second run is another one\n%s", seed, text)
		}
	})
}

// lives is how replicas of a service come and go by themselves.
func (d *dice) lives() string {
	return list(d.maybe("crash: {above: 25}", "start: {takes: uniform 100ms..2s, slower: 3, warmUp: 1s, backoff: 200ms}"),
		d.maybe("probes: {liveness: {period: 500ms, timeout: 100ms}}",
			"probes: {liveness: {period: 1s}, readiness: {period: 300ms, timeout: 200ms, failureThreshold: 1}}"),
		d.maybe("autoscale: {target: 50%, max: 5, every: 1s, coolDown: 1s}"))
}

// cache is a call of a cache, or none, and the services that it needs.
func (d *dice) cache() (call, services string) {
	if d.roll(2) == 0 {
		return "", ""
	}
	cache := list("keys: "+d.pick("9", "60"), d.maybe("capacity: 4"), d.maybe("skew: 0.9"),
		d.maybe("ttl: 300ms", "ttl: uniform 100ms..900ms"), d.maybe("cold: true"), d.maybe("coalesce: true"),
		d.maybe("forgetsOnError: true"))
	replica := list("workers: 3", "serviceTime: "+d.time(), d.maybe("errorRate: 20%", "replicas: 2"))
	return ", {to: k, else: [e]}", "  k: {" + replica + ", cache: {" + cache + "}}\n" +
		"  e: {workers: 1, queue: {limit: 5}, serviceTime: " + d.time() + "}\n"
}
