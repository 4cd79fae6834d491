package abateprom_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/abate-go/abate"
	inner "github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/internal/series/process"
)

const openMetrics = "application/openmetrics-text; version=1.0.0"

// Two programs write the same metrics: ours for the proxy, and the client library. Scrapers cannot tell them apart.
func TestThePageOfTheProxyIsThatOfTheClientLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // nothing changes between one page and the other
		w := newWorld(t)
		w.act(t)
		e := w.Endpoint("payment", "/slow\n\"path\"\\")
		for _, took := range []time.Duration{time.Millisecond, time.Second, time.Minute} {
			e.Began()
			e.EndedIn(200, took, "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
		}
		registry := new(series.Registry)
		if err := registry.Register((*inner.Metrics)(w.Metrics)); err != nil {
			t.Fatal(err)
		}
		ours := series.Handler(registry)
		theirs := promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
		ask := func(h http.Handler, target, accept, encoding string) (string, http.Header) {
			req := httptest.NewRequest(http.MethodGet, target, nil)
			req.Header.Set("Accept", accept)
			req.Header.Set("Accept-Encoding", encoding)
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, req)
			return unpacked(t, answer.Result()), answer.Header()
		}
		for _, target := range []string{"/", "/?name[]=abate_calls_total&name[]=abate_queue_delay_seconds"} {
			for _, accept := range []string{"", openMetrics, "application/openmetrics-text;version=0.0.1;q=0.9,*/*;q=0.1",
				"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.4",
				"text/plain;version=0.0.4;q=0.4,application/openmetrics-text;version=1.0.0;q=0.3", "text/html"} {
				for _, encoding := range []string{"", "gzip", "identity", "deflate, gzip;q=0.5", "gzip;q=0"} {
					got, header := ask(ours, target, accept, encoding)
					want, wanted := ask(theirs, target, accept, encoding)
					about := fmt.Sprintf("%s, Accept: %s, Accept-Encoding: %s", target, accept, encoding)
					for _, name := range []string{"Content-Type", "Content-Encoding"} {
						if header.Get(name) != wanted.Get(name) {
							t.Errorf("%s: %s is %q, want %q", about, name, header.Get(name), wanted.Get(name))
						}
					}
					differ(t, about, got, want)
					if strings.Contains(want, "# {trace_id") != strings.HasSuffix(want, "# EOF\n") && target == "/" {
						t.Errorf("%s: exemplars do not come with OpenMetrics", about)
					}
				}
			}
		}
	})
}

// unpacked reads an answer that may be compressed.
func unpacked(t *testing.T, resp *http.Response) string {
	t.Helper()
	var body io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		body = z
	}
	text, err := io.ReadAll(body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %s: %s", err, resp.Status, text)
	}
	return string(text)
}

// differ says in which line two pages differ first.
func differ(t *testing.T, about, got, want string) {
	t.Helper()
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%s: line %d is %q, want %q", about, i+1, a[i], b[i])
			return
		}
	}
	if len(a) != len(b) || len(a) < 10 {
		t.Errorf("%s: %d lines, want %d", about, len(a), len(b))
	}
}

