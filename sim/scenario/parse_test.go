package scenario_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/sim/distribution"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

func TestEveryMistakeHasItsMessage(t *testing.T) {
	t.Chdir("testdata")
	seen := map[string]bool{}
	for _, file := range glob(t, "*.bad.yaml") {
		name := strings.TrimSuffix(file, ".bad.yaml")
		seen[name] = true
		lines, ok := mistakes[name]
		if !ok {
			t.Errorf("%s is not in the table of mistakes", file)
			continue
		}
		want := make([]string, len(lines))
		for i, line := range lines {
			if want[i] = line; strings.HasPrefix(line, ":") {
				want[i] = file + line
			}
		}
		s, err := scenario.Load(file)
		if s != nil || err == nil {
			t.Errorf("%s is taken for a good file", file)
			continue
		}
		if got, want := err.Error(), strings.Join(want, "\n"); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
	for name := range mistakes {
		if !seen[name] {
			t.Errorf("the table has %s, testdata has not", name)
		}
	}
}

func TestGoodFilesAreGood(t *testing.T) {
	for _, file := range glob(t, "testdata/good/*.yaml") {
		if _, err := scenario.Load(file); err != nil {
			t.Error(err)
		}
	}
}

// What the words of a distribution or an expectation mean is not known here, but where they stand is.
func TestMistakesInWordsHaveTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(good, "10ms", "exponentially 10ms", 1): "s.yaml:3:43: services.db.serviceTime: ",
		good + "expect: [goodput > 1%, goodputs > 5%]\n":       "s.yaml:4:24: expect[1]: ",
	} {
		if _, err := scenario.Parse("s.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTheCheckoutOutageIsRead(t *testing.T) {
	s, err := scenario.Load("testdata/good/checkout.yaml")
	if err != nil {
		t.Fatal(err)
	}
	variants := s.Variants
	s.Variants = nil
	want := &scenario.Scenario{
		Name: "checkout outage", About: "A database is away for 30 s; do the retries let it come back?",
		File: "testdata/good/checkout.yaml", Duration: 3 * time.Minute, WarmUp: 5 * time.Second, Scale: 1, Runs: 400,
		Clients: []scenario.Fleet{
			{Name: "checkout", Rate: 10000, Instances: 50, Patience: 10 * time.Second,
				Calls: []scenario.Call{{To: "payment-service"}}},
		},
		Services: []scenario.Service{
			{Name: "payment-service", Replicas: 20, Calls: []scenario.Call{{To: "payment-db", Pool: 20}}},
			{
				Name:        "payment-db",
				Workers:     1200,
				ServiceTime: distribution.Exponential(100 * time.Millisecond),
				Queue:       scenario.Queue{Limit: 12000},
				Connections: scenario.Connections{Max: 500, Cost: distribution.Fixed(20 * time.Millisecond), Cores: 4},
			},
		},
		Faults: []scenario.Fault{{At: 30 * time.Second, For: 30 * time.Second, Outage: "payment-db"}},
		Expect: []expect.Expectation{
			expectation(t, "recovery < 10s in 99% of runs"), expectation(t, "amplification(payment-db) < 1.2"),
		},
		Model: scenario.Model{
			Cancellation:     "ignored",
			ServiceTimeDrawn: "start",
			Ties:             "answer-first",
			Recovered:        0.95,
			Drain:            30 * time.Second,
			Hold:             time.Second,
			Collapsed:        0.9,
		},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	s.Variants = variants
	for i, want := range []string{"naive 3 3", "guarded 1 3", "file 2 3", "small 3 3"} {
		v := &variants[i]
		edge, other := v.PolicyOf("payment-service", "payment-db"), v.PolicyOf("checkout", "payment-service")
		if got := fmt.Sprint(v.Name, " ", edge.MaxRetries, " ", other.MaxRetries); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if p := variants[0].PolicyOf("checkout", "payment-service"); p.AttemptTimeout != time.Second ||
		p.CircuitBreaker.Enabled() {
		t.Errorf("the naive policy: %+v", p)
	}
	if e := variants[0].Expect; len(e) != 1 || e[0].Measure != "collapse" {
		t.Errorf("expectations of a variant: %+v", e)
	}
}

func expectation(t *testing.T, text string) expect.Expectation {
	t.Helper()
	e, err := expect.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAVariantOverridesOnlyWhatItSays(t *testing.T) {
	s, err := scenario.Load("testdata/good/checkout.yaml")
	if err != nil {
		t.Fatal(err)
	}
	naive, small := s.ServicesOf(&s.Variants[0]), s.ServicesOf(&s.Variants[3])
	if !reflect.DeepEqual(naive, s.Services) {
		t.Errorf("a variant without services has %+v", naive)
	}
	want := append([]scenario.Service(nil), s.Services...)
	want[1].Workers = 900
	want[1].Queue.Order, want[1].Queue.Target = scenario.CoDel, 10*time.Millisecond
	if !reflect.DeepEqual(small, want) {
		t.Errorf("got  %+v\nwant %+v", small, want)
	}
	if s.Services[1].Workers != 1200 {
		t.Error("the scenario's own services were changed")
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	s := parse(t, good+"x-note: nothing\n")
	if s.Name != "s" || len(s.Variants) != 1 || s.Variants[0].Name != "default" ||
		s.Variants[0].PolicyOf("shop", "db").MaxRetries != 3 {
		t.Errorf("%+v", s)
	}
	daily := func(keys string) time.Duration {
		return parse(t, strings.Replace(good, "rate: 100", "rate: 100, daily: {swing: 40%"+keys+"}", 1)).Clients[0].Daily.Peak
	}
	if daily("") != 14*time.Hour || daily(", peak: 0s") != 0 {
		t.Error("the peak of a day is not 14h unless the file says so")
	}
	if s := parse(t, "warmUp: 0s\nruns: 3\nmodel: {drain: 0s}\n"+good); s.WarmUp != 0 || s.Model.Drain != 0 ||
		s.Runs != 3 || s.Model.Hold != time.Second {
		t.Errorf("%+v", s)
	}
}

func TestAQueueWithoutWorkersMattersInAnOutageThatHangs(t *testing.T) {
	parse(t, "duration: 3m\nclients: {shop: {rate: 100, calls: [db]}}\nservices: {db: {queue: {limit: 100}}}\n"+
		"faults: [{at: 30s, for: 30s, outage: db}]\nexpect: [queue(db) < 200]\n")
}

func TestAServiceThatOneVariantCallsIsCalled(t *testing.T) {
	parse(t, "duration: 3m\nclients: {shop: {rate: 100, calls: [a]}}\nservices: {a: {}, cache: {}}\n"+
		"variants: {plain: {}, cached: {services: {a: {calls: [cache]}}, policy: {services: {a -> cache: {maxRetries: "+
		"1}}}}}\n")
}

// What is wrong with the scenario's own services is said once, not again for every variant.
func TestVariantsDoNotRepeatMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"duration: 3m\nclients: {shop: {rate: 1, calls: [a]}}\nservices: {a: {workers: 3}}\nvariants: {x: {services: {a: " +
			"{workers: 5}}}}\n": "s.yaml:3:12: services.a.serviceTime: ",
		"duration: 3m\nclients: {shop: {rate: 1, calls: [a, c]}}\nservices: {a: {calls: [b]}, b: {calls: [a]}, c: {}, d: " +
			"{}}\n" +
			"variants: {x: {services: {c: {calls: [d]}}}}\n": "s.yaml:3:41: services.b.calls[0].to: ",
	} {
		if _, err := scenario.Parse("s.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestFilesThatCannotBeReadSaySo(t *testing.T) {
	if _, err := scenario.Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil ||
		!strings.HasPrefix(err.Error(), "scenario: open ") {
		t.Errorf("got %v", err)
	}
	if _, err := scenario.Load(t.TempDir()); err == nil {
		t.Error("a folder is a scenario")
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, []byte(good+strings.Repeat("#", strictyaml.MaxBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Load(large); err == nil ||
		!strings.Contains(err.Error(), ":1:1: the file is larger than 1 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestSizesAreBounded(t *testing.T) {
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for text, want := range map[string]string{
		good + "variants:\n" + list(51, "  v%d: {}\n"): "s.yaml:5:3: variants: 51 entries are too many; allowed: at most 50",
		"duration: 3m\nclients: {}\nservices:\n" + list(1001, "  s%d: {}\n"): "s.yaml:4:3: " +
			"services: 1001 entries are too many; allowed: at most 1000",
		"duration: 3m\nservices: {db: {}}\nclients:\n" + list(1001, "  f%d: {rate: 1, calls: [db]}\n"): "s.yaml:4:3: " +
			"clients: 1001 entries are too many; allowed: at most 1000",
	} {
		if _, err := scenario.Parse("s.yaml", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("got %.300v, want %s", err, want)
		}
	}
}
