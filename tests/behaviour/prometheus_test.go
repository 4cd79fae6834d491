package behaviour_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/internal/loopback"
	"github.com/abate-go/abate/internal/needs"
)

// graph writes the metrics of a service graph as Tempo does: at each scrape shop has called orders 10 times more, and
// orders its database 30 times. Half of the answers of orders came within 100 ms, and all within 400 ms.
func graph(w http.ResponseWriter, n int64) {
	edge := func(client, server string, calls int64) {
		labels := fmt.Sprintf("client=%q,server=%q", client, server)
		fmt.Fprintf(w, "traces_service_graph_request_total{%s} %d\n", labels, calls)
		for le, share := range map[string]int64{"0.1": 2, "0.4": 1, "+Inf": 1} {
			fmt.Fprintf(w, "traces_service_graph_request_server_seconds_bucket{%s,le=%q} %d\n", labels, le, calls/share)
		}
	}
	edge("shop", "orders", 10*n)
	edge("orders", "db", 30*n)
}

// prometheus starts one that scrapes a target, and returns its address.
func prometheus(t *testing.T, target string) string {
	t.Helper()
	program := needs.Program(t, "prometheus")
	listen, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	config := fmt.Sprintf("scrape_configs:\n- job_name: tempo\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\n"+
		"  static_configs: [{targets: [%q]}]\n", strings.TrimPrefix(target, "http://"))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir,
		"data"),
		"--web.listen-address="+listen, "--log.level=warn")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context of the test has ended
	return "http://" + listen
}

func TestARealPrometheusSaysWhoCallsWhom(t *testing.T) {
	if testing.Short() {
		return // a real Prometheus has to scrape a few times
	}
	var scrapes atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		graph(w, scrapes.Add(1))
	}))
	defer target.Close()
	address := prometheus(t, target.URL)
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	for range ticks.C { // until there are rates; the test's own limit ends it
		files, err := audit.Prometheus(context.Background(), nil, address, "1m")
		if err != nil {
			continue // it is not up yet
		}
		r := audit.Run(files, audit.Options{})
		if len(r.Form.Calls) < 2 {
			continue
		}
		calls := map[string]float64{}
		for _, c := range r.Form.Calls {
			calls[c.From+" "+c.To] = c.PerRequest.Or(1)
		}
		if len(calls) != 2 || calls["shop orders"] != 1 || math.Abs(calls["orders db"]-3) > 0.01 {
			t.Errorf("calls %v", calls)
		}
		for _, s := range r.Form.Services {
			if rate := s.Rate.Or(0); (s.Name == "shop") != (rate > 0) {
				t.Errorf("the rate of %s is %v", s.Name, rate)
			}
			if own := s.OwnTime.Or(0).Round(time.Millisecond); s.Name == "orders" && own != 100*time.Millisecond {
				t.Errorf("orders takes %v", own)
			}
		}
		return
	}
}
