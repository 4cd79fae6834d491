package abateprom_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateprom"
	"github.com/abate-go/abate/core"
)

func TestNewFailsWhereTheNamesAreTaken(t *testing.T) {
	full := prometheus.NewRegistry()
	if _, err := abateprom.New(full); err != nil {
		t.Fatal(err)
	}
	clash := prometheus.NewRegistry()
	clash.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "abate_hedges_total", Help: "Another."}))
	for name, c := range map[string]struct {
		registry prometheus.Registerer
		say      string
	}{
		"no registry":           {nil, "there is no registry"},
		"registered already":    {full, "make one Metrics for a registry and share it"},
		"one name is another's": {clash, `"abate_hedges_total"`},
	} {
		if m, err := abateprom.New(c.registry); err == nil || m != nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if found, err := clash.Gather(); err != nil || len(found) != 1 {
		t.Errorf("half of the metrics are registered: %v, %v", found, err)
	}
}

func TestTwoRegistriesDoNotMeet(t *testing.T) {
	a, b := metrics(t), metrics(t)
	a.guard(t, "s", abate.Policy{})
	g := b.guard(t, "s", abate.Policy{})
	_ = failing(g, 0)
	b.Endpoint("s", "/").Began()
	const calls = `abate_calls_total{outcome="failure",service="s"}`
	a.scrape(t).want(t, map[string]float64{calls: 0})
	b.scrape(t).want(t, map[string]float64{calls: 1, `http_client_concurrent_requests{service="s"}`: 1})
	if got := a.scrape(t).of("http_client_concurrent_requests"); len(got) != 0 {
		t.Errorf("requests of the other registry: %v", got)
	}
}

func TestOneRegistryUnderTwoLabels(t *testing.T) {
	registry := prometheus.NewRegistry()
	for _, zone := range []string{"east", "west"} {
		if _, err := abateprom.New(prometheus.WrapRegistererWith(prometheus.Labels{"zone": zone}, registry)); err != nil {
			t.Errorf("%s: %v", zone, err)
		}
	}
}

// TestAdjustGivesEqualObserversToOneService: policyfile compares the observers of two policies to see whether one
// changed.
func TestAdjustGivesEqualObserversToOneService(t *testing.T) {
	m, other := metrics(t), &tally{}
	adjusted := func(service string, before abate.Observer) abate.Observer {
		p := abate.Policy{Observer: before}
		m.Adjust(service, &p)
		return p.Observer
	}
	for name, before := range map[string]abate.Observer{
		"alone": nil, "with another": other, "after other metrics": metrics(t).observer("a"),
	} {
		first, second := adjusted("a", before), adjusted("a", before)
		if !reflect.ValueOf(first).Comparable() || first != second {
			t.Errorf("%s: %v and %v differ", name, first, second)
		}
		if adjusted("b", before) == first {
			t.Errorf("%s: another service has the same", name)
		}
	}
	if adjusted("a", other) == adjusted("a", &tally{}) {
		t.Error("a change of the observer behind ours is not seen")
	}
}

// tally counts events by kind.
type tally struct{ kinds [16]int }

func (o *tally) Observe(e abate.Event) { o.kinds[e.Kind]++ }

func TestAnObserverThatWasSetIsToldToo(t *testing.T) {
	m, before := metrics(t), &tally{}
	g := m.guard(t, "s", abate.Policy{Observer: before})
	_ = failing(g, 0)
	if before.kinds[core.CallEnded] != 1 {
		t.Errorf("the observer before ours heard of %d calls", before.kinds[core.CallEnded])
	}
	m.scrape(t).want(t, map[string]float64{`abate_calls_total{outcome="failure",service="s"}`: 1})
}

func TestAdjustingTwiceCountsOnce(t *testing.T) {
	m, second := metrics(t), metrics(t)
	for name, before := range map[string]abate.Observer{"alone": nil, "chained": &tally{}} {
		p := abate.Policy{Observer: before}
		for range 2 {
			m.Adjust(name, &p)
			second.Adjust(name, &p)
		}
		p.Observer.Observe(abate.Event{Kind: core.FallbackUsed})
		want := map[string]float64{fmt.Sprintf(`abate_fallbacks_total{service=%q}`, name): 1}
		m.scrape(t).want(t, want)
		second.scrape(t).want(t, want)
	}
}

func TestAGuardAddedTwiceIsShownOnce(t *testing.T) {
	m := metrics(t)
	g := m.guard(t, "s", abate.Policy{})
	m.Add(g, g)
	newer, err := abate.New("s", abate.Policy{Bulkhead: bulkheadOf(7)})
	if err != nil {
		t.Fatal(err)
	}
	m.Add(newer)
	p := m.scrape(t) // fails if a series is there twice
	p.want(t, map[string]float64{`circuit_breaker_state{service="s"}`: 0, `abate_bulkhead_limit{service="s"}`: 7})
}

