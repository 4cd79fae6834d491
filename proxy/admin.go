package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/proxy/identity"
)

// admin is what is shown of a proxy to those who look after it, and what they can do.
type admin struct {
	plane     *plane
	lobby     *lobby
	entrances *entrances
	registry  *series.Registry
	page      *abateadmin.Page
	tokens    *watched[identity.Tokens] // nil when none are asked for
}

func (p *admin) init(of *plane, l *lobby, e *entrances, r *series.Registry, reload func() error) {
	p.plane, p.lobby, p.entrances, p.registry = of, l, e, r
	if c := &of.config; c.AdminTokens != "" {
		p.tokens = watchTokens(c.AdminTokens)
	}
	p.page = p.newPage(reload)
}

// refresh reads the file with the page's tokens, if it has changed.
func (p *admin) refresh() (problems []error) {
	log := p.plane.config.Log
	if p.tokens != nil {
		problems = append(problems, readAgain(log, p.tokens, "the admin page's tokens"))
	}
	return problems
}

// handler is Proxy.Admin.
func (p *admin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.lobby.ready() {
			http.Error(w, "draining: no new requests, please", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	health{p}.handle(mux)
	mux.Handle("GET /metrics", p.known(series.Handler(p.registry)))
	mux.Handle("GET /guards", p.known(page(func() any { return p.report() })))
	mux.Handle("GET /gates", p.known(page(func() any { return p.gatesReport() })))
	mux.Handle("GET /outside", p.known(page(func() any { return p.plane.outsideReport() })))
	mux.Handle("GET /policy", p.known(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(p.plane.policies.Format()) // the reader has left
	})))
	p.serveProfiles(mux)
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
	// Speaks reports that the service has said that it knows what an allowance for retries is.
	Speaks bool `json:"speaksAllowances"`
	// Learned has in sentences what the policies have found out and act on.
	Learned []string `json:"learned,omitempty"`
	// Balance has in sentences what the choice of endpoints is restricted to.
	Balance   []string         `json:"balance,omitempty"`
	Discovery *discoveryReport `json:"discovery,omitempty"`
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
	// Limit is 0 while there is none.
	Limit int `json:"limit"`
	// Learned reports that the limit comes of what the service does, and not of the policy.
	Learned bool `json:"learned,omitempty"`
}

// discoveryReport is where the addresses come from, and how the looking goes.
type discoveryReport struct {
	From      string     `json:"from"`
	Endpoints int        `json:"endpoints"`
	Changed   *time.Time `json:"changed,omitempty"`
	Answered  *time.Time `json:"answered,omitempty"`
	Failures  int64      `json:"failures"`
	// Problem says what is wrong, and what is done about it.
	Problem string `json:"problem,omitempty"`
}

type endpointReport struct {
	URL                 string `json:"url"`
	Zone                string `json:"zone,omitempty"`
	Pending             int    `json:"pending"`
	Idle                int    `json:"idleConnections"`
	HTTP2               int    `json:"http2Connections,omitempty"`
	ConsecutiveFailures int    `json:"consecutiveFailures"`
	Ejected             bool   `json:"ejected"`
	// BackIn is how long an ejected endpoint stays out.
	BackIn string `json:"backIn,omitempty"`
	// Health is what its health check says: healthy, not healthy, or not asked yet. Check is what the last question came
	// to, unless that was a yes.
	Health string `json:"health,omitempty"`
	Check  string `json:"check,omitempty"`
}

func (p *admin) report() report {
	status := p.plane.policies.Status()
	r := report{
		Policy: policyReport{Path: status.Path, Loaded: status.Loaded, Hash: status.Hash,
			GatewayRetries: p.plane.policies.GatewayRetries()},
		Draining: !p.lobby.ready(), Services: []serviceReport{},
	}
	if status.Err != nil {
		r.Policy.Error = status.Err.Error()
	}
	for _, name := range p.plane.policies.Names() {
		if d, ok := p.plane.policies.Service(name); ok {
			s := p.plane.services.of(d.Guard, nil)
			r.Services = append(r.Services, s.report(s.fleetOf(&d)))
		}
	}
	return r
}

func (s *service) report(f *fleet) serviceReport {
	now, state := core.Now(), s.guard.State()
	b := state.Breaker
	r := serviceReport{
		Service: s.guard.Name(), Budget: state.Budget, RetryOwner: string(f.policy.RetryOwner), Speaks: state.Speaks,
		Breaker: breakerReport{State: b.State.String(), FailureRate: b.FailureRate, SlowRate: b.SlowRate,
			Calls: b.Calls, Openings: b.Openings},
		Bulkhead: bulkheadReport{Running: state.Bulkhead.InFlight, Queued: state.Bulkhead.Queued,
			Limit: state.Bulkhead.Limit, Learned: state.Bulkhead.Learned.Bound},
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
	r.Learned = abateadmin.Learned(s.guard)
	r.Endpoints, r.Discovery = f.report(now, &s.checkup), s.discoveryReport()
	if f != nil {
		r.Balance = balanceOf(f, now)
	}
	return r
}

// discoveryReport is nil where nothing is looked for.
func (s *service) discoveryReport() *discoveryReport {
	w := s.watcher.Load()
	if w == nil {
		return nil
	}
	status := w.Status()
	r := &discoveryReport{From: status.From, Endpoints: status.Endpoints, Failures: status.Failures,
		Problem: status.Problem()}
	if !status.Answered.IsZero() {
		r.Changed, r.Answered = &status.Changed, &status.Answered
	}
	return r
}

// report shows the endpoints. A nil fleet has none.
func (f *fleet) report(now time.Duration, u *checkup) []endpointReport {
	all := []endpointReport{}
	if f == nil {
		return all
	}
	for i, e := range f.endpoints {
		o := f.balancer.Endpoint(i, now)
		er := endpointReport{URL: e.url, Pending: o.Pending, Idle: e.pool.size(), HTTP2: e.http2.size(),
			ConsecutiveFailures: o.ConsecutiveFailures, Ejected: o.Ejected}
		if i < len(f.zones) {
			er.Zone = f.zones[i]
		}
		if o.Ejected {
			er.BackIn = (o.EjectedUntil - now).Round(time.Millisecond).String()
		}
		er.Health, er.Check = u.health(e)
		all = append(all, er)
	}
	return all
}

// zonesOf says what to look at where no endpoint is in the proxy's own zone.
func zonesOf(f *fleet) string {
	known := slices.Compact(slices.Sorted(slices.Values(f.zones)))
	known = slices.DeleteFunc(known, func(z string) bool { return z == "" })
	if len(known) == 0 {
		return "where its endpoints come from, nobody says their zones"
	}
	if more := len(known) - 5; more > 0 {
		known = append(known[:5], fmt.Sprintf("%d more", more))
	}
	return "look at --zone; theirs are " + strings.Join(known, ", ")
}

// balanceOf says in sentences what the choice among the endpoints of a fleet is restricted to.
func balanceOf(f *fleet, now time.Duration) (all []string) {
	s := f.balancer.State(now)
	if s.Panic {
		all = append(all, "so few endpoints are left that health checks are not believed")
	}
	switch {
	case s.Zone == "" || len(f.endpoints) == 0 || f.policy.IgnoreZones:
	case s.Here == 0:
		all = append(all, fmt.Sprintf("zone %q: no endpoint is there, so none is preferred: %s", s.Zone, zonesOf(f)))
	case s.Preferred:
		all = append(all, fmt.Sprintf("zone %q: %d of its %d endpoints are in the choice and get %.0f%% of the attempts",
			s.Zone, s.HereIn, s.Here, 100*s.Share))
	}
	return all
}
