package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/abate-go/abate"
)

// Admin is the page for people and machines that look after the proxy: /healthz, /readyz (503 while it drains), /metrics
// (Prometheus), /guards and /gates (state as JSON), /policy (the policy in force, every default written out) and, at / for a
// browser, the live page of abateadmin. Where it is served over HTTP/2 it answers the health checks of gRPC too (grpc.health.v1,
// for the proxy and for each service). It shows addresses, numbers of requests and messages of errors, no requests: keep it on
// loopback or in a network you trust, or have it ask for a token or a client certificate (Config.AdminTokens,
// Config.AdminTLS). Only then can something be changed from it. /healthz and /readyz are open to everybody: whoever looks
// whether the proxy is well, such as a kubelet, has neither; and so is the empty page, into which a token is typed.
// On loopback everything else answers to addresses and to localhost only, and to no other name.
func (p *Proxy) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.Ready() {
			http.Error(w, "draining: no new requests, please", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	health{p}.handle(mux)
	mux.Handle("GET /metrics", p.known(promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{})))
	mux.Handle("GET /guards", p.known(page(func() any { return p.report() })))
	mux.Handle("GET /gates", p.known(page(func() any { return p.gatesReport() })))
	mux.Handle("GET /policy", p.known(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(p.policies.Format()) // the reader has left
	})))
	p.servePage(mux)
	return mux
}

// page shows a report as JSON.
func page(report func() any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		_ = out.Encode(report()) // the reader has left
	})
}

// report is /guards.
type report struct {
	Policy   policyReport    `json:"policy"`
	Draining bool            `json:"draining"`
	Services []serviceReport `json:"services"`
}

type policyReport struct {
	Path   string    `json:"path"`
	Loaded time.Time `json:"loaded"`
	Hash   string    `json:"hash"`
	// Error is why the file as it is now was not loaded. The policy loaded before stays in force.
	Error          string `json:"error,omitempty"`
	GatewayRetries bool   `json:"gatewayRetries"`
}

type serviceReport struct {
	Service  string         `json:"service"`
	Breaker  breakerReport  `json:"circuitBreaker"`
	Budget   float64        `json:"retryBudgetBalance"`
	Bulkhead bulkheadReport `json:"bulkhead"`
	Typical  string         `json:"typicalLatency,omitempty"`
	// RetryOwner says which layer repeats what fails: nearest, edge or none.
	RetryOwner string `json:"retryOwner"`
	// Speaks tells that the service has said that it knows what an allowance for retries is.
	Speaks    bool             `json:"speaksAllowances"`
	Endpoints []endpointReport `json:"endpoints"`
}

type breakerReport struct {
	State       string  `json:"state"`
	FailureRate float64 `json:"failureRate"`
	SlowRate    float64 `json:"slowCallRate"`
	Calls       int     `json:"calls"`
	Openings    uint64  `json:"openings"`
	// ProbesIn is how long an open breaker still waits.
	ProbesIn string `json:"probesIn,omitempty"`
}

type bulkheadReport struct {
	Running int `json:"running"`
	Queued  int `json:"queued"`
	Limit   int `json:"limit"`
}

type endpointReport struct {
	URL                 string `json:"url"`
	Pending             int    `json:"pending"`
	Idle                int    `json:"idleConnections"`
	ConsecutiveFailures int    `json:"consecutiveFailures"`
	Ejected             bool   `json:"ejected"`
	// BackIn is how long an ejected endpoint stays out.
	BackIn string `json:"backIn,omitempty"`
}

func (p *Proxy) report() report {
	status := p.policies.Status()
	r := report{
		Policy:   policyReport{Path: status.Path, Loaded: status.Loaded, Hash: status.Hash, GatewayRetries: p.policies.GatewayRetries()},
		Draining: p.draining.Load(), Services: []serviceReport{},
	}
	if status.Err != nil {
		r.Policy.Error = status.Err.Error()
	}
	for _, name := range p.policies.Names() {
		if d, ok := p.policies.Service(name); ok {
			s := p.service(d.Guard, nil)
			r.Services = append(r.Services, s.report(s.fleetOf(&d)))
		}
	}
	return r
}

func (s *service) report(f *fleet) serviceReport {
	now, state := abate.Now(), s.guard.State()
	b := state.Breaker
	r := serviceReport{
		Service: s.guard.Name(), Budget: state.Budget, RetryOwner: string(f.policy.RetryOwner), Speaks: state.Speaks,
		Breaker:  breakerReport{State: b.State.String(), FailureRate: b.FailureRate, SlowRate: b.SlowRate, Calls: b.Calls, Openings: b.Openings},
		Bulkhead: bulkheadReport{Running: state.Bulkhead.InFlight, Queued: state.Bulkhead.Queued, Limit: f.policy.Bulkhead.MaxConcurrentCalls},
	}
	if !f.policy.CircuitBreaker.Enabled() {
		r.Breaker.State = "off"
	}
	if b.OpenUntil > now {
		r.Breaker.ProbesIn = (b.OpenUntil - now).Round(time.Millisecond).String()
	}
	if state.Typical > 0 {
		r.Typical = state.Typical.Round(10 * time.Microsecond).String()
	}
	r.Endpoints = f.report(now)
	return r
}

// report shows the endpoints. A nil fleet has none.
func (f *fleet) report(now time.Duration) []endpointReport {
	all := []endpointReport{}
	if f == nil {
		return all
	}
	for i, e := range f.endpoints {
		o := f.balancer.Endpoint(i, now)
		er := endpointReport{URL: e.url, Pending: o.Pending, Idle: e.pool.size(), ConsecutiveFailures: o.ConsecutiveFailures, Ejected: o.Ejected}
		if o.Ejected {
			er.BackIn = (o.EjectedUntil - now).Round(time.Millisecond).String()
		}
		all = append(all, er)
	}
	return all
}
