package discovery_test

import (
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy/discovery"
)

// patience bounds every wait for something that must happen. It is long because the machine may be slow.
const patience = 60 * time.Second

// watch starts a Watcher, which is stopped when the test ends.
func watch(t testing.TB, c discovery.Config) *discovery.Watcher {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Interval = time.Millisecond
	w := discovery.Start(c, nil)
	t.Cleanup(w.Stop)
	return w
}

// eventually waits until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(until) {
			t.Fatal("never: " + what)
		}
	}
}

// addrs is a list as one text.
func addrs(list []discovery.Endpoint) string {
	var all []string
	for _, e := range list {
		all = append(all, e.Addr)
	}
	return strings.Join(all, " ")
}

// becomes waits until the list of a Watcher is that.
func becomes(t testing.TB, w *discovery.Watcher, want string) {
	t.Helper()
	var got string
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); ; <-tick.C {
		if got = addrs(w.List()); got == want {
			return
		}
		if time.Now().After(until) {
			s := w.Status()
			t.Fatalf("the list is %q, never %q; %s", got, want, s.Problem())
		}
	}
}

// fails waits until the last look of a Watcher brought nothing, and returns what it says about that.
func fails(t testing.TB, w *discovery.Watcher) (problem string) {
	t.Helper()
	eventually(t, "a look brings nothing", func() bool {
		s := w.Status()
		problem = s.Problem()
		return problem != ""
	})
	return problem
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
