package proxy_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy"
)

func TestKeysInAFileSurviveARestartOfTheProxy(t *testing.T) {
	up := numbering(t, "")
	file := filepath.Join(t.TempDir(), "keys.db")
	settings := fmt.Sprintf("idempotency: {methods: [POST], file: %q}", file)
	first := protect(t, guardOf(up.url, settings))
	if a := first.dial().send(post("k", "one")).answer(); a.content != "order 1" {
		t.Fatalf("%+v", a)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel() // the client stays, and is cut off
	_ = first.proxy.Shutdown(over)
	second := protect(t, guardOf(up.url, settings))
	if a := second.dial().send(post("k", "one")).answer(); a.content != "order 1" ||
		a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("after the restart: %+v", a)
	}
}

func TestAProxyWhoseFileOfKeysCannotBeOpenedDoesNotStart(t *testing.T) {
	text := guardOf("http://127.0.0.1:1",
		fmt.Sprintf("idempotency: {methods: [POST], file: %q}", filepath.Join(t.TempDir(), "none", "keys.db")))
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := proxy.New(proxy.Config{Policy: policy, Log: slog.New(slog.DiscardHandler)}); err == nil ||
		!strings.Contains(err.Error(), "keys.db") {
		t.Errorf("%v", err)
	}
}
