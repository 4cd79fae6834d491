package sidecar

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/abate-go/abate/proxy/tracing"
)

// traceFlags are the flags about traces. They go before the OTEL_... variables.
type traceFlags struct {
	endpoint, ratio string
	plainNames      string // of metrics
}

// trace sets up which calls are recorded, and where that goes. What is wrong with a variable is only logged: somebody
// may have set it for all programs of a machine, and traces are worth no outage.
func (f *proxyFlags) trace() {
	s, ignored := tracing.FromEnvironment(os.Getenv)
	for _, problem := range ignored {
		f.notices = append(f.notices, problem.Error())
	}
	s.File = f.config.Tracing.File
	switch f.traces.endpoint {
	case "":
	case "off":
		s.Endpoint = ""
	default:
		endpoint, err := tracing.ParseEndpoint(f.traces.endpoint, false)
		if s.Endpoint = endpoint; err != nil {
			f.wrong("--otlp-endpoint: %v", err)
		}
	}
	if f.traces.ratio != "" {
		ratio, err := tracing.ParseRatio(f.traces.ratio)
		if s.Sampler = (tracing.Sampler{Ratio: ratio, Parent: true}); err != nil {
			f.wrong("--trace-ratio: %v", err)
		}
		if err == nil && !s.Enabled() {
			f.wrong("--trace-ratio says how many calls are recorded, and nothing where to: add --otlp-endpoint URL or " +
				"--trace-file FILE")
		}
	}
	if f.config.Tracing = s; !s.Enabled() {
		f.config.Tracing = tracing.Settings{}
	}
	if n := f.traces.plainNames; n != "on" && n != "off" {
		f.wrong("--plain-metric-names %q is not known: write on or off", n)
	}
	f.config.WithoutPlainNames = f.traces.plainNames == "off"
}

// greetTracing says where traces go.
func (f *proxyFlags) greetTracing(log *slog.Logger) {
	for _, n := range f.notices {
		log.Warn("a variable is ignored, or a part of it", "problem", n)
	}
	s := &f.config.Tracing
	if !s.Enabled() {
		return
	}
	where := s.File
	if s.Endpoint != "" {
		where = s.Shown()
	}
	log.Info("traces are recorded", "to", where, "sampler", fmt.Sprint(s.Sampler))
}
