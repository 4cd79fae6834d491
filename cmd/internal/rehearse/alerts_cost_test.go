//go:build !race

package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateprom"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policyfile"
)

// The fleet that the cost of the rules is measured with: each program calls two of the others, and has a gate.
const programs, podsOfEach = 200, 5

// program makes the metrics of one program, with what all its instances show, and calls for act.
func program(b *testing.B, i int) (page http.Handler, act func()) {
	b.Helper()
	registry := prometheus.NewRegistry()
	metrics, err := abateprom.New(registry)
	if err != nil {
		b.Fatal(err)
	}
	metrics.ShowPlainNames(false)
	var guards []*abate.Guard
	for k := range 2 {
		name, p := fmt.Sprintf("service-%d", (7*i+13*k+1)%programs), abate.DefaultPolicy()
		metrics.Adjust(name, &p)
		g, err := abate.New(name, p)
		if err != nil {
			b.Fatal(err)
		}
		metrics.Add(g)
		guards = append(guards, g)
	}
	name, protection := fmt.Sprintf("service-%d", i), policyfile.DefaultProtection().Protection
	metrics.AdjustProtection(name, &protection)
	gate, err := inbound.NewGate(name, protection)
	if err != nil {
		b.Fatal(err)
	}
	metrics.AddGate(gate)
	calls := 0
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true}), func() {
		for _, g := range guards {
			calls++
			_, _ = abate.Do(context.Background(), g, func(context.Context) (int, error) {
				if calls%50 == 0 {
					return 0, errors.New("down")
				}
				return 0, nil
			})
		}
	}
}

// BenchmarkRulesOfAThousandPods has a real Prometheus scrape 1,000 pods of 200 programs every 15 seconds under the
// rules, and then, while it does nothing else, asks it each rule again and again. It reports the processor time of one
// evaluation, of each rule and of all, and how many samples it reads, which is the same on every machine.
func BenchmarkRulesOfAThousandPods(b *testing.B) {
	pages, acts := make([]http.Handler, programs), make([]func(), programs)
	for i := range programs {
		pages[i], acts[i] = program(b, i)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var pod int
		if _, err := fmt.Sscan(r.URL.Query().Get("pod"), &pod); err == nil {
			pages[pod/podsOfEach].ServeHTTP(w, r)
		}
	}))
	b.Cleanup(server.Close)
	var targets strings.Builder
	for i := range programs * podsOfEach {
		fmt.Fprintf(&targets, "{targets: [%q], labels: {__param_pod: \"%d\", instance: \"pod-%d\", job: service-%d, "+
			"namespace: ns-%d, cluster: west}}, ", strings.TrimPrefix(server.URL, "http://"), i, i, i/podsOfEach,
			i/podsOfEach%20)
	}
	rules := rulesOf(b, "defaults: {}")
	address, config := prometheusUnder(b, fmt.Sprintf("global: {scrape_interval: 15s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: x, static_configs: [%s]}]\n", rules, targets.String()))
	stop, tick := time.NewTimer(100*time.Second), time.NewTicker(time.Second)
	defer stop.Stop()
	defer tick.Stop()
	for loading := true; loading; {
		select {
		case <-stop.C:
			loading = false
		case <-tick.C:
			for _, act := range acts {
				act()
			}
		}
	}
	at := unix(time.Now().Add(-20 * time.Second))
	if err := os.WriteFile(config, []byte("global: {scrape_interval: 1h}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	if answer, err := http.Post("http://"+address+"/-/reload", "", nil); err != nil || answer.StatusCode != http.StatusOK {
		b.Fatal(err, answer)
	}
	settled(b, address)
	all, read := 0.0, 0.0
	for _, r := range writtenRules(b, rules) {
		const times = 16
		ask := func() (samples float64) {
			answer, err := http.Get("http://" + address + "/api/v1/query?" + url.Values{"query": {r.Expr},
				"time": {at}, "stats": {"all"}}.Encode())
			if err != nil || answer.StatusCode != http.StatusOK {
				b.Fatalf("%s%s: %v", r.Record, r.Alert, err)
			}
			defer answer.Body.Close()
			text, _ := io.ReadAll(answer.Body)
			_, found, _ := strings.Cut(string(text), `"totalQueryableSamples":`)
			if _, err := fmt.Sscanf(found, "%f", &samples); err != nil {
				b.Fatalf("%s%s: %v: %.300s", r.Record, r.Alert, err, text)
			}
			return samples
		}
		samples := ask()
		read += samples
		b.ReportMetric(samples, r.Record+r.Alert+"-samples")
		before := processorTime(b, address)
		for range times {
			ask()
		}
		took := 1000 * (processorTime(b, address) - before) / times
		all += took
		b.ReportMetric(took, r.Record+r.Alert+"-cpu-ms")
	}
	b.ReportMetric(all, "all-cpu-ms")
	b.ReportMetric(read, "all-samples")
}

// settled waits until a Prometheus has dealt with the end of all its targets, which is not the rules' to pay.
func settled(b *testing.B, address string) {
	b.Helper()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for before := processorTime(b, address); ; {
		<-tick.C
		now := processorTime(b, address)
		if now-before < 0.05 {
			return
		}
		before = now
	}
}

// processorTime is what a Prometheus has used so far, in seconds.
func processorTime(b *testing.B, address string) (seconds float64) {
	b.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	_, found, _ := strings.Cut(string(text), "\nprocess_cpu_seconds_total ")
	if _, err := fmt.Sscan(found, &seconds); err != nil {
		b.Fatal(err)
	}
	return seconds
}
