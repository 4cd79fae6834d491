package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// measured is a row with one metric.
func measured(target string, m metric, values ...float64) row {
	r := row{target: target}
	for _, v := range values {
		r.samples = append(r.samples, sample{m: v})
	}
	return r
}

func TestMedianIsTheMiddleOfTheSamples(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{7}, 7}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 3, 2, 100}, 3.5}} {
		if got, ok := measured("x", cpu, c.values...).middle(cpu); got != c.want || !ok {
			t.Errorf("%v: %v, %t, want %v", c.values, got, ok, c.want)
		}
	}
	if _, ok := measured("x", cpu).middle(cpu); ok {
		t.Error("a median of nothing")
	}
	if _, ok := measured("x", cpu, 1).middle(rate); ok {
		t.Error("a median of what was not measured")
	}
	broken := measured("x", cpu, 1)
	broken.err = errors.New("ended")
	if _, ok := broken.middle(cpu); ok {
		t.Error("a median of a target that failed in a later pass")
	}
}

func TestVerdicts(t *testing.T) {
	atMost := promise{metric: cpu, peer: haproxy, limit: 0.6}
	atLeast := promise{metric: cpu, peer: haproxy, limit: 0.8, atLeast: true}
	absolute := promise{metric: cpu, limit: 12}
	more := promise{metric: cpu, of: ingress, peer: ourProxy, limit: 2, more: true}
	failed := measured(ourProxy, cpu, 1)
	failed.err = errors.New("ended")
	for name, c := range map[string]struct {
		promise promise
		rows    []row
		want    string
		value   float64
	}{
		"at the limit": {
			atMost, []row{measured(ourProxy, cpu, 6, 1, 100), measured(haproxy, cpu, 10, 8, 50)}, "ok", 0.6,
		},
		"above it":         {atMost, []row{measured(ourProxy, cpu, 6.1), measured(haproxy, cpu, 10)}, "MISS", 0.61},
		"enough":           {atLeast, []row{measured(ourProxy, cpu, 8), measured(haproxy, cpu, 10)}, "ok", 0.8},
		"too little":       {atLeast, []row{measured(ourProxy, cpu, 7.5), measured(haproxy, cpu, 10)}, "MISS", 0.75},
		"absolute":         {absolute, []row{measured(ourProxy, cpu, 12)}, "ok", 12},
		"absolute, above":  {absolute, []row{measured(ourProxy, cpu, 13)}, "MISS", 13},
		"not measured":     {atMost, []row{measured(haproxy, cpu, 10)}, "not measured", 0},
		"failed":           {atMost, []row{failed, measured(haproxy, cpu, 10)}, "not measured", 0},
		"more than a peer": {more, []row{measured(ourProxy, cpu, 10), measured(ingress, cpu, 13)}, "MISS", 3},
		"little more":      {more, []row{measured(ourProxy, cpu, 10), measured(ingress, cpu, 12)}, "ok", 2},
		"less than a peer": {more, []row{measured(ourProxy, cpu, 10), measured(ingress, cpu, 9)}, "ok", -1},
		"no peer":          {atMost, []row{measured(ourProxy, cpu, 1)}, "haproxy was not measured", 1},
		"a peer that did none": {
			atMost, []row{measured(ourProxy, cpu, 1), measured(haproxy, cpu, 0)}, "haproxy was not measured", 1,
		},
	} {
		v := c.promise.judge(c.rows)
		if v.word != c.want || v.value != c.value {
			t.Errorf("%s: %q at %v, want %q at %v", name, v.word, v.value, c.want, c.value)
		}
	}
}

