package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/policyfile"
)

func TestAbateRunsWithEveryPolicyOn(t *testing.T) {
	for _, text := range []string{
		abatePolicy("http://127.0.0.1:8080", 4*connections, shortCalls),
		abatePolicy("h2c://127.0.0.1:8080", 4*connections, longCalls) + repeatEcho,
	} {
		file, err := policyfile.Parse("policy.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if len(file.Services) != 1 {
			t.Fatalf("%d services", len(file.Services))
		}
		p := file.Services[0].Policy
		if grpc := strings.Contains(text, "h2c:"); grpc != slices.Contains(p.RetryMethods, "/bench.Echo/*") {
			t.Errorf("over gRPC: %t; these methods may be repeated: %v", grpc, p.RetryMethods)
		}
		if err := p.Ineffective(); err != nil {
			t.Error(err)
		}
		for what, on := range map[string]bool{
			"timeout": p.Timeout > 0, "attemptTimeout": p.AttemptTimeout > 0, "retries": p.MaxRetries > 0,
			"retryBudget": !p.RetryBudget.Disabled && p.RetryBudget.Ratio > 0, "circuitBreaker": !p.CircuitBreaker.Disabled,
			"slow calls": p.CircuitBreaker.SlowCallRateThreshold > 0 && p.CircuitBreaker.SlowCallDurationThreshold > 0,
			"bulkhead":   p.Bulkhead.Enabled() && p.Bulkhead.MaxConcurrentCalls > connections, "upstream": len(p.Upstreams) == 1,
			"route":            len(p.Routes) == 1,
			"outlierDetection": p.OutlierDetection.Enabled(),
		} {
			if !on {
				t.Errorf("%s is off", what)
			}
		}
	}
}

func TestTheIngressRunsWithLimitAndShedOn(t *testing.T) {
	text := ingressPolicy("127.0.0.1:1111", "127.0.0.1:2222")
	file, err := policyfile.Parse("ingress.yaml", []byte(text))
	if err != nil || len(file.Protect) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	p := file.Protect[0].Protection
	if p.Ineffective() != nil || !p.Shed.Enabled() || !p.RateLimit.Enabled() || p.RateLimit.Key == "" ||
		p.Listen != "127.0.0.1:1111" || len(p.Upstreams) != 1 || p.Shed.MinConcurrency <= connections {
		t.Errorf("%+v", p)
	}
}

func TestEveryTargetGetsTheSameUpstreamAndBuffers(t *testing.T) {
	const addr, upstream = "127.0.0.1:1111", "127.0.0.1:2222"
	for name, text := range map[string]string{
		nginx:   nginxConfig(addr, upstream, 10064),
		haproxy: haproxyConfig(addr, upstream, 10064),

		nginx + " over gRPC":   nginxGRPCConfig(addr, upstream, 10064),
		haproxy + " over gRPC": haproxyGRPCConfig(addr, upstream, 10064),
	} {
		for _, want := range []string{addr, upstream, "32768", "2\n"} {
			if !strings.Contains(strings.ReplaceAll(text, ";", ""), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, text)
			}
		}
	}
	if text := upstreamConfig(addr, 64); !strings.Contains(text, `"`+strings.Repeat("x", bodySize)+`"`) ||
		!strings.Contains(text, "worker_processes 1;") {
		t.Errorf("the upstream is not one worker with %d bytes:\n%s", bodySize, text)
	}
}