// shown are the families of a page by their names, which a parser of others reads.
func shown(t testing.TB, registry *series.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	answer := httptest.NewRecorder()
	series.Handler(registry).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// What a program shows of itself has the names, types, labels and units that everybody's dashboards know, and means the
// same: theirs is between ours before and after.
func TestAProcessIsShownAsByTheClientLibrary(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // no collection in between
	registry, library := new(series.Registry), prometheus.NewRegistry()
	units := map[string]string{}
	for _, c := range []series.Collector{process.Go{}, process.Process{}} {
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
		c.Describe(func(d *series.Desc) {
			units[d.Name] = d.Unit
			if !strings.HasSuffix(d.Help, ".") || len(d.Help) < 15 {
				t.Errorf("the help of %s does not help: %q", d.Name, d.Help)
			}
		})
	}
	library.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	before := shown(t, registry)
	families, err := library.Gather()
	after := shown(t, registry)
	if err != nil || len(after) != len(families) {
		t.Errorf("%v, %d metrics, want %d", err, len(after), len(families))
	}
	for _, want := range families {
		name := want.GetName()
		first, last := before[name], after[name]
		if first == nil || last.GetType() != want.GetType() || units[name] != want.GetUnit() {
			t.Errorf("%s is %v of unit %q, want %v of %q", name, last.GetType(), units[name], want.GetType(), want.GetUnit())
			continue
		}
		a, b, c := first.GetMetric()[0], want.GetMetric()[0], last.GetMetric()[0]
		if fmt.Sprint(a.GetLabel()) != fmt.Sprint(b.GetLabel()) {
			t.Errorf("%s has the labels %v, want %v", name, a.GetLabel(), b.GetLabel())
		}
		if b.GetSummary() != nil {
			if fmt.Sprint(a.GetSummary()) != fmt.Sprint(b.GetSummary()) {
				t.Errorf("%s is %v, want %v", name, a.GetSummary(), b.GetSummary())
			}
			continue
		}
		values := []float64{value(a), value(b), value(c)}
		low, high := min(values[0], values[2]), max(values[0], values[2])
		slack := 0.05*high + 65536
		if strings.HasPrefix(name, "go_gc_") || slices.Contains(unchanging, name) {
			slack = 0
		}
		if name == "go_goroutines" {
			high += 10 // the library reads its collectors with some
		}
		if values[1] < low-slack || values[1] > high+slack ||
			high < 1e6 && (values[1] < low*0.5 || values[1] > high*2) {
			t.Errorf("%s is %v, and in between %v", name, []float64{values[0], values[2]}, values[1])
		}
	}
}

// unchanging are those that have one value for the whole life of the process.
var unchanging = []string{"go_info", "go_sched_gomaxprocs_threads", "process_max_fds", "process_start_time_seconds",
	"process_virtual_memory_max_bytes"}

func value(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }

// Scrapers that ask for it are told since when a counter counts, so that they know a restart when they see one.
func TestCountersAndHistogramsSaySinceWhenTheyCount(t *testing.T) {
	before := time.Now()
	m := metrics(t)
	m.guard(t, "s", abate.Policy{})
	m.Endpoint("s", "/").Ended(200, time.Millisecond)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*timestamppb.Timestamp{}
	for _, f := range families {
		one := f.GetMetric()[0]
		if found[f.GetName()] = one.GetCounter().GetCreatedTimestamp(); one.GetHistogram() != nil {
			found[f.GetName()] = one.GetHistogram().GetCreatedTimestamp()
		}
	}
	for _, name := range []string{
		"abate_calls_total", "abate_http_client_request_duration_seconds", "http_client_requests_total"} {
		if at := found[name].AsTime(); at.Before(before) || at.After(time.Now()) {
			t.Errorf("%s counts since %v", name, at)
		}
	}
	if at := found["abate_circuit_breaker_state"]; at != nil {
		t.Errorf("a gauge counts since %v", at)
	}
}

// What programs read from the registry is as it was too: the bucket without a bound is there only with an exemplar.
func TestTheLastBucketIsThereOnlyWithAnExemplar(t *testing.T) {
	m := metrics(t)
	for took, want := range map[time.Duration]int{time.Second: 13, time.Minute: 14} {
		endpoint := took.String()
		m.Endpoint("s", endpoint).EndedIn(200, took, "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, one := range f.GetMetric() {
				if f.GetName() == "abate_http_client_request_duration_seconds" && one.GetLabel()[0].GetValue() == endpoint &&
					len(one.GetHistogram().GetBucket()) != want {
					t.Errorf("%v: %d buckets, want %d", took, len(one.GetHistogram().GetBucket()), want)
				}
			}
		}
	}
}

// constant is a collector of ours with the metrics that are given to it.
type constant []series.Sample

func (c constant) Describe(send func(*series.Desc)) {
	for _, s := range c {
		send(s.Desc)
	}
}

func (c constant) Collect(send func(series.Sample)) {
	for _, s := range c {
		send(s)
	}
}

