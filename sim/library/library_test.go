// Package library tests the scenarios that come with Abate: that each of them comes to the verdict that its file
// promises, and that the published arithmetic they rest on is what the simulator counts.
package library_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
)

const (
	folder = "../../scenarios"
	canary = "canary/must-fail.yaml"
)

// load reads a scenario of the library. Every call returns one of its own, to be changed at will.
func load(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Load(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func files(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios in %s: %v", folder, err)
	}
	names := []string{canary}
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// Under the race detector, which makes runs ten times slower, each variant has one run and no verdict.
func TestEveryScenarioKeepsItsPromise(t *testing.T) {
	needs.Whole(t)
	begin := time.Now()
	for _, name := range files(t) {
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) { promise(t, name) })
	}
	t.Logf("the library took %.1f s", time.Since(begin).Seconds())
}

func promise(t *testing.T, name string) {
	s, begin := load(t, name), time.Now()
	o, quick := sim.Options{}, racing
	if quick {
		o = sim.Options{Runs: 1, Exactly: true}
	}
	r, err := sim.Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	want := sim.Pass
	if name == canary {
		want = sim.Fail
	}
	for i := range r.Variants {
		v := &r.Variants[i]
		t.Logf("%-20s %-4s %4d runs, %6.2f M events", v.Name, v.Verdict, v.Runs, float64(v.Events)/1e6)
		if len(v.Expectations) == 0 {
			t.Errorf("variant %s expects nothing", v.Name)
		}
		if !quick && v.Verdict != want {
			t.Errorf("variant %s: %s, want %s\n%v", v.Name, v.Verdict, want, r.Err())
		}
	}
	t.Logf("%.1f s", time.Since(begin).Seconds())
}

// A file that nobody reads in one go is no example.
func TestScenariosAreShortAndExplained(t *testing.T) {
	for _, name := range files(t) {
		limit := 60
		switch name {
		case "checkout-outage.yaml":
			limit = 39
		case "amplification-chain.yaml": // twelve fleets
			limit = 80
		}
		lines := strings.Split(strings.TrimSuffix(read(t, name), "\n"), "\n")
		if len(lines) > limit {
			t.Errorf("%s has %d lines; allowed: at most %d", name, len(lines), limit)
		}
		for i, line := range lines {
			if n := len([]rune(line)); n > 160 {
				t.Errorf("%s:%d has %d columns; allowed: at most 160", name, i+1, n)
			}
		}
		s := load(t, name)
		if s.Name == "" || s.About == "" {
			t.Errorf("%s lacks name or about", name)
		}
		for i := range s.Variants {
			if v := &s.Variants[i]; v.About == "" && name != canary {
				t.Errorf("%s: variant %s lacks about", name, v.Name)
			}
		}
		if text := read(t, "README.md"); !strings.Contains(text, "("+name+")") {
			t.Errorf("README.md does not mention %s", name)
		}
	}
}
