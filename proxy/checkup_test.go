package proxy_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

const quickCheck = `interval: 100ms, maxInterval: 100ms, timeout: 100ms, unhealthyThreshold: 2, healthyThreshold: 2`

// checkedEndpoint is what /guards says of an endpoint's health.
type checkedEndpoint struct {
	Health  string `json:"health"`
	Check   string `json:"check"`
	Ejected bool   `json:"ejected"`
}

// checked returns what /guards says of the endpoints of the first service, and of the choice among them.
func (r *running) checked() (all []checkedEndpoint, choice []string) {
	r.t.Helper()
	var report struct {
		Services []struct {
			Endpoints []checkedEndpoint `json:"endpoints"`
			Balance   []string          `json:"balance"`
		} `json:"services"`
	}
	if err := json.Unmarshal([]byte(r.adminGet("/guards")), &report); err != nil || len(report.Services) == 0 {
		r.t.Fatalf("/guards: %v", err)
	}
	return report.Services[0].Endpoints, report.Services[0].Balance
}

func (r *running) awaitHealth(want ...string) {
	r.t.Helper()
	eventually(r.t, strings.Join(want, ", "), func() bool {
		all, _ := r.checked()
		for i, e := range all {
			if e.Health != want[i] {
				return false
			}
		}
		return len(all) == len(want)
	})
}

