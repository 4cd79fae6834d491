package series_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/series"
)

// asked asks the page, with a value for each field that is not "".
func asked(t *testing.T, registry *series.Registry, target, accept, encoding string) (page string, h http.Header) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, target, nil)
	for name, value := range map[string]string{"Accept": accept, "Accept-Encoding": encoding} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	answer := httptest.NewRecorder()
	series.Handler(registry).ServeHTTP(answer, req)
	var body io.Reader = answer.Body
	if answer.Header().Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		body = z
	}
	text, err := io.ReadAll(body)
	if err != nil || answer.Code != http.StatusOK {
		t.Fatalf("%v, status %d: %s", err, answer.Code, text)
	}
	return string(text), answer.Header()
}

func TestTheScraperChoosesTheFormat(t *testing.T) {
	registry := registered(t, sent{series.Gauge(series.NewDesc("a", "A."), 1)})
	const text, open = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		"application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"
	other := func(from, version, escaping string) string {
		return strings.NewReplacer("1.0.0", version, "underscores", escaping).Replace(from)
	}
	for accept, want := range map[string]string{
		"": text, "*/*": text, "text/html": text, "text/plain": text, "text/plain;version=0.0.3": text,
		"nonsense;;=;,,": text, "application/openmetrics-text;q=nonsense": text,
		"application/openmetrics-text; version=1.0.0":                     open,
		"application/openmetrics-text":                                    other(open, "0.0.1", "underscores"),
		"application/openmetrics-text;version=2.0.0":                      text,
		"application/openmetrics-text;q=0.5;version=1.0.0,text/plain":     text,
		"text/plain;q=0.5,application/openmetrics-text;version=1.0.0":     open,
		"application/openmetrics-text;version=1.0.0;q=0,*/*":              text,
		"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8": other(open, "1.0.0", "allow-utf-8"),
		"text/plain;version=0.0.4;escaping=\"\x00\r\n":                    text,
		// Prometheus 3, and one that takes protocol buffers first
		"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;" +
			"version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2," +
			"*/*;q=0.1": other(open, "1.0.0", "allow-utf-8"),
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6," +
			"application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3": other(open, "0.0.1",
			"underscores"),
	} {
		page, header := asked(t, registry, "/metrics", accept, "")
		if got := header.Get("Content-Type"); got != want {
			t.Errorf("%q: %s, want %s", accept, got, want)
		}
		if strings.HasSuffix(page, "# EOF\n") == strings.HasPrefix(want, "text/plain") {
			t.Errorf("%q: the page is not of its type: %s", accept, page)
		}
	}
}

func TestThePageIsCompressedForThoseWhoRatherTakeThat(t *testing.T) {
	samples := sent{}
	d := series.NewDesc("a", "A.", "number")
	for i := range 5_000 { // more than is written at once
		samples = append(samples, series.Gauge(d, float64(i), fmt.Sprintf("%06d", i)))
	}
	samples = append(samples, series.Gauge(series.NewDesc("z", "Z."), 1))
	registry := registered(t, samples)
	whole := page(t, registry, series.Text)
	for encoding, want := range map[string]string{
		"": "", "gzip": "gzip", "deflate, gzip;q=0.5": "gzip", "identity": "", "gzip, identity": "", "*": "", "br": "",
		"gzip;q=0": "", "gzip;q=0.5, identity;q=0.4": "gzip", "identity;q=0, gzip": "gzip", "zstd, gzip": "gzip",
		"gzip;q=x": "",
	} {
		text, header := asked(t, registry, "/metrics", "", encoding)
		if got := header.Get("Content-Encoding"); got != want {
			t.Errorf("%q: encoded as %q, want %q", encoding, got, want)
		}
		if text != whole {
			t.Errorf("%q: %d bytes, want %d", encoding, len(text), len(whole))
		}
	}
}

func TestOnlyTheMetricsThatAreNamedAreShown(t *testing.T) {
	var all sent
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, series.Gauge(series.NewDesc(name, "Help."), 1))
	}
	got, _ := asked(t, registered(t, all), "/metrics?name[]=c&name[]=a&name[]=x", "", "")
	if want := page(t, registered(t, all[0:1], all[2:]), series.Text); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestAPageWithASeriesTwiceIsNotServed(t *testing.T) {
	d := series.NewDesc("a", "A.", "x")
	for _, values := range [][2]string{{"1", "1"}, {"\xff", "\xfe"}} {
		registry := registered(t, sent{series.Gauge(d, 1, values[0]), series.Gauge(d, 2, values[1])})
		answer := httptest.NewRecorder()
		series.Handler(registry).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if answer.Code != http.StatusInternalServerError || !strings.Contains(answer.Body.String(), "a is there twice") {
			t.Errorf("%q: status %d: %s", values, answer.Code, answer.Body)
		}
	}
}
