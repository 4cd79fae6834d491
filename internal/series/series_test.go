package series_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/series"
)

func TestCountingAllocatesNothing(t *testing.T) {
	c := series.NewCounters(series.NewDesc("a_total", "A.", "service")).With("s")
	h := series.NewHistograms(series.NewDesc("b_seconds", "B.", "service"), []float64{1, 2}).With("s")
	if n := testing.AllocsPerRun(100, func() {
		c.Inc()
		h.Observe(1.5)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNothingIsLostWhenManyCountAndOneReads(t *testing.T) {
	const workers, rounds, more = 8, 500, 100_000
	counters := series.NewCounters(series.NewDesc("a_total", "A.", "service"))
	histograms := series.NewHistograms(series.NewDesc("b_seconds", "B.", "service"), []float64{1, 2})
	registry := registered(t, counters, histograms)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range rounds {
				counters.With(fmt.Sprint(i % 3)).Inc()
				h := histograms.With("s")
				h.Observe(float64(i % 4))
				h.ObserveWith(0.5, series.Label{Name: "trace_id", Value: fmt.Sprint(i)})
			}
			h := histograms.With("s")
			for range more { // as many at once as there can be
				h.Observe(3)
			}
		})
	}
	for range 10 {
		for _, f := range gathered(t, registry) {
			for _, s := range f.Samples {
				if d := s.Distribution; d != nil && d.Buckets[2].Count != d.Count {
					t.Errorf("%d values, and %d below infinity", d.Count, d.Buckets[2].Count)
				}
			}
		}
	}
	all.Wait()
	found := gathered(t, registry)
	sum := 0.0
	for _, s := range found[0].Samples {
		sum += s.Value
	}
	if sum != workers*rounds {
		t.Errorf("%v counted, want %d", sum, workers*rounds)
	}
	d := found[1].Samples[0].Distribution
	if d.Count != workers*(2*rounds+more) || d.Sum != workers*(2*rounds+3*more) ||
		d.Buckets[0].Count != workers*rounds*3/2 {
		t.Errorf("observed: %+v", d)
	}
}

func TestAValueIsInTheFirstBucketThatItIsNotAbove(t *testing.T) {
	h := series.NewHistograms(series.NewDesc("b_seconds", "B."), []float64{1, 2})
	for _, v := range []float64{math.Inf(-1), 0, 1, 1.01, 2, 2.01, math.Inf(1)} {
		h.With().Observe(v)
	}
	h.Collect(func(s series.Sample) {
		for i, want := range []uint64{3, 5, 7} {
			if got := s.Distribution.Buckets[i].Count; got != want {
				t.Errorf("bucket %d has %d, want %d", i, got, want)
			}
		}
	})
	h = series.NewHistograms(series.NewDesc("b_seconds", "B."), []float64{1})
	h.With().Observe(math.NaN())
	h.Collect(func(s series.Sample) {
		if b := s.Distribution.Buckets; b[0].Count != 0 || b[1].Count != 1 {
			t.Errorf("what is no number is in %+v", b)
		}
	})
}

func TestANameIsThereOnce(t *testing.T) {
	a, b := series.NewDesc("a_total", "A."), series.NewDesc("b_total", "B.")
	registry := registered(t, series.NewCounters(a))
	again := registry.Register(pair{b, series.NewDesc("a_total", "Another.")})
	within := registry.Register(pair{b, b})
	for about, err := range map[string]error{"in another collector": again, "within a collector": within} {
		if err == nil || !strings.Contains(err.Error(), "_total") {
			t.Errorf("%s: %v", about, err)
		}
	}
	if err := registry.Register(series.NewCounters(b)); err != nil {
		t.Errorf("what could not be registered has taken a name: %v", err)
	}
}

// pair is a collector with two descriptions and no samples.
type pair [2]*series.Desc

func (p pair) Describe(send func(*series.Desc)) {
	send(p[0])
	send(p[1])
}

func (pair) Collect(func(series.Sample)) {}

