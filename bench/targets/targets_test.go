package main

import (
	"strings"
	"testing"
)

const sample = `goos: linux
BenchmarkFast/impl=abate/mode=seq-2     1000    10.0 ns/op   0 B/op   0 allocs/op
BenchmarkFast/impl=abate/mode=seq-2     1000    90.0 ns/op   0 B/op   0 allocs/op
BenchmarkFast/impl=abate/mode=seq-2     1000    20.0 ns/op   0 B/op   0 allocs/op
BenchmarkFast/impl=slow/mode=seq        1000    400 ns/op   64 B/op   3 allocs/op
BenchmarkFast/impl=quick/mode=seq-16    1000    100 ns/op   64 B/op   3 allocs/op
BenchmarkFast/impl=floor/mode=seq-2     1000    5 ns/op     0 B/op    0 allocs/op
BenchmarkTurns/impl=abate/mode=seq-2    1       7 ns/op     110 cpu-ns/op   1.5 cpu-ratio   80 peer-cpu-ns/op
PASS
`

func sampleRun(t *testing.T) results {
	t.Helper()
	run := make(results)
	if err := parse(run, strings.NewReader(sample)); err != nil {
		t.Fatal(err)
	}
	return run
}

func TestMedianIsTheMiddleSampleNotTheMean(t *testing.T) {
	got, ran := sampleRun(t).median("Fast/impl=abate/mode=seq", "ns/op")
	if !ran || got != 20 {
		t.Errorf("median = %v, %v; want 20, true", got, ran)
	}
}

func TestVerdicts(t *testing.T) {
	const ours, quick, slow, floor = "Fast/impl=abate/mode=seq", "Fast/impl=quick/mode=seq",
		"Fast/impl=slow/mode=seq", "Fast/impl=floor/mode=seq"
	const turns = "Turns/impl=abate/mode=seq"
	tests := []struct {
		name    string
		promise promise
		ratio   float64
		want    verdict
	}{
		{"kept at the limit", promise{ours: ours, peers: []string{quick}, limit: 0.2}, 0.2, kept},
		{"missed by time", promise{ours: ours, peers: []string{quick}, limit: 0.19}, 0.2, missed},
		{"missed by allocations", promise{ours: quick, peers: []string{slow}, limit: 1, allocs: 2}, 0.25, missed},
		{"fastest peer counts", promise{ours: ours, peers: []string{slow, quick}, limit: 0.1}, 0.2, missed},
		{"added cost only", promise{ours: ours, peers: []string{quick}, floor: floor, limit: 0.16}, 15.0 / 95, kept},
		{"ours did not run", promise{ours: "gone", peers: []string{quick}, limit: 1}, 0, notRun},
		{"floor did not run", promise{ours: ours, peers: []string{quick}, floor: "gone", limit: 1}, 0, notRun},
		{"no peer ran", promise{ours: ours, peers: []string{"gone"}, limit: 1}, 0, noPeer},
		{"by turns, kept", promise{ours: turns, peers: []string{quick}, byTurns: true, limit: 1.5, allocs: anyNumber},
			1.5, kept},
		{"by turns, missed", promise{ours: turns, peers: []string{quick}, byTurns: true, limit: 1.4, allocs: anyNumber},
			1.5, missed},
		{"by turns, not run", promise{ours: ours, peers: []string{quick}, byTurns: true, limit: 2}, 0, notRun},
		{"not judged", promise{ours: ours, peers: []string{quick}, allocs: anyNumber}, 0.2, forInfo},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.promise.judge(sampleRun(t))
			if got.verdict != test.want || got.ratio != test.ratio {
				t.Errorf("verdict %q, ratio %v; want %q, %v", got.verdict, got.ratio, test.want, test.ratio)
			}
			met := test.want == kept || test.want == forInfo
			if allMet([]line{got}) != met {
				t.Errorf("allMet = %v for verdict %q", !met, got.verdict)
			}
		})
	}
}

func TestMissingRowsArePrintedAsMissing(t *testing.T) {
	var out strings.Builder
	if err := write(&out, judge(promises, make(results))); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "not run"); got != len(promises) {
		t.Errorf("%d rows say \"not run\", want all %d:\n%s", got, len(promises), &out)
	}
}

func TestEveryPromiseNamesAPeer(t *testing.T) {
	for _, p := range promises {
		if len(p.peers) == 0 {
			t.Errorf("%q compares nothing", p.what)
		}
		for _, row := range append(p.peers, p.ours) {
			if !strings.Contains(row, "/impl=") || !strings.Contains(row, "/mode=") {
				t.Errorf("%q: row %q has no impl or mode", p.what, row)
			}
		}
	}
}
