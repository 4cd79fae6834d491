package exporter

import (
	"encoding/json"
	"math"
	"time"

	"github.com/abate-go/abate/topology"
)

// mostGRPC is the most attempts that gRPC makes, whatever its service config says.
const mostGRPC = 5

type grpcConfig struct {
	MethodConfig    []grpcMethod    `json:"methodConfig"`
	RetryThrottling *grpcThrottling `json:"retryThrottling,omitempty"`
}

type grpcMethod struct {
	Name        []map[string]string `json:"name"`
	Timeout     string              `json:"timeout,omitempty"`
	RetryPolicy *grpcRetry          `json:"retryPolicy,omitempty"`
}

type grpcRetry struct {
	MaxAttempts          int      `json:"maxAttempts"`
	InitialBackoff       string   `json:"initialBackoff"`
	MaxBackoff           string   `json:"maxBackoff"`
	BackoffMultiplier    float64  `json:"backoffMultiplier"`
	RetryableStatusCodes []string `json:"retryableStatusCodes"`
}

type grpcThrottling struct {
	MaxTokens  float64 `json:"maxTokens"`
	TokenRatio float64 `json:"tokenRatio"`
}

// GRPC writes a service config with a method config for each service. All services share one throttle in gRPC: it is
// that of the first service that repeats and has a budget.
func GRPC(routes []Route) []byte {
	var c grpcConfig
	for i := range routes {
		l := &routes[i].Layer
		m := grpcMethod{Name: []map[string]string{{"service": routes[i].Service}}}
		if d := l.Overall.Or(0); d > 0 {
			m.Timeout = seconds(d)
		}
		if tries, _ := Tries(l); tries > 1 && len(clientCodes(l)) > 0 {
			first := max(time.Millisecond, l.Backoff.First.Or(0))
			m.RetryPolicy = &grpcRetry{MaxAttempts: min(mostGRPC, tries), InitialBackoff: seconds(first),
				MaxBackoff:        seconds(max(first, l.Backoff.Max.Or(first))),
				BackoffMultiplier: l.Backoff.Multiplier.Or(1), RetryableStatusCodes: clientCodes(l)}
		}
		if ratio := l.Budget.Ratio.Or(0); ratio > 0 && m.RetryPolicy != nil && c.RetryThrottling == nil {
			// It keeps three places, and refuses a config without a ratio.
			c.RetryThrottling = &grpcThrottling{MaxTokens: min(l.Budget.Tokens.Or(10), 1000),
				TokenRatio: max(math.Round(ratio*1000)/1000, 0.001)}
		}
		c.MethodConfig = append(c.MethodConfig, m)
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		panic("exporter: " + err.Error()) // texts and finite numbers
	}
	return append(data, '\n')
}

// Spring writes instances of resilience4j for Spring Boot.
func Spring(routes []Route) []byte {
	t := &text{}
	routes = distinct(routes)
	t.line("resilience4j:")
	parts := []struct {
		name  string
		write func(*text, *topology.Layer) bool
	}{{"retry", springRetry}, {"timelimiter", springTime}, {"circuitbreaker", springBreaker}, {"bulkhead",
		springBulkhead}}
	for _, part := range parts {
		section := &text{}
		for i := range routes {
			instance := &text{}
			if part.write(instance, &routes[i].Layer) {
				section.line("      %s:", routes[i].yamlName())
				section.WriteString(instance.String())
			}
		}
		if section.Len() > 0 {
			t.line("  %s:", part.name)
			t.line("    instances:")
			t.WriteString(section.String())
		}
	}
	return []byte(t.String())
}

func springRetry(t *text, l *topology.Layer) bool {
	tries, _ := Tries(l)
	if tries < 2 {
		return false
	}
	t.line("        maxAttempts: %d", tries)
	b := &l.Backoff
	first := max(time.Millisecond, b.First.Or(0))
	t.line("        waitDuration: %s", millis(first))
	if m := b.Multiplier.Or(1); m > 1 {
		t.line("        enableExponentialBackoff: true")
		t.line("        exponentialBackoffMultiplier: %g", m)
		set(t, b.Max, "        exponentialMaxWaitDuration: %s", millis)
	}
	if word := b.Jitter.Or("none"); word != "none" {
		least, most := b.Wait(1)
		factor := 0.5
		if most > 0 {
			factor = min(0.99, float64(most-least)/float64(most+least))
		}
		t.line("        enableRandomizedWait: true")
		t.line("        randomizedWaitFactor: %.2g", factor)
	}
	return true
}

func springTime(t *text, l *topology.Layer) bool {
	d := l.PerTry.Or(0)
	if d > 0 {
		t.line("        timeoutDuration: %s", millis(d))
	}
	return d > 0
}

func springBreaker(t *text, l *topology.Layer) bool {
	b := &l.Breaker
	ratio, ok := b.FailureRatio.Get()
	if !ok {
		return false
	}
	t.line("        failureRateThreshold: %s", percent(ratio))
	set(t, b.MinimumCalls, "        minimumNumberOfCalls: %s", show)
	switch {
	case b.WindowCalls.Or(0) > 0:
		t.line("        slidingWindowSize: %d", b.WindowCalls.V)
	case b.Window.Or(0) > 0:
		t.line("        slidingWindowType: TIME_BASED")
		t.line("        slidingWindowSize: %d", max(1, int(math.Round(b.Window.V.Seconds()))))
	}
	set(t, b.OpenFor, "        waitDurationInOpenState: %s", millis)
	set(t, b.SlowerThan, "        slowCallDurationThreshold: %s", millis)
	return true
}

func springBulkhead(t *text, l *topology.Layer) bool {
	n := l.Limits.Requests.Or(0)
	if n <= 0 || n == topology.Unbounded {
		return false
	}
	t.line("        maxConcurrentCalls: %d", n)
	return true
}
