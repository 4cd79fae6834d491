package httpdrill_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/internal/drill/httpdrill"
	"github.com/abate-go/abate/policyfile"
)

// forwarder is a small HTTP proxy that follows a policy: what --via stands for, made of other parts.
func forwarder(t *testing.T, started *atomic.Int32) httpdrill.Via {
	return func(policy []byte, observer abate.Observer) (*url.URL, func(), error) {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(path, policy, 0o600); err != nil {
			return nil, nil, err
		}
		set, err := policyfile.Load(path, func(_ string, p *abate.Policy) { p.Observer = observer })
		if err != nil {
			return nil, nil, err
		}
		base := &http.Transport{MaxIdleConnsPerHost: 64}
		guarded := &abatehttp.Transport{Base: base, Select: func(r *http.Request) *abate.Guard {
			g, _ := set.Match(r.URL.Host, r.URL.Path)
			return g
		}}
		relay := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: guarded,
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusServiceUnavailable)
				var own *abate.Error
				if errors.As(err, &own) && own.Reason == abate.ErrCircuitOpen && own.Attempts == 0 {
					_, _ = io.WriteString(w, `{"reason": "circuit-open", "attempts": 0}`)
					return
				}
				_, _ = io.WriteString(w, `{"reason": "attempts-exhausted", "attempts": 1, "cause": "timeout"}`)
			}}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		server := &http.Server{Handler: relay}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server.Serve(l) // ends with ErrServerClosed
		}()
		started.Add(1)
		return &url.URL{Scheme: "http", Host: l.Addr().String()}, func() {
			_ = server.Close()
			<-done
			base.CloseIdleConnections()
			started.Add(-1)
		}, nil
	}
}

func TestClientsBehindAProxyAreCountedAsThoseWithAGuard(t *testing.T) {
	if testing.Short() {
		return
	}
	var started atomic.Int32
	// so many that a slow machine lets nobody wait for one
	c := drillOf(t, read(t, small, "workers: 3", "workers: 30"), "guarded")
	c.Via, c.ViaName = forwarder(t, &started), "a proxy of this test"
	result, err := httpdrill.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if n := started.Load(); n != 0 {
		t.Errorf("%d proxies are left", n)
	}
	act := result.Acts[0]
	ends := 0
	for _, n := range act.Endings {
		ends += n
	}
	switch {
	case act.Offered == 0 || ends != act.Offered:
		t.Errorf("%d requests offered, %d ends: %v", act.Offered, ends, act.Endings)
	case act.Attempts == 0 || act.BreakerRefused == 0 || act.Endings["circuit-open"] < act.BreakerRefused:
		t.Errorf("%d attempts, %d refused by the breaker, endings %v: the guards in the proxies were not heard", act.Attempts,
			act.BreakerRefused, act.Endings)
	case act.Endings["answered"] == 0 || act.Phases[0].Goodput < 0.9 && act.LateSeconds < calm:
		t.Errorf("goodput before the outage is %.2f, endings %v, late by %v s", act.Phases[0].Goodput, act.Endings,
			act.LateSeconds)
	}
	if notes := strings.Join(result.Setup.Notes, "\n"); !strings.Contains(notes, "a proxy of this test") {
		t.Errorf("the notes do not say what was run: %q", notes)
	}
}
