package abatehttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/startup"
)

// probed asks the handler as a probe does.
func probed(r *startup.Readiness, method, accept string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "/readyz", nil)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	abatehttp.ReadyHandler(r).ServeHTTP(w, req)
	return w
}

func TestReadyHandlerTellsProbesAndPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r startup.Readiness
		if w := probed(&r, "GET", ""); w.Code != 200 || w.Body.String() != "ready\n" ||
			w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
		}
		ctx := startup.ContextWithLogger(t.Context(), nil)
		p := startup.Policy()
		p.Jitter = "none"
		attempts := 0
		h, err := startup.ConnectInBackground(ctx, &r, "postgres", p, func(context.Context) (int, error) {
			if attempts++; attempts < 3 {
				return 0, errors.New("connection refused\nby both hosts")
			}
			return 0, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r.Await("cache").Ready()
		r.Check("disk", func(context.Context) error { return errors.New("full") })
		time.Sleep(150 * time.Millisecond)
		want := "not ready\n  postgres: not ready after 2 attempts in 150ms, next in 150ms: connection refused; by both " +
			"hosts\n  cache: ready\n  disk: not ready: full\n"
		if w := probed(&r, "GET", "*/*"); w.Code != 503 || w.Body.String() != want ||
			w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%d\n%s", w.Code, w.Body)
		}
		<-h.Done()
		r.Drain("shutting down")
		if w := probed(&r, "GET", ""); w.Code != 503 ||
			!strings.HasPrefix(w.Body.String(), "not ready: shutting down\n  postgres: ready after 3 attempts in 300ms\n") {
			t.Errorf("%d\n%s", w.Code, w.Body)
		}
	})
}

func TestReadyHandlerAsJSON(t *testing.T) {
	var r startup.Readiness
	r.Await("postgres").NotReady(errors.New("down"))
	r.Drain("shutting down")
	var got struct {
		Ready    bool
		Draining string
		Parts    []struct{ Name, Error string }
	}
	w := probed(&r, "GET", "text/html, application/json;q=0.9")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 503 || got.Ready ||
		got.Draining != "shutting down" || len(got.Parts) != 1 || got.Parts[0].Error != "down" {
		t.Errorf("%d %q: %v", w.Code, w.Body, err)
	}
	if w := probed(&startup.Readiness{}, "GET", "application/json"); w.Code != 200 ||
		w.Body.String() != `{"ready":true,"parts":[]}`+"\n" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	for _, accept := range []string{"application/json;q=0", "application/jsonx", "text/plain", "*/*", ";;;"} {
		if w := probed(&r, "GET", accept); !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %s", accept, w.Header().Get("Content-Type"))
		}
	}
}

func TestReadyHandlerTakesOnlyQuestions(t *testing.T) {
	var r startup.Readiness
	if w := probed(&r, "POST", ""); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := probed(&r, "HEAD", ""); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
}

// A probe that leaves must not make the next one believe that the check has failed; one that hangs must not hold up all
// others.
func TestChecksHaveATimeLimitOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r startup.Readiness
		r.Check("disk", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		left, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		w := httptest.NewRecorder()
		abatehttp.ReadyHandler(&r).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil).WithContext(left))
		if took := time.Since(began); took != 900*time.Millisecond || w.Code != 503 ||
			!strings.Contains(w.Body.String(), "disk: not ready: context deadline exceeded") {
			t.Errorf("%d %q after %v", w.Code, w.Body, took)
		}
	})
}
