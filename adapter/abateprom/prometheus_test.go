package abateprom_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/loopback"
	"github.com/abate-go/abate/internal/needs"
)

// realPrometheus is one that scrapes some metrics twice a second.
type realPrometheus struct {
	address string // http://127.0.0.1:PORT
	client  *http.Client
	ended   chan struct{}
	said    bytes.Buffer // of the program, to be read when it has ended
}

// startPrometheus starts one that ends with the test.
func startPrometheus(t *testing.T, scraped http.Handler) *realPrometheus {
	t.Helper()
	program := needs.Program(t, "prometheus")
	target := httptest.NewServer(scraped)
	t.Cleanup(target.Close)
	dir, listen := t.TempDir(), freeAddress(t)
	config := fmt.Sprintf("scrape_configs:\n- job_name: abate\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\n  "+
		"static_configs: [{targets: [%q]}]\n",
		strings.TrimPrefix(target.URL, "http://"))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &realPrometheus{
		address: "http://" + listen, client: &http.Client{Transport: &http.Transport{}}, ended: make(chan struct{}),
	}
	run := exec.CommandContext(t.Context(), program, "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+listen, "--log.level=warn", "--storage.tsdb.retention.time=1h")
	run.Dir, run.Stdout, run.Stderr = dir, &p.said, &p.said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = run.Wait()
	}()
	t.Cleanup(func() {
		<-p.ended // the context of the test has ended
		p.client.CloseIdleConnections()
	})
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	addr, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// get asks the API for data; a request that it refuses is an error.
func (p *realPrometheus) get(path string, values url.Values, data any) error {
	resp, err := p.client.Get(p.address + path + "?" + values.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("%s: %w", body, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%w: %s", errRefused, answer.Error)
	}
	return nil
}

// series asks a query and returns how many series with a number came back.
func (p *realPrometheus) series(query string) (int, error) {
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := p.get("/api/v1/query", url.Values{"query": {query}}, &data); err != nil {
		return 0, err
	}
	n := 0
	for _, r := range data.Result {
		if v, _ := r.Value[1].(string); v != "NaN" && v != "" {
			n++
		}
	}
	return n, nil
}

// until tries something again and again, until it is done or two minutes have passed.
func (p *realPrometheus) until(t *testing.T, done func() bool) bool {
	t.Helper()
	over, tick := time.NewTimer(2*time.Minute), time.NewTicker(50*time.Millisecond)
	defer over.Stop()
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-p.ended:
			t.Fatalf("Prometheus has ended: %s", p.said.String())
		case <-over.C:
			return false
		}
	}
	return true
}
