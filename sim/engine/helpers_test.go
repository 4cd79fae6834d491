package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// plain is a policy without opinions: one attempt, as long as it takes.
const plain = "maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}"

// thrice is a policy of three attempts, so long apart, and nothing else.
func thrice(delay string) string {
	return "maxRetries: 2, backoff: fixed, jitter: none, initialDelay: " + delay +
		", retryBudget: {disabled: true}, circuitBreaker: {disabled: true}"
}

// world is a scenario of 10 s without a warm-up, under one policy.
func world(policy string, lines ...string) string {
	text := strings.Join(lines, "\n") + "\nvariants: {only: {policy: {defaults: {" + policy + "}}}}\n"
	if !strings.Contains(text, "duration:") {
		text = "duration: 10s\n" + text
	}
	if !strings.Contains(text, "warmUp:") {
		text = "warmUp: 0s\n" + text
	}
	return text
}

// read parses a scenario.
func read(t testing.TB, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

// run runs the first variant of a scenario once, with seed 1.
func run(t testing.TB, text string) *engine.Record {
	t.Helper()
	s := read(t, text)
	return playVariant(t, s, 0, 1)
}

func playVariant(t testing.TB, s *scenario.Scenario, variant int, seed uint64) *engine.Record {
	t.Helper()
	e, err := engine.New(s, &s.Variants[variant])
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(seed, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if broken := inconsistencies(s, r); len(broken) > 0 {
		t.Errorf("the books do not balance: %s", strings.Join(broken, "; "))
	}
	return r
}

// service is the record of a service, edge that of an edge.
func service(t testing.TB, r *engine.Record, name string) *engine.ServiceRecord {
	t.Helper()
	for i := range r.Services {
		if r.Services[i].Name == name {
			return &r.Services[i]
		}
	}
	t.Fatalf("no service %q", name)
	return nil
}

func edge(t testing.TB, r *engine.Record, caller, callee string) *engine.EdgeRecord {
	t.Helper()
	for i := range r.Edges {
		if r.Edges[i].Caller == caller && r.Edges[i].Callee == callee {
			return &r.Edges[i]
		}
	}
	t.Fatalf("no edge %s -> %s", caller, callee)
	return nil
}

// total adds a series up; between does so for the bins of a stretch of time.
func total[T uint32 | int64](series []T) (sum int64) {
	for _, n := range series {
		sum += int64(n)
	}
	return sum
}

func between[T uint32 | int64](r *engine.Record, series []T, from, to time.Duration) int64 {
	return total(series[int(from/r.Bin):min(int(to/r.Bin), len(series))])
}

// latencies are the sum and the largest of all latencies that were measured.
func latencies(r *engine.Record) (sum, largest time.Duration) {
	for i := range r.Fleets {
		for w := range r.Fleets[i].Latency {
			sum += time.Duration(r.Fleets[i].Latency[w].Sum)
			largest = max(largest, time.Duration(r.Fleets[i].Latency[w].Max))
		}
	}
	return sum, largest
}

// ends writes how requests ended as "3 answered, 2 queue-full", in the order of the kinds.
func ends(all [engine.EndKinds]int64) string {
	var words []string
	for k, n := range all {
		if n != 0 {
			words = append(words, fmt.Sprintf("%d %s", n, engine.EndKind(k)))
		}
	}
	return strings.Join(words, ", ")
}

// wantEnds compares how the requests of the first fleet ended.
func wantEnds(t *testing.T, r *engine.Record, want string) {
	t.Helper()
	if got := ends(r.Fleets[0].Ends); got != want {
		t.Errorf("requests ended as %q, want %q", got, want)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if !(got >= low && got <= high) {
		t.Errorf("%s is %v, want %v to %v", what, got, low, high)
	}
}

// value measures what an expectation's left side names.
func value(t *testing.T, r *engine.Record, text string) float64 {
	t.Helper()
	x, err := expect.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r.Value(&x)
}

const ms = time.Millisecond

// edit replaces words of a text by others, in pairs.
func edit(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