func TestPromisesOfTheProject(t *testing.T) {
	var got []string
	for _, m := range []mode{
		shapeMode(options{}, shapes[0]), shapeMode(options{}, shapes[1]), shapeMode(options{}, shapes[2]),
		shapeMode(options{}, shapes[3]), unaryMode(options{}, unaryShapes[0]), unaryMode(options{}, unaryShapes[1]),
		chatMode(10000, time.Minute),
		idleMode(10000), streamMode(10 * gib),
	} {
		var out strings.Builder
		if err := writeVerdicts(&out, judge(m.promises, nil)); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
	}
	want := []string{
		"CPU per request, full policy: GET - - <= 1.00 × haproxy not measured",
		"the same - - <= 0.50 × envoy not measured",
		"CPU per request, full policy - - <= 0.60 × httputil not measured",
		"p99, saturated - - <= 1.50 × haproxy not measured",
		"CPU µs per request, ingress with limit and shed on - - <= 2.00 more than abate not measured",
		"CPU per request, one call in 100 traced - - <= 1.05 × abate not measured",
		"CPU per request, full policy: POST of 10 KB - - <= 1.20 × haproxy not measured",
		"the same - - <= 0.50 × envoy not measured",
		"CPU per request, full policy: GET, each on a connection of its own - - <= 1.20 × haproxy not measured",
		"the same - - <= 0.50 × envoy not measured",
		"CPU per request, full policy: GET with 40 fields - - <= 1.10 × haproxy not measured",
		"the same - - <= 0.50 × envoy not measured",
		"CPU per gRPC call, full policy, 32 × 1 - - <= 1.00 × nginx not measured",
		"CPU per gRPC call, full policy, 32 × 1 (aim) - - <= 1.30 × haproxy not measured",
		"the same - - <= 0.50 × envoy not measured",
		"CPU per gRPC call, full policy, 4 × 64 - - <= 1.00 × nginx not measured",
		"CPU per gRPC call, full policy, 4 × 64 (aim) - - <= 1.30 × haproxy not measured",
		"the same - - <= 0.50 × envoy not measured",
		"messages lost on streams - - <= 0.00 not measured",
		"streams that broke - - <= 0.00 not measured",
		"each open stream, KB - - <= 20.00 not measured",
		"each idle connection, KB - - <= 4.00 not measured",
		"throughput, Content-Length - - >= 0.80 × nginx not measured",
		"throughput, chunked - - >= 0.80 × nginx not measured",
		"memory flat: growth, MB - - <= 16.00 not measured",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestReport(t *testing.T) {
	m := mode{
		title:    "a title",
		repeats:  2,
		columns:  []column{spread(rate, "%.0f"), ratio(rate, haproxy), median(tailMs, "%.2f"), worst(others, "%.2f")},
		promises: []promise{{what: "speed", metric: rate, peer: haproxy, limit: 2, atLeast: true}},
	}
	rows := []row{
		{target: direct, samples: []sample{{rate: 400, others: 0.1}}},
		{target: haproxy, samples: []sample{{rate: 100, tailMs: 2, others: 0}, {rate: 300, tailMs: 4, others: 0.3},
			{rate: 200, tailMs: 3, others: 0.1}}, repeated: 3},
		{target: ourProxy, samples: []sample{{rate: 500, tailMs: 1, others: 0.2}}},
		{target: nginx, absent: "not installed"},
		{target: fast, samples: []sample{{rate: 1}}, err: errors.New("it ended")},
	}
	var out strings.Builder
	if err := report(&out, []string{"machine: x"}, m, rows); err != nil {
		t.Fatal(err)
	}
	const want = `machine: x
a title

target   req/s          × haproxy  p99 ms  others
direct   400            2.00       -       0.10
haproxy  200 (100–300)  1.00       3.00    0.30
abate    500            2.50       1.00    0.20
nginx: not installed
fasthttp: could not be measured: it ended

others: processors that other programs kept busy, the worst run; 3 of 9 runs repeated because it was above 0.25
BUSY MACHINE: 1 of 6 runs are disturbed all the same: read them with care

target of the project  abate  measured        wanted             verdict
speed                  500    2.50 × haproxy  >= 2.00 × haproxy  ok
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if line := m.line(sample{rate: 123, others: 0.5}); line != "req/s 123, others 0.50" {
		t.Errorf("one sample reads %q", line)
	}
}

func TestRatioToWhatWasNotMeasured(t *testing.T) {
	for _, rows := range [][]row{nil, {measured(nginx, rate, 0)}} {
		if got := ratio(rate, nginx).cell([]float64{1}, rows); got != none {
			t.Errorf("%v: %q", rows, got)
		}
	}
}

func TestDisturbanceIsNotSaidOfWhatDoesNotSuffer(t *testing.T) {
	lines := disturbances([]row{measured(nginx, others, 2)}, false)
	if len(lines) != 1 || strings.Contains(lines[0], "repeated") {
		t.Errorf("%q", lines)
	}
}
