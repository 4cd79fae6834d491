package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/bench/program"
)

func TestOwnRequestsAreOfTheirShape(t *testing.T) {
	for _, s := range shapes {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(s.request("127.0.0.1:1"))))
		if err != nil {
			t.Errorf("%s: %v", s.what, err)
			continue
		}
		checkShape(t, s, r)
	}
}

func checkShape(t *testing.T, s shape, r *http.Request) {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	fields := 0
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Field-") {
			fields++
		}
	}
	if err != nil || len(body) != s.body || (r.Method == "POST") != (s.body > 0) || fields != s.fields ||
		r.Close != s.anew {
		t.Errorf("%s: %v, %s with %d bytes and %d fields, closes: %v", s.what, err, r.Method, len(body), fields, r.Close)
	}
}

// TestWrkMakesRequestsOfTheShape has wrk, if it is installed, ask a server that looks at each request.
func TestWrkMakesRequestsOfTheShape(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	wrk, err := exec.LookPath("wrk")
	if err != nil {
		return // the command makes its own load then
	}
	for _, s := range shapes {
		var asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) < 200 {
				checkShape(t, s, r)
			}
			answer(w, r)
		}))
		l := &lab{ctx: t.Context(), dir: t.TempDir(), wrk: wrk}
		result, err := l.load(s, server.Listener.Addr().String(), time.Second)
		server.Close()
		if err != nil || result.check() != nil || asked.Load() == 0 {
			t.Errorf("%s: %v, %v, %d requests", s.what, err, result.check(), asked.Load())
		}
	}
}

func TestEnvoyAcceptsItsConfigurations(t *testing.T) {
	t.Chdir("../..")
	self, missing := program.Envoy()
	for _, m := range []mode{{}, {grpc: true}, {stream: 1}, {grpc: true, chats: 10}} {
		text, err := envoyConfig(m, "127.0.0.1:1111", "127.0.0.1:2222")
		if err != nil || strings.Contains(text, "%!") {
			t.Fatalf("%v\n%s", err, text)
		}
		for what, in := range map[string]bool{
			"port_value: 1111": true, "port_value: 2222": true, "per_connection_buffer_limit_bytes: 32768": true,
			"num_retries: 3": true, "http2_protocol_options: {}": m.grpc, "per_try_timeout": m.stream+int64(m.chats) == 0,
		} {
			if strings.Contains(text, what) != in {
				t.Errorf("%+v: %q should be there: %v\n%s", m, what, in, text)
			}
		}
		if missing != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "envoy.yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := program.Output(t.Context(), self, "--mode", "validate", "-c", file); err != nil {
			t.Errorf("%v: %s\n%s", err, out, text)
		}
	}
}
