package remedy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim/remedy"
	"github.com/abate-go/abate/sim/scenario"
)

const off = "retryBudget: &off {disabled: true}, circuitBreaker: *off"

func read(t *testing.T, text string) (*scenario.Scenario, *scenario.Variant) {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s, &s.Variants[0]
}

func simple(policy string) string {
	return "duration: 30s\nclients: {shop: {rate: 100, instances: 50, patience: 3s, calls: [pay]}}\n" +
		"services: {pay: {replicas: 2, workers: 15, serviceTime: 100ms}}\nvariants: {v: {policy: {" + policy + "}}}\n"
}

// find returns the change of a name.
func find(t *testing.T, changes []remedy.Change, key, name string) *remedy.Change {
	t.Helper()
	for i := range changes {
		if changes[i].Key == key && changes[i].Name == name {
			return &changes[i]
		}
	}
	t.Fatalf("no change %q of %q among %d", name, key, len(changes))
	return nil
}

func TestEveryPartOfThePolicyIsTriedOnBothSides(t *testing.T) {
	s, v := read(t, simple("defaults: {attemptTimeout: 1s, maxRetries: 3, "+off+"}"))
	parts := map[string]bool{}
	for _, c := range remedy.Changes(s, v) {
		parts[strings.TrimPrefix(c.Key, "pay ")] = true
		if c.Text == "" || c.YAML == "" || c.Step <= 0 || strings.Contains(c.Text, "µ") {
			t.Errorf("change %+v", c)
		}
		if _, _, err := c.Apply(s, v); err != nil {
			t.Errorf("%s: %v", c.Text, err)
		}
	}
	for _, part := range []string{
		"maxRetries", "initialDelay", "attemptTimeout", "timeout", "retryBudget", "circuitBreaker",
		"bulkhead", "rateLimit", "throttle", "hedge", "pacing", "gate", "gate rateLimit", "gate timeout", "queue",
		"queue order"} {
		if !parts[part] {
			t.Errorf("nothing is tried with %s", part)
		}
	}
}

func TestAChangeIsWhatItsPieceSays(t *testing.T) {
	s, v := read(t, simple("defaults: &d {attemptTimeout: 1s, maxRetries: 3, "+off+
		"}, services: {pay: {<<: *d, maxRetries: 2}}"))
	changes := remedy.Changes(s, v)
	c := find(t, changes, "pay retryBudget", "retryBudget ratio 0.1")
	const want = "services:\n  pay:\n    retryBudget:\n      disabled: false\n      ratio: 0.1\n      reserve: 10\n" +
		"      clients: 50\n"
	if c.YAML != want {
		t.Errorf("the piece is\n%s", c.YAML)
	}
	_, w, err := c.Apply(s, v)
	if err != nil {
		t.Fatal(err)
	}
	p := w.PolicyOf("shop", "pay")
	if p.RetryBudget.Disabled || p.RetryBudget.Ratio != 0.1 || p.RetryBudget.Clients != 50 || p.MaxRetries != 2 ||
		!p.CircuitBreaker.Disabled || p.AttemptTimeout != time.Second {
		t.Errorf("the policy is %+v", p.Policy)
	}
	if was := v.PolicyOf("shop", "pay"); was.RetryBudget.Enabled() {
		t.Error("the variant itself was changed")
	}
}

func TestWhatIsOnIsTuned(t *testing.T) {
	s, v := read(t, simple("defaults: {maxRetries: 3, attemptTimeout: 1s, bulkhead: {maxConcurrentCalls: 10}, "+
		"throttle: {k: 2}, hedge: {quantile: 0.9}, rateLimit: {limit: 10/s}}, protect: {pay: {}}"))
	changes := remedy.Changes(s, v)
	for _, c := range [][3]string{
		{"pay retryBudget", "retryBudget clients", "clients: 50"},
		{"pay retryBudget", "retryBudget × 0.5", "ratio: 0.05"},
		{"pay circuitBreaker", "circuitBreaker off", "disabled: true"},
		{"pay bulkhead", "bulkhead × 0.5", "maxConcurrentCalls: 5"},
		{"pay throttle", "throttle k 1.3", "k: 1.3"},
		{"pay hedge", "hedge off", "disabled: true"},
		{"pay rateLimit", "rateLimit × 0.7", "limit: 7/s"},
		{"pay gate", "gate gradient", "concurrency: gradient"},
		{"pay gate rateLimit", "gate rateLimit 0.95 of the capacity", "limit: 142/s"},
	} {
		if one := find(t, changes, c[0], c[1]); !strings.Contains(one.YAML, c[2]) {
			t.Errorf("%s %s lacks %q:\n%s", c[0], c[1], c[2], one.YAML)
		}
	}
}

func TestChangesOfSeveralServicesAreAlsoMadeEverywhere(t *testing.T) {
	s, v := read(t, "duration: 30s\nclients: {shop: {rate: 100, calls: [front]}}\n"+
		"services: {front: {calls: [back]}, back: {workers: 20, serviceTime: 100ms}}\n"+
		"variants: {v: {naive: [front], policy: {defaults: {maxRetries: 3, "+off+"}}}}\n")
	changes := remedy.Changes(s, v)
	c := find(t, changes, "every maxRetries", "every maxRetries 0")
	if !strings.Contains(c.YAML, "  front:\n    maxRetries: 0\n") ||
		!strings.Contains(c.YAML, "  back:\n    maxRetries: 0\n") {
		t.Errorf("everywhere is\n%s", c.YAML)
	}
	find(t, changes, "back retryOwner", "retryOwner edge")
	for _, c := range changes {
		if strings.HasPrefix(c.Key, "front gate") {
			t.Errorf("a program that knows nothing of gates has one: %s", c.Text)
		}
	}
}