func TestEndpointsAreBounded(t *testing.T) {
	m := metrics(t)
	first := m.Endpoint("s", "/0")
	for i := range 5_000 {
		m.Endpoint("s", fmt.Sprint("/", i)).Ended(200, 0)
	}
	if m.Endpoint("s", "/0") != first || m.Endpoint("s", "/999") == m.Endpoint("s", "/1000") {
		t.Error("an endpoint within the bound has no label of its own")
	}
	if m.Endpoint("s", "/1000") != m.Endpoint("s", "/4999") {
		t.Error("two endpoints past the bound have a label each")
	}
	p := m.scrape(t)
	p.want(t, map[string]float64{`http_client_requests_total{endpoint="other",service="s",status="200"}`: 4_000})
	if n := len(p.of("http_client_requests_total")); n != 1_001 {
		t.Errorf("%d series for 5,000 endpoints", n)
	}
	for i := range 5_000 {
		m.Endpoint(fmt.Sprint("stranger-", i), "/").Ended(200, 0)
	}
	p = m.scrape(t)
	p.want(t, map[string]float64{`http_client_requests_total{endpoint="other",service="other",status="200"}`: 4_001})
	if n := len(p.of("http_client_requests_total")); n > 2_001 {
		t.Errorf("%d series for 5,000 services", n)
	}
}

func TestStatusesAndAttemptsAreBounded(t *testing.T) {
	m := metrics(t)
	e := m.Endpoint("s", "/r")
	for status := -5; status < 2_000; status++ {
		e.Began()
		e.Ended(status, time.Millisecond)
	}
	for attempt := -5; attempt < 2_000; attempt++ {
		e.Retried(attempt)
	}
	p := m.scrape(t)
	p.want(t, map[string]float64{
		`http_client_requests_total{endpoint="/r",service="s",status="0"}`:          1,
		`http_client_requests_total{endpoint="/r",service="s",status="100"}`:        1,
		`http_client_requests_total{endpoint="/r",service="s",status="599"}`:        1,
		`http_client_requests_total{endpoint="/r",service="s",status="other"}`:      2_005 - 501,
		`http_client_retry_attempts_total{attempt="2",endpoint="/r",service="s"}`:   1,
		`http_client_retry_attempts_total{attempt="9",endpoint="/r",service="s"}`:   1,
		`http_client_retry_attempts_total{attempt="10+",endpoint="/r",service="s"}`: 1_990,
		`http_client_request_duration_seconds_count{endpoint="/r",service="s"}`:     2_005,
		`http_client_concurrent_requests{service="s"}`:                              0,
	})
	if got := len(p.of("http_client_requests_total")); got != 502 {
		t.Errorf("%d statuses", got)
	}
	if got := len(p.of("http_client_retry_attempts_total")); got != 9 {
		t.Errorf("%d attempt numbers", got)
	}
}

func TestRequestsInTheAirAreThoseOfTheService(t *testing.T) {
	m := metrics(t)
	a, b := m.Endpoint("s", "/a"), m.Endpoint("s", "/b")
	a.Began()
	b.Began()
	b.Began()
	m.Endpoint("t", "/").Began()
	m.scrape(t).want(t, map[string]float64{
		`http_client_concurrent_requests{service="s"}`: 3, `http_client_concurrent_requests{service="t"}`: 1,
	})
	b.Ended(200, 250*time.Millisecond)
	m.scrape(t).want(t, map[string]float64{
		`http_client_concurrent_requests{service="s"}`:                                     2,
		`http_client_request_duration_seconds_sum{endpoint="/b",service="s"}`:              0.25,
		`http_client_request_duration_seconds_bucket{endpoint="/b",service="s",le="0.1"}`:  0,
		`http_client_request_duration_seconds_bucket{endpoint="/b",service="s",le="0.25"}`: 1,
		`http_client_retry_attempts_total{attempt="2",endpoint="/b",service="s"}`:          0,
	})
}

// FuzzNames: whatever a service or a route is called, the page can be read.
func FuzzNames(f *testing.F) {
	f.Add("payment-service", "/users/{id}", 200, 1)
	f.Add("", "", 0, 0)
	f.Add("\xff\xfe", "/\xff", -1, 11)
	f.Add("\xfe", "a\"b\\c\nd", 999, 2)
	f.Fuzz(func(t *testing.T, service, endpoint string, status, attempt int) {
		m := metrics(t)
		g := m.guard(t, "g"+service, abate.Policy{})
		_ = failing(g, 0)
		for _, name := range []string{endpoint, endpoint + "\xff", endpoint + "\xfe"} {
			e := m.Endpoint(service, name)
			e.Began()
			e.Retried(attempt)
			e.Ended(status, time.Duration(attempt))
		}
		if _, err := m.registry.Gather(); err != nil {
			t.Errorf("%q %q: %v", service, endpoint, err)
		}
	})
}
