package scenario_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/scenario"
)

func TestScaleDividesEverything(t *testing.T) {
	s, err := scenario.Load("testdata/good/scaled.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if f := s.Clients[0]; f.Rate != 200 || f.Instances != 1 || f.Calls[0].Pool != 20 {
		t.Errorf("checkout: %+v", f)
	}
	if f := s.Clients[1]; f.Curve[0].Rate != 10 {
		t.Errorf("batch: %+v", f)
	}
	if f := s.Clients[2]; f.Users != 20 {
		t.Errorf("people: %+v", f)
	}
	same := s.Services[0]
	if same.Replicas != 2 || same.Workers != 12 || same.Queue.Limit != 20 || same.Connections.Max != 100 ||
		same.Connections.Cores != 1 || same.SlowsDown != 0.05 {
		t.Errorf("payment: %+v", same)
	}
	large := s.ServicesOf(&s.Variants[1])[0]
	if large.Replicas != 4 || large.Workers != 6 || large.Queue.Limit != 20 {
		t.Errorf("payment, enlarged: %+v", large)
	}
	if s.Scale != 50 {
		t.Errorf("scale: %d", s.Scale)
	}
}

func TestScaleOneChangesNothing(t *testing.T) {
	if a, b := parse(t, good), parse(t, "scale: 1\n"+good); !reflect.DeepEqual(a, b) {
		t.Errorf("got  %+v\nwant %+v", b, a)
	}
}

// A pool that two variants share is divided once.
func TestScaleDividesEveryPoolOnce(t *testing.T) {
	s := parse(t, "scale: 10\nduration: 3m\nclients: {shop: {rate: 100, calls: [{to: a, pool: 40}]}}\n"+
		"services: {a: {replicas: 5, calls: [{to: db, pool: 8}]}, db: {workers: 50, serviceTime: 10ms, connections: {max: "+
		"100, cores: 20, cost: 1ms}}}\n"+
		"variants: {x: {services: {db: {workers: 70}}}, y: {services: {db: {workers: 90}}}}\n")
	got := []int{s.Clients[0].Calls[0].Pool, s.Services[0].Replicas, s.Services[0].Calls[0].Pool}
	for i := range s.Variants {
		services := s.ServicesOf(&s.Variants[i])
		got = append(got, services[0].Calls[0].Pool, services[1].Workers, services[1].Connections.Max,
			services[1].Connections.Cores)
	}
	if want := []int{4, 1, 4, 4, 7, 10, 2, 4, 9, 10, 2}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Offered load against capacity, and instances against load, are the same at every scale that a file may have.
func TestScaleKeepsTheRatios(t *testing.T) {
	const text = "duration: 3m\nclients: {shop: {rate: 10000, instances: 60, calls: [db]}, bulk: {once: 1200, within: " +
		"1m, calls: [db]}}\n" +
		"services: {db: {replicas: 12, workers: 120, serviceTime: exponential 100ms, queue: {limit: 600}}}\nfaults: [{at: " +
		"30s, for: 30s, outage: db, share: 50%}]\n"
	full := parse(t, text)
	for _, n := range []int{2, 3, 6, 12, 60} {
		s, err := scenario.Parse("s.yaml", fmt.Appendf(nil, "scale: %d\n%s", n, text))
		if err != nil {
			if n != 12 && n != 60 || !strings.Contains(err.Error(), "too few replicas") { // one replica has no half
				t.Error(err)
			}
			continue
		}
		by := float64(n)
		got := []float64{s.Clients[0].Rate * by, float64(s.Clients[0].Instances) * by, float64(s.Clients[1].Once) * by,
			s.Services[0].Capacity() * by,
			float64(s.Services[0].Replicas*s.Services[0].Queue.Limit) * by}
		want := []float64{full.Clients[0].Rate, 60, 1200, full.Services[0].Capacity(), 12 * 600}
		for i := range want {
			if d := got[i] - want[i]; d > 1e-6*want[i] || d < -1e-6*want[i] {
				t.Errorf("scale %d: got %v, want %v", n, got, want)
			}
		}
		if s.Clients[1].Within != time.Minute {
			t.Error("scale changes times")
		}
	}
}

func TestTheScaleThatAnErrorNamesIsGood(t *testing.T) {
	for _, name := range []string{
		"too-many-events", "too-much-memory", "scale-does-not-divide", "scale-instances", "scale-variant", "scale-share",
	} {
		text := string(read(t, "testdata/"+name+".bad.yaml"))
		_, after, ok := strings.Cut(mistakes[name][0], "scale: ")
		if _, such, found := strings.Cut(after, "such as "); found {
			after = such
		}
		var n int
		if _, err := fmt.Sscanf(after, "%d", &n); !ok || err != nil {
			t.Fatalf("%s names no scale", name)
		}
		lines := strings.Split(text, "\n")
		for i := range lines {
			if strings.HasPrefix(lines[i], "scale:") {
				lines[i] = ""
			}
		}
		if _, err := scenario.Parse("s.yaml", fmt.Appendf(nil, "scale: %d\n%s", n, strings.Join(lines, "\n"))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
