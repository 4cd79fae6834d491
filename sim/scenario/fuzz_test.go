package scenario_test

import (
	"math"
	"testing"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/*.bad.yaml"} {
		for _, file := range glob(f, pattern) {
			f.Add(read(f, file))
		}
	}
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scenario.Parse("testdata/s.yaml", data)
		if (s == nil) == (err == nil) {
			t.Fatalf("scenario %v and error %v", s, err)
		}
		if err != nil {
			return
		}
		for i := range s.Clients {
			fleet := &s.Clients[i]
			positive(t, 1+fleet.Rate, float64(1+fleet.Users), float64(1+fleet.Once), float64(1+fleet.Instances))
		}
		for i := range s.Variants {
			for _, service := range s.ServicesOf(&s.Variants[i]) {
				if c := service.Capacity(); !(c > 0) {
					t.Fatalf("%s has capacity %v", service.Name, c)
				}
			}
			e := s.Estimate(&s.Variants[i])
			positive(t, float64(e.Events), float64(e.Attempts), float64(e.Bytes))
			if !s.IsPopulation() && e.Events < 50_000 && e.Bytes < 64<<20 {
				run(t, s, &s.Variants[i], e)
			}
		}
	})
}

func positive(t *testing.T, numbers ...float64) {
	t.Helper()
	for _, x := range numbers {
		if !(x > 0) || math.IsInf(x, 0) {
			t.Fatalf("%v is no positive number", x)
		}
	}
}

// run is a whole run of a small scenario.
func run(t *testing.T, s *scenario.Scenario, v *scenario.Variant, estimate scenario.Estimate) {
	t.Helper()
	e, err := engine.New(s, v)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(1, false, func() bool { t.Fatal("the run does not end"); return true })
	if err != nil {
		t.Fatal(err)
	}
	if r.Events > estimate.Events || r.Attempts > estimate.Attempts {
		t.Fatalf("%d events and %d attempts are more than the estimate, %+v", r.Events, r.Attempts, estimate)
	}
	for _, service := range r.Services {
		for _, visits := range append(service.Visits, service.Capacity) {
			if math.IsNaN(visits) || visits < 0 {
				t.Fatalf("%s: %v", service.Name, visits)
			}
		}
	}
}
