package sim_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
)

// storm is the checkout outage, a hundredth of its size.
const storm = `
name: storm
duration: 40s
clients: {shop: {rate: 100, instances: 5, calls: [pay]}}
services: {pay: {workers: 12, serviceTime: exponential 100ms}}
faults: [{outage: pay, at: 5s, for: 5s}]
`

func TestTheSameStudyGivesTheSameBytes(t *testing.T) {
	needs.Whole(t)
	s := read(t, storm, "variants: {naive: "+naive+", guarded: {policy: {defaults: {attemptTimeout: 1s}}}}",
		"expect: [collapse > 50%]")
	bytes := func(o sim.Options) string {
		o.Runs = 8
		b, err := json.Marshal(study(t, s, o))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := bytes(sim.Options{Seed: 7, Parallel: 1})
	all := sim.Options{Seed: 7, Parallel: 1, Margin: true, Advice: true}
	one := bytes(all)
	for _, parallel := range []int{2, 5} {
		all.Parallel = parallel
		if bytes(sim.Options{Seed: 7, Parallel: parallel}) != want || bytes(all) != one {
			t.Errorf("%d runs at the same time give another result than one", parallel)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(processors)
		if bytes(sim.Options{Seed: 7}) != want {
			t.Errorf("%d processors give another result than one run at a time", processors)
		}
	}
	if bytes(sim.Options{Seed: 8}) == want {
		t.Error("another seed gives the same result")
	}
}

// numbers visits every float64 below a value, by the path to it.
func numbers(path string, v reflect.Value, visit func(path string, f float64)) {
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		visit(path, v.Float())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			numbers(path, v.Elem(), visit)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			numbers(fmt.Sprintf("%s[%d]", path, i), v.Index(i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			numbers(path+"."+v.Type().Field(i).Name, v.Field(i), visit)
		}
	}
}

func TestNoResultHasWhatIsNoNumber(t *testing.T) {
	needs.Whole(t)
	for name, lines := range map[string][]string{
		"nothing is ever answered": {"clients: {f: {rate: 20, calls: [s]}}", "services: {s: {workers: 1, serviceTime: 1h}}",
			"faults: [{outage: s, at: 1s, for: 2s}]"},
		"everything fails": {"clients: {f: {rate: 20, calls: [s]}}", "services: {s: {errorRate: 100%}}",
			"faults: [{outage: s, at: 1s, for: 2s}]"},
		"nothing is offered": {
			"clients: {f: {rate: 0.000001, calls: [s]}}", "services: {s: {workers: 1, serviceTime: 1ms}}",
			"faults: [{outage: s, at: 1s, for: 2s}]",
		},
		"no limits at all": {
			"clients: {f: {rate: 20, calls: [s]}}", "services: {s: {}}", "faults: [{outage: s, at: 1s, for: 2s, mode: refuse}]",
		},
		"from the first moment": {"clients: {f: {rate: 20, calls: [s]}}", "services: {s: {workers: 3, serviceTime: 1ms}}",
			"faults: [{outage: s, at: 0s, for: 2s}]"},
		"a burst and then nothing": {"clients: {f: {once: 20, calls: [s]}}", "services: {s: {workers: 3, serviceTime: 1ms}}",
			"faults: [{outage: s, at: 1s, for: 2s}]"},
		"pools": {"clients: {f: {rate: 20, calls: [{to: s, pool: 2}]}}",
			"services: {s: {workers: 3, serviceTime: 1ms, connections: {max: 5}}}", "faults: [{restart: s, at: 1s, for: 2s}]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, append(lines, "duration: 5s", "variants: {a: "+plain+", b: {}}",
				"expect: [goodput > 10%, goodput(after) > 10%, 'latency(p99) < 1s', amplification(s) < 2, collapse < 10%]")...)
			r := study(t, s, sim.Options{Runs: 4, Margin: true, Map: true, Advice: true})
			numbers("Result", reflect.ValueOf(*r), func(path string, f float64) {
				if (math.IsNaN(f) || math.IsInf(f, 0)) && !strings.Contains(path, "Detail") {
					t.Errorf("%s is %v", path, f)
				}
			})
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAssumptionsNameEveryChoiceOfTheModel(t *testing.T) {
	s := read(t, storm, "variants: {only: "+naive+"}")
	byName := map[string]sim.Assumption{}
	for _, a := range sim.Assumptions(s, &s.Variants[0]) {
		if a.Setting == "" || a.Value == "" || a.Why == "" || strings.HasSuffix(a.Why, ".") {
			t.Errorf("incomplete: %+v", a)
		}
		if _, twice := byName[a.Setting]; twice {
			t.Errorf("%s is named twice", a.Setting)
		}
		byName[a.Setting] = a
	}
	model := reflect.TypeFor[scenario.Model]()
	for i := range model.NumField() {
		key := "model." + model.Field(i).Tag.Get("yaml")
		a, named := byName[key]
		if !named || !a.Default {
			t.Errorf("%s is not among the assumptions as a default: %+v", key, a)
		}
		// Any other value is no default.
		other := *s
		field := reflect.ValueOf(&other.Model).Elem().Field(i)
		switch field.Kind() {
		case reflect.String:
			words := strings.Split(model.Field(i).Tag.Get("enum"), "|")
			field.SetString(words[1])
		case reflect.Float64:
			field.SetFloat(0.123)
		default:
			field.Set(reflect.ValueOf(7 * time.Second))
		}
		for _, b := range sim.Assumptions(&other, &other.Variants[0]) {
			if b.Setting == key && (b.Default || b.Value == a.Value) {
				t.Errorf("%s was changed, and reads %+v", key, b)
			}
		}
	}
	for _, key := range []string{"scale", "warmUp", "duration", "clients.shop.arrivals", "clients.shop.instances",
		"services.pay.workers", "services.pay.queue", "services.pay.queue.order"} {
		if _, named := byName[key]; !named {
			t.Errorf("%s is not among the assumptions", key)
		}
	}
}

func TestAVeryLargeFleetRunsAsAPopulation(t *testing.T) {
	const phones = `
duration: 5m
clients: {phones: {once: 600000, within: 1m, calls: [api], method: %s}}
services: {api: {workers: 1200, serviceTime: 100ms}}
faults: [{outage: api, at: 0s, for: 1m, mode: refuse}]
variants: {only: {policy: {defaults: {maxRetries: 100, initialDelay: 1s, maxDelay: 20s, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}}}
expect: ["goodput > 99%%"]
`
	amplification := map[string]float64{}
	for _, method := range []string{scenario.Exact, scenario.Cohort} {
		r := study(t, read(t, fmt.Sprintf(phones, method)), sim.Options{Runs: 1})
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Variants[0].Measures {
			if m.Name == "amplification(api)" {
				amplification[method] = m.Mean
			}
		}
		within(t, "amplification, "+method, amplification[method], 3, 20)
	}
	within(t, "cohort / exact", amplification[scenario.Cohort]/amplification[scenario.Exact], 0.98, 1.02)
}

func TestAStudyLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	study(t, read(t, storm, "variants: {only: "+naive+"}", "expect: [collapse < 10%]"), sim.Options{
		Parallel: 8, Runs: 20, Margin: true,
	})
	nobodyLeft(t, before)
}
