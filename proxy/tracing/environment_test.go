package tracing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy/tracing"
)

// read reads lines of NAME=VALUE.
func read(lines ...string) (tracing.Settings, string) {
	s, problems := tracing.FromEnvironment(func(name string) string {
		for _, l := range lines {
			if value, ok := strings.CutPrefix(l, name+"="); ok {
				return value
			}
		}
		return ""
	})
	if len(problems) == 0 {
		return s, ""
	}
	return s, errors.Join(problems...).Error()
}

func TestTheStandardVariablesSayWhereSpansGo(t *testing.T) {
	const general, traces = "OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="
	for _, tt := range []struct {
		lines    []string
		endpoint string
	}{
		{nil, ""},
		{[]string{general + "http://c:4318"}, "http://c:4318/v1/traces"},
		{[]string{general + "https://c/otlp/"}, "https://c/otlp/v1/traces"},
		{[]string{general + "http://c:4318", traces + "http://d:1/spans"}, "http://d:1/spans"},
		{[]string{traces + "http://d:1"}, "http://d:1/"},
		{[]string{"OTEL_TRACES_EXPORTER=otlp"}, "http://localhost:4318/v1/traces"},
		{[]string{general + "http://c:4318", "OTEL_TRACES_EXPORTER=none"}, ""},
		{[]string{general + "http://c:4318", "OTEL_SDK_DISABLED=true"}, ""},
	} {
		s, problems := read(tt.lines...)
		if s.Endpoint != tt.endpoint || s.Enabled() != (tt.endpoint != "") || problems != "" {
			t.Errorf("%q: %q, want %q; %s", tt.lines, s.Endpoint, tt.endpoint, problems)
		}
	}
}

func TestTheStandardVariablesSayHow(t *testing.T) {
	s, problems := read("OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20a%2Cb, x-tenant = 7",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_TIMEOUT=2500", "OTEL_EXPORTER_OTLP_CERTIFICATE=/ca.pem",
		"OTEL_EXPORTER_OTLP_CLIENT_KEY=/k.pem", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE=/c.pem",
		"OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=5", "OTEL_BSP_SCHEDULE_DELAY=100",
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.25",
		"OTEL_RESOURCE_ATTRIBUTES=service.name=other,deployment.environment.name=prod%2Ceu", "OTEL_SERVICE_NAME=checkout",
		"OTEL_PROPAGATORS=baggage,tracecontext")
	got := fmt.Sprintln(s.JSON, s.Gzip, s.Timeout, s.CA, s.Certificate, s.Key, s.Queue, s.Batch, s.Delay, s.Sampler,
		s.Headers, s.Resource)
	want := fmt.Sprintln(true, true, 2500*time.Millisecond, "/ca.pem", "/c.pem", "/k.pem", 10, 5, 100*time.Millisecond,
		"parentbased_traceidratio 0.25", "map[Authorization:[Bearer a,b] X-Tenant:[7]]",
		"[{service.name checkout 0 false} {deployment.environment.name prod,eu 0 false}]")
	if got != want || problems != "" {
		t.Errorf("%s\nwant\n%s\n%s", got, want, problems)
	}
}

// Telemetry is worth no outage: what cannot be used is told, all at once, and ignored.
func TestVariablesThatCannotBeUsedAreToldAndIgnored(t *testing.T) {
	s, problems := read("OTEL_EXPORTER_OTLP_ENDPOINT=collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"OTEL_TRACES_SAMPLER=mostly", "OTEL_BSP_MAX_QUEUE_SIZE=-1", "OTEL_EXPORTER_OTLP_HEADERS=secret",
		"OTEL_EXPORTER_OTLP_COMPRESSION=zip", "OTEL_PROPAGATORS=b3")
	for _, want := range []string{
		`OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" is no URL of a collector: write one with http:// or https://`,
		`OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not spoken here, http/protobuf is used: write that or http/json`,
		`OTEL_TRACES_SAMPLER: "mostly" is no sampler: write one of always_on, `,
		`OTEL_BSP_MAX_QUEUE_SIZE: "-1" is ignored: write a number from 1 to 1048576`,
		`OTEL_EXPORTER_OTLP_HEADERS: a part of it is ignored that is not KEY=VALUE: write KEY=VALUE,KEY=VALUE, and %2C`,
		`OTEL_EXPORTER_OTLP_COMPRESSION: "zip" is not known: write gzip or none`,
		`OTEL_PROPAGATORS: "b3" is ignored: the proxy reads and writes tracecontext`,
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("lacks %s", want)
		}
	}
	if strings.Contains(problems, "secret") {
		t.Error("a header, which may be secret, is told")
	}
	if s.Endpoint != "" || s.Queue != 0 || s.Sampler != (tracing.Sampler{Ratio: 1, Parent: true}) {
		t.Errorf("%+v", s)
	}
	if _, problems = read("OTEL_TRACES_EXPORTER=jaeger"); !strings.HasPrefix(problems, "OTEL_TRACES_EXPORTER: ") {
		t.Errorf("%q", problems)
	}
}