func TestTwoChangesOfTheSameThingCannotBeJoined(t *testing.T) {
	s, v := read(t, simple("defaults: {maxRetries: 3, "+off+"}"))
	changes := remedy.Changes(s, v)
	budget := find(t, changes, "pay retryBudget", "retryBudget adaptive")
	gate := find(t, changes, "pay gate", "gate default")
	if _, ok := remedy.Join(budget, find(t, changes, "pay retryBudget", "retryBudget ratio 0.1")); ok {
		t.Error("two budgets at once")
	}
	pair, ok := remedy.Join(budget, gate)
	if !ok || pair.Step != budget.Step+gate.Step {
		t.Fatalf("pair %+v", pair)
	}
	_, w, err := pair.Apply(s, v)
	if _, gated := w.ProtectionOf("pay"); err != nil || !gated || !w.PolicyOf("shop", "pay").RetryBudget.Enabled() {
		t.Errorf("%v: of the pair one half is missing:\n%s", err, pair.YAML)
	}
	queue := find(t, changes, "pay queue", "queue 500ms")
	both, _ := remedy.Join(gate, queue)
	c, w, err := both.Apply(s, v)
	if err != nil || c.ServicesOf(w)[0].Queue.Work != 500*time.Millisecond || s.Services[0].Queue.Work != 0 {
		t.Errorf("%v: the queue is %+v", err, c.ServicesOf(w)[0].Queue)
	}
}

// What a scale would not keep cannot be pasted into the file.
func TestAChangeThatTheScaleDoesNotKeepIsImpossible(t *testing.T) {
	for text, possible := range map[string]bool{
		"services: {pay: {replicas: 10, workers: 15, serviceTime: 100ms}}": true,
		"services: {pay: {workers: 150, serviceTime: 100ms}}":              false,
	} {
		s, v := read(t, "duration: 30s\nscale: 10\nclients: {shop: {rate: 1000, instances: 50, calls: [pay]}}\n"+text+
			"\nvariants: {v: {policy: {defaults: {maxRetries: 3, "+off+"}}}}\n")
		changes := remedy.Changes(s, v)
		_, _, err := find(t, changes, "pay gate", "gate default").Apply(s, v)
		if (err == nil) != possible {
			t.Errorf("%s: a gate gives %v", text, err)
		}
		if c := find(t, changes, "pay retryBudget", "retryBudget ratio 0.1"); !strings.Contains(c.YAML, "clients: 50\n") {
			t.Errorf("the fleet has 50 in full size:\n%s", c.YAML)
		}
		if c := find(t, changes, "pay rateLimit", "rateLimit 1.3 × the load"); !strings.Contains(c.YAML, "limit: 26/s\n") {
			t.Errorf("one instance has 20 requests/s:\n%s", c.YAML)
		}
	}
}

func TestAPolicyMadeInGoIsChangedToo(t *testing.T) {
	s, v := read(t, strings.Replace(simple(""), "v: {policy: {}}", "v: {}", 1))
	file, err := policyfile.Parse("p.yaml", []byte("defaults: {maxRetries: 2, attemptTimeout: 1s, circuitBreaker: "+
		"{failureThreshold: 3}}"))
	if err != nil {
		t.Fatal(err)
	}
	s, v = s.Copy(v)
	v.Guards = file
	for _, c := range remedy.Changes(s, v) {
		_, w, err := c.Apply(s, v)
		if err != nil {
			t.Errorf("%s: %v", c.Text, err)
		} else if strings.HasPrefix(c.Name, "circuitBreaker adaptive") && w.PolicyOf("shop", "pay").MaxRetries != 2 {
			t.Errorf("%s: the rest of the policy is lost", c.Text)
		}
	}
}

func FuzzChangesAreReadAgain(f *testing.F) {
	f.Add("defaults: {maxRetries: 3}", 100.0, uint16(50), uint16(15))
	f.Add("defaults: {circuitBreaker: {failureThreshold: 3}}, protect: {pay: {shed: {disabled: true}}}", 0.01, uint16(1),
		uint16(0))
	f.Fuzz(func(t *testing.T, policy string, rate float64, instances, workers uint16) {
		s, err := scenario.Parse("f.yaml", []byte(simple(policy)))
		if err != nil || len(s.Clients) == 0 || len(s.Services) == 0 {
			return
		}
		s, v := s.Copy(&s.Variants[0])
		s.Clients[0].Rate, s.Clients[0].Instances, v.Overrides[0].Workers = rate, int(instances), int(workers)
		for _, c := range remedy.Changes(s, v) {
			_, _, err := c.Apply(s, v) // it may be impossible; it may not panic
			if err == nil && !strings.HasPrefix(c.YAML, "services:\n") && !strings.HasPrefix(c.YAML, "protect:\n") &&
				!strings.HasPrefix(c.YAML, "services: #") {
				t.Errorf("the piece is %q", c.YAML)
			}
		}
	})
}