// FuzzTheTextIsThatOfTheClientLibrary: whatever is in help, labels, exemplars and numbers, both write the same, and a
// parser of others reads what was meant.
func FuzzTheTextIsThatOfTheClientLibrary(f *testing.F) {
	f.Add("Help.", "a", "b", "id", 1.0, uint64(1))
	f.Add("a\\b\n\"c\"", "\"", "\\", "\n", math.Inf(-1), uint64(1<<63))
	f.Add("\\n", "\xff\xfe", "\u2028\x00", "\\\"", math.NaN(), uint64(1_000_000))
	f.Add("", "", "", "", math.Copysign(0, -1), uint64(0))
	f.Add("# EOF\n# TYPE x counter\n", "{a=\"b\"}", "1 2", "}", 1e300, uint64(12345678901234567))
	f.Fuzz(func(t *testing.T, help, a, b, id string, v float64, n uint64) {
		help = strings.ToValidUTF8(help, "?") // it is ours
		labels, at := []string{"z", "a"}, time.Unix(1_700_000_000, 125_000_000)
		exemplar := &series.Exemplar{Labels: []series.Label{{Name: "trace_id", Value: strings.ToValidUTF8(id, "")}}, Value: v,
			At: at}
		registry := new(series.Registry)
		histogram := series.Sample{Desc: series.NewDesc("h_seconds", help), Kind: series.HistogramKind,
			Distribution: &series.Distribution{Count: n, Sum: v, Buckets: []series.Bucket{
				{Bound: 0.5, Count: n / 3, Exemplar: exemplar}, {Bound: 10, Count: n / 2}, {Bound: math.Inf(1), Count: n}}}}
		if err := registry.Register(constant{series.Gauge(series.NewDesc("g", help, labels...), v, a, b),
			series.Count(series.NewDesc("c_total", help, labels...), v, a, b), histogram}); err != nil {
			t.Fatal(err)
		}
		ours, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		a, b = strings.ToValidUTF8(a, "\uFFFD"), strings.ToValidUTF8(b, "\uFFFD")
		library := prometheus.NewRegistry()
		library.MustRegister(fixed{
			prometheus.MustNewConstMetric(prometheus.NewDesc("g", help, labels, nil), prometheus.GaugeValue, v, a, b),
			prometheus.MustNewConstMetric(prometheus.NewDesc("c_total", help, labels, nil), prometheus.CounterValue, v, a, b),
		})
		theirs, err := library.Gather()
		if err != nil {
			t.Fatal(err)
		}
		kind, name := dto.MetricType_HISTOGRAM, "h_seconds"
		theirs = append(theirs, &dto.MetricFamily{Name: &name, Help: &help, Type: &kind, Metric: []*dto.Metric{{
			Histogram: dtoHistogram(histogram.Distribution)}}})
		for format, encode := range map[series.Format]expfmt.Format{
			series.Text: expfmt.NewFormat(expfmt.TypeTextPlain), series.OpenMetrics: expfmt.NewFormat(expfmt.TypeOpenMetrics),
		} {
			var want bytes.Buffer
			encoder := expfmt.NewEncoder(&want, encode)
			for _, family := range theirs {
				if err := encoder.Encode(family); err != nil {
					t.Fatal(err)
				}
			}
			if err := encoder.(expfmt.Closer).Close(); err != nil {
				t.Fatal(err)
			}
			if got := format.End(format.Append(nil, ours...)); !bytes.Equal(got, want.Bytes()) {
				t.Errorf("%q\nwant\n%q", got, want.Bytes())
			}
		}
		m := shown(t, registry)["g"].GetMetric()[0]
		if read := m.GetGauge().GetValue(); read != v && !math.IsNaN(v) || m.GetLabel()[0].GetValue() != b ||
			m.GetLabel()[1].GetValue() != a {
			t.Errorf("%v of %q and %q is read as %v", v, a, b, m)
		}
	})
}

// fixed is a collector of the client library with the metrics that are given to it.
type fixed []prometheus.Metric

func (f fixed) Describe(to chan<- *prometheus.Desc) {
	for _, m := range f {
		to <- m.Desc()
	}
}

func (f fixed) Collect(to chan<- prometheus.Metric) {
	for _, m := range f {
		to <- m
	}
}

// dtoHistogram is a histogram as the client library writes one with an exemplar.
func dtoHistogram(d *series.Distribution) *dto.Histogram {
	h := &dto.Histogram{SampleCount: &d.Count, SampleSum: &d.Sum}
	for i, b := range slices.Clone(d.Buckets[:len(d.Buckets)-1]) {
		bucket := &dto.Bucket{UpperBound: &d.Buckets[i].Bound, CumulativeCount: &d.Buckets[i].Count}
		if e := b.Exemplar; e != nil {
			bucket.Exemplar = &dto.Exemplar{Value: &e.Value, Timestamp: timestamppb.New(e.At), Label: []*dto.LabelPair{
				{Name: &e.Labels[0].Name, Value: &e.Labels[0].Value}}}
		}
		h.Bucket = append(h.Bucket, bucket)
	}
	return h
}