// wellOrNot answers calls, and its health check as well says.
func wellOrNot(t *testing.T, well *atomic.Bool) *server {
	return upstream(t, func(c net.Conn, req string) {
		if strings.HasPrefix(req, "GET /base/healthz ") && !well.Load() {
			fmt.Fprint(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
			return
		}
		fmt.Fprint(c, ok("hello"))
	})
}

func calls(s *server) (n int) {
	for _, req := range s.seen() {
		if !strings.Contains(req, "/healthz ") {
			n++
		}
	}
	return n
}

func TestAnEndpointThatSaysNoGetsNoCalls(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	var well atomic.Bool
	always := new(atomic.Bool)
	always.Store(true)
	bad, good := wellOrNot(t, &well), wellOrNot(t, always)
	policy := single([]string{bad.url + "/base", good.url + "/base"}, noEjection,
		"healthCheck: {kind: http, path: /healthz, "+quickCheck+"}")
	r := start(t, policy)
	r.awaitHealth("not healthy", "healthy")
	before := calls(bad)
	for range 20 {
		r.get("/")
	}
	if n := calls(bad) - before; n != 0 {
		t.Errorf("it got %d calls", n)
	}
	if all, _ := r.checked(); all[0].Check != "it answered 503 Service Unavailable" {
		t.Errorf("%+v", all[0])
	}
	if page := r.adminGet("/metrics"); !strings.Contains(page, `abate_proxy_endpoints_unhealthy{service="s"} 1`) ||
		!strings.Contains(page, `abate_proxy_health_checks_total{result="refusing",service="s"}`) {
		t.Error("/metrics does not say so")
	}
	well.Store(true)
	r.awaitHealth("healthy", "healthy")
	eventually(t, "calls at the endpoint that is healthy again", func() bool { r.get("/"); return calls(bad) > before })
	well.Store(false)
	r.awaitHealth("not healthy", "healthy")
	r.write(single([]string{bad.url + "/base", good.url + "/base"}, noEjection)) // nobody asks any more
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	r.awaitHealth("", "")
	before = calls(bad)
	eventually(t, "calls at an endpoint that nobody asks", func() bool { r.get("/"); return calls(bad) > before })
}

// Nobody is told of a service that is well, nor of one that the policy file has no more: what is known of that one
// does not change again.
func TestAServiceWithoutAnEndpointThatIsWellIsShown(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	var well atomic.Bool
	bad := wellOrNot(t, &well)
	const shown, check = `abate_proxy_endpoints_none_well{service="s"} 1`, "healthCheck: {kind: http, path: /healthz, "
	policy := single([]string{bad.url + "/base"}, noEjection, check+quickCheck+"}")
	r := start(t, policy)
	says := func() bool { return strings.Contains(r.adminGet("/metrics"), shown) }
	r.awaitHealth("not healthy")
	if !says() {
		t.Error("/metrics does not say that no endpoint is well")
	}
	well.Store(true)
	r.awaitHealth("healthy")
	if says() {
		t.Error("/metrics says so of a service that is well")
	}
}

// A service that was never found has no endpoint that is well; one that is gone from the file has nobody who could find
// it, and would be told of for ever.
func TestAServiceThatIsNotFoundIsShownWhileTheFileHasIt(t *testing.T) {
	const shown = `abate_proxy_endpoints_none_well{service="s"} 1`
	policy := single([]string{"http://s.test"}, "discovery: {type: file, path: /nowhere/s.json}")
	r := start(t, policy)
	if page := r.adminGet("/metrics"); !strings.Contains(page, shown) {
		t.Error("/metrics does not say that there is no endpoint")
	}
	r.becomesPolicy(strings.Replace(policy, "  s:", "  other:", 1))
	if page := r.adminGet("/metrics"); strings.Contains(page, shown) || !strings.Contains(page, "abate_build_info") {
		t.Error("/metrics says it of a service that the file has no more")
	}
	r.becomesPolicy(policy)
	if page := r.adminGet("/metrics"); strings.Count(page, shown) != 1 {
		t.Error("/metrics does not say it once again")
	}
}

func TestHealthOverGRPC(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	health := grpchealth.NewServer()
	health.SetServingStatus("pay.Pay", grpc_health_v1.HealthCheckResponse_SERVING)
	with, without := grpc.NewServer(), grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(with, health)
	var urls []string
	for _, s := range []*grpc.Server{with, without} {
		l := listen(t)
		go s.Serve(l)
		t.Cleanup(s.Stop)
		urls = append(urls, "h2c://"+l.Addr().String())
	}
	r := start(t, single(urls, noEjection, "healthCheck: {kind: grpc, service: pay.Pay, "+quickCheck+"}"))
	r.awaitHealth("healthy", "not healthy")
	if all, _ := r.checked(); all[1].Check != "it does not know grpc.health.v1" {
		t.Errorf("%+v", all[1])
	}
	health.SetServingStatus("pay.Pay", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	r.awaitHealth("not healthy", "not healthy")
	if _, choice := r.checked(); len(choice) != 1 || !strings.Contains(choice[0], "not believed") {
		t.Errorf("%q", choice)
	}
	health.SetServingStatus("pay.Pay", grpc_health_v1.HealthCheckResponse_SERVING)
	r.awaitHealth("healthy", "not healthy")
}

func TestAHealthCheckOverTCP(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	good := upstream(t, func(c net.Conn, _ string) { fmt.Fprint(c, ok("hello")) })
	gone := listen(t)
	url := "http://" + gone.Addr().String()
	gone.Close()
	r := start(t, single([]string{good.url, url}, noEjection, "healthCheck: {kind: tcp, "+quickCheck+"}"))
	r.awaitHealth("healthy", "not healthy")
	if all, _ := r.checked(); !strings.Contains(all[1].Check, "refused") {
		t.Errorf("%+v", all[1])
	}
}

// A question without an answer does not hold up the end of the proxy.
func TestHangingQuestionsEndWithTheProxy(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	asked := make(chan struct{}, 16)
	silent := rawUpstream(t, func(c net.Conn, _ int) {
		_, _ = c.Read(make([]byte, 1024))
		asked <- struct{}{}
		_, _ = c.Read(make([]byte, 1024)) // until the proxy closes it
	})
	r := start(t, single([]string{silent.url}, "healthCheck: {kind: http, interval: 2s, timeout: 2s}"))
	soon(t, "no question", asked)
	r.shutdown()
}
