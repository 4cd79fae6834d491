package policyfile_test

import (
	"errors"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/health"
	"github.com/abate-go/abate/policyfile"
)

func TestValidateNamesWhatIsWrongBesideTheGuard(t *testing.T) {
	for _, row := range []struct {
		change func(*policyfile.Policy)
		want   string
	}{
		{func(p *policyfile.Policy) {
			p.Upstreams = []string{"payments:8080"}
		}, `upstreams[0]: "payments:8080" is not a base URL; allowed: http, https or h2c with a host, for example ` +
			`"http://payments:8080"`},
		{func(p *policyfile.Policy) {
			p.Routes = []policyfile.Route{{}}
		}, "routes[0]: matches every request; give it a host, a path or both"},
		{func(p *policyfile.Policy) {
			p.Routes = []policyfile.Route{{Path: "pay"}}
		}, `routes[0].path: "pay" does not begin with /; for example "/payments"`},
		{func(p *policyfile.Policy) {
			p.Routes = []policyfile.Route{{Host: "http://x"}}
		}, `routes[0].host: "http://x" is not a host; without scheme and path, for example "api.example.com"`},
		{func(p *policyfile.Policy) {
			p.Upstreams, p.Weights = []string{"http://a", "http://b"}, []int{1}
		}, "weights: has 1 weights for 2 upstreams; write one for each, in their order"},
		{func(p *policyfile.Policy) {
			p.Weights = []int{3, 1001}
		}, "weights[1]: 1001 is out of range; allowed: 1 to 1000"},
		{func(p *policyfile.Policy) {
			p.OutlierDetection.SlowStart = 2 * time.Hour
		}, "outlierDetection.slowStart: 2h0m0s is out of range; allowed: 0s to 1h"},
		{func(p *policyfile.Policy) {
			p.OutlierDetection.BaseEjectionTime, p.OutlierDetection.MaxEjectionTime = time.Minute, time.Second
		}, "outlierDetection.baseEjectionTime: 1m0s is above maxEjectionTime 1s; lower it or raise maxEjectionTime"},
		{func(p *policyfile.Policy) {
			p.HealthCheck.Kind = "ping"
		}, `healthCheck.kind: "ping" is not known; allowed: http, grpc, tcp`},
		{func(p *policyfile.Policy) {
			p.Upstreams, p.HealthCheck.Kind = []string{"http://a", "h2c://b"}, health.HTTP
		}, "healthCheck.kind: http is HTTP/1.1, which upstreams[1] does not speak; write grpc or tcp"},
		{func(p *policyfile.Policy) {
			p.HealthCheck = health.Config{Kind: health.HTTP, Path: "healthz"}
		}, `healthCheck.path: "healthz" is not a path; for example "/healthz"`},
		{func(p *policyfile.Policy) {
			p.HealthCheck = health.Config{Kind: health.HTTP, Path: "/a\r\nHost: b"}
		}, `healthCheck.path: "/a\r\nHost: b" is not a path; for example "/healthz"`},
		{func(p *policyfile.Policy) {
			p.HealthCheck = health.Config{Kind: health.TCP, Interval: time.Second, Timeout: 2 * time.Second}
		}, "healthCheck.timeout: 2s is above interval 1s; lower it or raise interval"},
		{func(p *policyfile.Policy) {
			p.HealthCheck = health.Config{Kind: health.TCP, Interval: 9 * time.Second, MaxInterval: 2 * time.Second}
		}, "healthCheck.interval: 9s is above maxInterval 2s; lower it or raise maxInterval"},
	} {
		p := policyfile.DefaultPolicy()
		row.change(&p)
		err := p.Validate()
		if err == nil || err.Error() != row.want {
			t.Errorf("got  %v\nwant %s", err, row.want)
		}
		var field *abate.FieldError
		if !errors.As(err, &field) {
			t.Errorf("%v is no FieldError", err)
		}
	}
}

func TestDefaultAndZeroPoliciesOfAFileAreValid(t *testing.T) {
	for _, p := range []policyfile.Policy{
		{}, {Policy: abate.ConnectionPolicy()}, policyfile.DefaultPolicy(), policyfile.DefaultPolicy().WithDefaults(),
	} {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
}