func TestThePageIsInTheOrderOfNamesAndLabels(t *testing.T) {
	z := series.NewCounters(series.NewDesc("z_total", "Z.", "service", "class"))
	z.With("b", "x").Inc()
	z.With("a", "y").Inc()
	z.With("a", "y").Inc()
	z.With("b", "a").Inc()
	none := series.NewCounters(series.NewDesc("n_total", "None.", "service"))
	registry := registered(t, z, none, sent{series.Gauge(series.NewDesc("a", "A \\ \"quoted\"\nhelp.", "x"), -0.25,
		"\"\\\n\xff")})
	const want = `# HELP a A \\ "quoted"\nhelp.
# TYPE a gauge
a{x="\"\\\n` + "\uFFFD" + `"} -0.25
# HELP z_total Z.
# TYPE z_total counter
z_total{class="a",service="b"} 1
z_total{class="x",service="b"} 1
z_total{class="y",service="a"} 2
`
	if got := page(t, registry, series.Text); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// sent is a collector of samples.
type sent []series.Sample

func (s sent) Describe(send func(*series.Desc)) {
	said := map[*series.Desc]bool{}
	for _, one := range s {
		if !said[one.Desc] {
			send(one.Desc)
		}
		said[one.Desc] = true
	}
}

func (s sent) Collect(send func(series.Sample)) {
	for _, one := range s {
		send(one)
	}
}

func TestOpenMetricsHasUnitsExemplarsAndAnEnd(t *testing.T) {
	h := series.NewHistograms(series.NewDesc("d_seconds", "D."), []float64{1, 2.5})
	h.With().Observe(1)
	h.With().ObserveWith(2, series.Label{Name: "trace_id", Value: `a"b`}, series.Label{Name: "span_id", Value: "c"})
	percent := series.NewDesc("g_percent", "G.")
	percent.Unit = "percent"
	odd := series.NewDesc("odd", "No counter's name.")
	summary := series.Sample{Desc: series.NewDesc("s", "S."), Kind: series.SummaryKind, Distribution: &series.Distribution{
		Count: 3, Sum: 4, Quantiles: []series.Quantile{{Share: 0.5, Value: 1}, {Share: 1, Value: 2.5}}}}
	registry := registered(t, h, sent{series.Gauge(percent, 1e6), series.Count(odd, 2), summary,
		series.Count(series.NewDesc("c_total", "C."), 1e21)})
	const want = `# HELP c C.
# TYPE c counter
c_total 1e+21
# HELP d_seconds D.
# TYPE d_seconds histogram
d_seconds_bucket{le="1.0"} 1
d_seconds_bucket{le="2.5"} 2 # {trace_id="a\"b",span_id="c"} 2.0 TIME
d_seconds_bucket{le="+Inf"} 2
d_seconds_sum 3.0
d_seconds_count 2
# HELP g_percent G.
# TYPE g_percent gauge
# UNIT g_percent percent
g_percent 1e+06
# HELP odd No counter's name.
# TYPE odd unknown
odd 2.0
# HELP s S.
# TYPE s summary
s{quantile="0.5"} 1.0
s{quantile="1.0"} 2.5
s_sum 4.0
s_count 3
# EOF
`
	got := page(t, registry, series.OpenMetrics)
	before, after, _ := strings.Cut(got, `"} 2.0 `)
	at, _, _ := strings.Cut(after, "\n")
	if got = strings.Replace(got, at, "TIME", 1); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, what := range []string{"# UNIT", "# EOF", "trace_id", "unknown"} {
		if strings.Contains(page(t, registry, series.Text), what) {
			t.Errorf("the older format has %q", what)
		}
	}
	var seconds float64
	if _, err := fmt.Sscan(at, &seconds); err != nil || before == got || math.Abs(seconds-now()) > 3600 {
		t.Errorf("the exemplar is of %q", at)
	}
}

func now() float64 { return float64(time.Now().Unix()) }

func registered(t *testing.T, all ...series.Collector) *series.Registry {
	t.Helper()
	registry := new(series.Registry)
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	return registry
}

func gathered(t *testing.T, registry *series.Registry) []*series.Family {
	t.Helper()
	found, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func page(t *testing.T, registry *series.Registry, f series.Format) string {
	t.Helper()
	return string(f.End(f.Append(nil, gathered(t, registry)...)))
}

func BenchmarkCounting(b *testing.B) {
	c := series.NewCounters(series.NewDesc("a_total", "A.", "service")).With("s")
	h := series.NewHistograms(series.NewDesc("b_seconds", "B.", "service"), []float64{.01, .1, 1, 2}).With("s")
	b.Run("counter", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Inc()
		}
	})
	b.Run("histogram", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h.Observe(0.05)
		}
	})
}
