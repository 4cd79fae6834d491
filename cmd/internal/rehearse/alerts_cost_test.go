//go:build !race

package rehearse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policyfile"
)

// The fleet that the cost of the rules is measured with: each program calls two of the others, and has a gate.
const programs, podsOfEach = 200, 5

// program makes the metrics of one program, and calls for act. One call in so many fails; none if it is 0.
func program(t *testing.T, i, of int) (page *series.Registry, act func()) {
	t.Helper()
	metrics, registry := registered(t)
	metrics.ShowPlainNames(false)
	var guards []*abate.Guard
	for k := range 2 {
		name, p := fmt.Sprintf("service-%d", (7*i+13*k+1)%programs), abate.DefaultPolicy()
		metrics.Adjust(name, &p)
		g, err := abate.New(name, p)
		if err != nil {
			t.Fatal(err)
		}
		metrics.Add(g)
		guards = append(guards, g)
	}
	name, protection := fmt.Sprintf("service-%d", i), policyfile.DefaultProtection().Protection
	metrics.AdjustProtection(name, &protection)
	gate, err := inbound.NewGate(name, protection)
	if err != nil {
		t.Fatal(err)
	}
	metrics.AddGate(gate)
	calls := 0
	return registry, func() {
		for _, g := range guards {
			calls++
			_, _ = abate.Do(context.Background(), g, func(context.Context) (int, error) {
				if of > 0 && calls%of == 0 {
					return 0, errors.New("down")
				}
				return 0, nil
			})
		}
	}
}

// history is what a program shows at each scrape, by the labels of a series, the name among them.
type history map[string]*recorded

type recorded struct {
	labels [][2]string
	values []float64 // NaN: it is not there
}

// see adds what is shown at scrape n.
func (h history) see(t *testing.T, n int, page *series.Registry, wanted *regexp.Regexp) {
	t.Helper()
	families, err := page.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !wanted.MatchString(f.Desc.Name) {
			continue
		}
		for _, s := range f.Samples {
			labels := [][2]string{{"__name__", f.Desc.Name}}
			for i, value := range s.Values {
				labels = append(labels, [2]string{s.Desc.Labels[i], value})
			}
			key := fmt.Sprint(labels)
			if h[key] == nil {
				h[key] = &recorded{labels: labels}
			}
			for len(h[key].values) < n {
				h[key].values = append(h[key].values, math.NaN())
			}
			h[key].values = append(h[key].values, s.Value)
		}
	}
}

// remoteWrite is a request of Prometheus' remote write: protocol buffers, in Snappy without any compression.
type remoteWrite struct{ message []byte }

func field(to []byte, number int, content []byte) []byte {
	to = append(to, byte(number<<3|2))
	to = uvarint(to, uint64(len(content)))
	return append(to, content...)
}

func uvarint(to []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		to = append(to, byte(v)|0x80)
	}
	return append(to, byte(v))
}

// stale is what Prometheus takes as the end of a series.
var stale = math.Float64frombits(0x7ff0000000000002)

