//go:build !race

package rehearse

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim/scenario"
)

// At alertscale 1 the alerts and the drill are of full size, and the test takes eight minutes: it needs -timeout 30m.
var alertScale = flag.Float64("alertscale", 0.1, "factor for all times of the alerts that a real Prometheus watches "+
	"a drill with")

// realPrometheus starts a Prometheus that scrapes target under rules, and returns its address.
func realPrometheus(t testing.TB, target, rules string, scrape time.Duration) string {
	t.Helper()
	address, _ := prometheusUnder(t,
		fmt.Sprintf("global: {scrape_interval: %[1]dms, scrape_timeout: %[1]dms, evaluation_interval: "+
			"%[1]dms}\nrule_files: [%[2]q]\nscrape_configs: [{job_name: drill, static_configs: [{targets: [%[3]q]}]}]\n",
			scrape.Milliseconds(), rules, target))
	return address
}

// prometheusUnder starts a Prometheus with a configuration, and returns its address and the file with that.
func prometheusUnder(t testing.TB, config string, flags ...string) (address, file string) {
	t.Helper()
	dir, address := t.TempDir(), clitest.FreeAddress(t)
	file = filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	server := exec.Command(needs.Program(t, "prometheus"), append([]string{"--config.file=" + file,
		"--storage.tsdb.path=" + filepath.Join(dir, "data"), "--storage.tsdb.retention.time=1h", "--web.listen-address=" +
			address, "--log.level=warn", "--web.enable-lifecycle"}, flags...)...)
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt) // it has nothing to keep
		_ = server.Wait()
		if t.Failed() {
			t.Logf("Prometheus said:\n%s", said.String())
		}
	})
	patience, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if answer, err := http.Get("http://" + address + "/-/ready"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return address, file
			}
		}
		select {
		case <-tick.C:
		case <-patience.Done():
			t.Fatalf("Prometheus is not ready after a minute:\n%s", said.String())
		}
	}
}

// firedFor is when a series was there first and last.
type firedFor struct{ first, last time.Time }

// seriesSeen asks Prometheus when the series of an expression were there, by the values of labels.
func seriesSeen(t testing.TB, address, expr string, from, to time.Time, labels ...string) map[string]firedFor {
	t.Helper()
	query := url.Values{"query": {expr}, "start": {unix(from)}, "end": {unix(to)}, "step": {"0.25"}}
	answer, err := http.Get("http://" + address + "/api/v1/query_range?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	var result struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(body, &result) != nil {
		t.Fatalf("%v, status %d: %s", err, answer.StatusCode, body)
	}
	found := map[string]firedFor{}
	at := func(v [2]any) time.Time { return time.UnixMilli(int64(v[0].(float64) * 1000)) }
	for _, series := range result.Data.Result {
		s := firedFor{at(series.Values[0]), at(series.Values[len(series.Values)-1])}
		values := make([]string, len(labels))
		for i, label := range labels {
			values[i] = series.Metric[label]
		}
		name := strings.Join(values, " ")
		if old, twice := found[name]; twice && old.first.Before(s.first) {
			s.first = old.first
		}
		found[name] = s
	}
	return found
}

func unix(at time.Time) string { return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64) }

// quickstartPolicy is the policy of a variant of the built-in drill, as a policy file.
func quickstartPolicy(t testing.TB, variant string) string {
	t.Helper()
	s, err := scenario.Load(filepath.Join("..", "..", "..", "scenarios", "quickstart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Variants {
		if s.Variants[i].Name == variant {
			return string((*policyfile.File).Format(s.Variants[i].Guards))
		}
	}
	t.Fatalf("no variant %s", variant)
	return ""
}

// watchedAct runs an act of the built-in drill while a real Prometheus watches it under the rules of the act's policy,
// and returns which alerts fired when, when the trouble began, and whether the act went as it should: on a machine that
// is busy with other things it may not.
func watchedAct(t testing.TB, act string) (alerts map[string]firedFor, began time.Time, passed bool) {
	t.Helper()
	const before = 4 * time.Second
	seconds := func(n float64) string { return fmt.Sprintf("%dms", int(n**alertScale*1000)) }
	rules := rulesOf(t, quickstartPolicy(t, act), "--scale", strconv.FormatFloat(*alertScale, 'g', -1, 64))
	target := clitest.FreeAddress(t)
	prometheus := realPrometheus(t, target, rules, time.Duration(float64(10*time.Second)**alertScale))
	var out, errs bytes.Buffer
	from := time.Now()
	code := everything.DrillCommand(context.Background(), []string{
		"--admin", target, "--act", act, "--quiet", "--before", before.String(), "--outage", seconds(30), "--after",
		seconds(200),
	}, &out, &errs)
	if code > 1 {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	to := time.Now()
	calls := seriesSeen(t, prometheus, `abate_calls_total{service="payment-service"} > 0`, from, to,
		"service")["payment-service"]
	if calls.first.IsZero() {
		t.Fatal("Prometheus has seen no calls")
	}
	alerts = seriesSeen(t, prometheus, `ALERTS{alertstate="firing"}`, from, to, "alertname", "severity")
	return alerts, from.Add(time.Second + before), code == 0 // after the warm-up of a second
}

func TestARealPrometheusSeesTheStormOfTheDrillAndNoneUnderTheGuard(t *testing.T) {
	needs.Alone(t) // two acts of half a minute
	t.Run("unguarded", func(t *testing.T) {
		alerts, began, _ := watchedAct(t, "unguarded")
		if _, fired := alerts["RequestAmplification critical"]; !fired { // the page takes the place of its warning
			t.Error("nobody is woken: no RequestAmplification critical")
		}
		for name, when := range alerts {
			t.Logf("at scale %v: %s fired %v after the trouble began", *alertScale, name, when.first.Sub(began))
			if when.first.Before(began) {
				t.Errorf("%s fired %v before the trouble", name, began.Sub(when.first))
			}
		}
	})
	t.Run("guarded", func(t *testing.T) {
		alerts, began, passed := watchedAct(t, "guarded")
		for name, when := range alerts {
			// Whatever the machine does, a budget holds. Else what is slow here looks like a slow service.
			if passed || strings.HasPrefix(name, "RequestAmplification") {
				t.Errorf("%s fired %v after the trouble began", name, when.first.Sub(began))
			}
		}
	})
}
