package chromium_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/needs/chromium"
)

// told is a test that keeps what would fail it.
type told struct {
	testing.TB
	errors []string
}

func (t *told) Errorf(format string, args ...any) {
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}

func TestWhatComesOnTheConsoleFailsTheTest(t *testing.T) {
	if testing.Short() {
		return // a browser is slow
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/status/%d", &status); err == nil {
			w.WriteHeader(status)
			return
		}
		w.Header().Set("Content-Security-Policy", "img-src data:")
		_, _ = fmt.Fprint(w, `<!DOCTYPE html><link rel="icon" href="data:,"><p>a page</p>`)
	}))
	t.Cleanup(server.Close)
	test := &told{TB: t}
	b := chromium.Start(test)
	b.Open(server.URL)
	b.Shows("a page")
	b.Eval(`fetch('/status/404').then(() => 0)`)
	b.Quiet()
	if len(test.errors) > 0 {
		t.Errorf("a quiet page: %q", test.errors)
	}
	for _, c := range []struct{ does, want string }{
		{`fetch('/status/502').then(() => 0)`, "status of 502"},
		{`console.log('spoken of: status of 4')`, "spoken of"},
		{`new Promise(done => { setTimeout(() => { setTimeout(done, 0); throw new Error('thrown') }, 0) })`, "thrown"},
		{`new Promise(done => { const i = new Image(); i.onerror = done; i.src = '/status/200' })`,
			"Content Security Policy"},
	} {
		before := strings.Join(test.errors, "\n")
		b.Eval(c.does)
		b.Quiet()
		if after := strings.Join(test.errors, "\n"); strings.Contains(before, c.want) || !strings.Contains(after, c.want) {
			t.Errorf("%s: it says %q, want %q", c.does, after, c.want)
		}
	}
}