// add adds a series, whose first value is of a time.
func (w *remoteWrite) add(r *recorded, more [][2]string, from time.Time) {
	labels := slices.Concat(r.labels, more)
	slices.SortFunc(labels, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	var series []byte
	for _, l := range labels {
		series = field(series, 1, field(field(nil, 1, []byte(l[0])), 2, []byte(l[1])))
	}
	there := false
	for i, v := range r.values {
		if math.IsNaN(v) {
			if !there {
				continue
			}
			v, there = stale, false
		} else {
			there = true
		}
		sample := []byte{1<<3 | 1}
		for bits, n := math.Float64bits(v), 0; n < 8; n++ {
			sample = append(sample, byte(bits>>(8*n)))
		}
		sample = uvarint(append(sample, 2<<3), uint64(from.Add(time.Duration(i)*scraping).UnixMilli()))
		series = field(series, 2, sample)
	}
	w.message = field(w.message, 1, series)
}

func (w *remoteWrite) send(t testing.TB, address string) {
	t.Helper()
	body := uvarint(nil, uint64(len(w.message)))
	for part := range slices.Chunk(w.message, 1<<16) {
		n := len(part) - 1
		body = append(append(body, 61<<2, byte(n), byte(n>>8)), part...)
	}
	request, err := http.NewRequest(http.MethodPost, "http://"+address+"/api/v1/write", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Encoding", "snappy")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if said, _ := io.ReadAll(answer.Body); answer.StatusCode/100 != 2 {
		t.Fatalf("status %d: %s", answer.StatusCode, said)
	}
}

// filled starts a Prometheus that has been told what 1,000 pods of 200 programs show at several scrapes, of the metrics
// that the rules read, and returns its address and the time of the last scrape.
func filled(t *testing.T, of, scrapes int, wanted *regexp.Regexp) (address string, at time.Time) {
	t.Helper()
	all := make([]history, programs)
	synctest.Test(t, func(t *testing.T) {
		for i := range all {
			all[i] = history{}
			page, act := program(t, i, of)
			for n := range scrapes {
				for range int(scraping / time.Second) {
					act()
					time.Sleep(time.Second)
				}
				all[i].see(t, n, page, wanted)
			}
		}
	})
	address, _ = prometheusUnder(t, "global: {scrape_interval: 1h}\n", "--web.enable-remote-write-receiver")
	at = time.Now().Truncate(time.Second)
	from := at.Add(-time.Duration(scrapes-1) * scraping)
	for i, h := range all {
		var w remoteWrite
		for pod := range podsOfEach {
			for _, r := range h {
				w.add(r, [][2]string{{"instance", fmt.Sprint("pod-", pod)}, {"job", fmt.Sprint("service-", i)},
					{"namespace", fmt.Sprint("ns-", i%20)}, {"cluster", "west"}}, from)
			}
		}
		w.send(t, address)
	}
	return address, at
}

// asks evaluates an expression and returns how many samples were read, and the result.
func asks(t *testing.T, address, expr string, at time.Time) (samples int, result []*recorded) {
	t.Helper()
	answer, err := http.Get("http://" + address + "/api/v1/query?" + url.Values{"query": {expr}, "time": {unix(at)},
		"stats": {"all"}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var said struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
			Stats struct {
				Samples struct{ TotalQueryableSamples int }
			}
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, status %d: %s", err, answer.StatusCode, expr)
	}
	for _, one := range said.Data.Result {
		r := &recorded{}
		for name, v := range one.Metric {
			r.labels = append(r.labels, [2]string{name, v})
		}
		v, _ := strconv.ParseFloat(fmt.Sprint(one.Value[1]), 64)
		r.values = []float64{v}
		result = append(result, r)
	}
	return said.Data.Stats.Samples.TotalQueryableSamples, result
}

// The processor time of an evaluation goes with the samples that it reads, and their number is the same on every
// machine. What the rules read at every scrape is what a share needs below the line, and what is in trouble; anything
// more that every instance shows has to be looked at seldom.
func TestTheRulesReadFewSamplesOfAThousandPods(t *testing.T) {
	needs.Program(t, "prometheus")
	rules := writtenRules(t, rulesOf(t, "defaults: {}"))
	var names []string
	for _, r := range rules {
		names = append(names, namedMetrics.FindAllString(r.Expr, -1)...)
	}
	wanted := regexp.MustCompile("^(" + strings.Join(names, "|") + ")$")
	for _, c := range []struct {
		about          string
		of, fast, slow int
	}{{"all is well", 0, 15_500, 31_500}, {"half of the services have many retries", 50, 56_000, 31_500}} {
		address, at := filled(t, c.of, 8, wanted)
		read := map[bool]int{}
		for _, level := range []bool{true, false, false} { // the ratios read what was recorded before
			for _, r := range rules {
				if r.Record == "" || (r.Record == "abate:level") != level {
					continue
				}
				_, result := asks(t, address, r.Expr, at)
				var w remoteWrite
				for _, one := range result {
					w.add(one, [][2]string{{"__name__", r.Record}}, at)
				}
				w.send(t, address)
			}
			at = at.Add(time.Second)
		}
		for _, r := range rules {
			samples, _ := asks(t, address, r.Expr, at)
			slow := r.Record == "abate:level" || slices.Contains(slowAlerts, r.Alert)
			read[slow] += samples
			t.Logf("%s: %s%s reads %d samples", c.about, r.Record, r.Alert, samples)
		}
		t.Logf("%s: %d samples at every scrape, %d at every fourth", c.about, read[false], read[true])
		if read[false] > c.fast || read[true] > c.slow || read[false] == 0 {
			t.Errorf("%s: more than %d and %d", c.about, c.fast, c.slow)
		}
	}
}

// slowAlerts are those of the group that is evaluated seldom.
var slowAlerts = []string{"ConcurrencySpike", "IdempotencyKeysFull", "EndpointsLost", "PolicyNotInForce",
	"CertificateEnds"}
