package tracing

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FromEnvironment reads the OTEL_... variables that are about traces. As OpenTelemetry has it, what cannot be used is
// ignored; problems says of each which variable, what is wrong, and what to write. Spans are sent if a variable names
// an endpoint, or OTEL_TRACES_EXPORTER is otlp.
func FromEnvironment(getenv func(string) string) (s Settings, problems []error) {
	e := environment{getenv: getenv}
	name, arg := getenv("OTEL_TRACES_SAMPLER"), getenv("OTEL_TRACES_SAMPLER_ARG")
	s.Sampler = Sampler{Ratio: 1, Parent: true}
	if name != "" {
		sampler, err := ParseSampler(name, arg)
		if err != nil {
			variable := "OTEL_TRACES_SAMPLER"
			if slices.Contains(samplers, name) {
				variable += "_ARG"
			}
			e.wrong(variable, "%w", err)
		} else {
			s.Sampler = sampler
		}
	}
	s.Resource = e.resource()
	s.Queue = e.number("OTEL_BSP_MAX_QUEUE_SIZE", 1<<20)
	s.Batch = e.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1<<16)
	s.Delay = time.Duration(e.number("OTEL_BSP_SCHEDULE_DELAY", 3_600_000)) * time.Millisecond
	s.Timeout = time.Duration(e.number(e.specific("TIMEOUT"), 3_600_000)) * time.Millisecond
	s.Headers = e.headers(e.specific("HEADERS"))
	s.CA, _ = e.of("CERTIFICATE")
	s.Certificate, _ = e.of("CLIENT_CERTIFICATE")
	s.Key, _ = e.of("CLIENT_KEY")
	e.form(&s)
	if e.wanted() {
		s.Endpoint = e.endpoint()
	}
	if p := getenv("OTEL_PROPAGATORS"); p != "" && !slices.Contains(strings.Split(p, ","), "tracecontext") {
		e.wrong("OTEL_PROPAGATORS", "%q is ignored: the proxy reads and writes tracecontext, and passes other fields on", p)
	}
	return s, e.problems
}

// environment is the variables, and what is wrong with them.
type environment struct {
	getenv   func(string) string
	problems []error
}

func (e *environment) wrong(variable, format string, args ...any) {
	e.problems = append(e.problems, fmt.Errorf("%s: "+format, append([]any{variable}, args...)...))
}

// specific is the name of a variable of the exporter: that for traces if it is set, else that for all signals.
func (e *environment) specific(name string) string {
	if of := "OTEL_EXPORTER_OTLP_TRACES_" + name; e.getenv(of) != "" {
		return of
	}
	return "OTEL_EXPORTER_OTLP_" + name
}

// of is the value of such a variable, and its name.
func (e *environment) of(name string) (value, variable string) {
	variable = e.specific(name)
	return e.getenv(variable), variable
}

// wanted reports whether spans are to go to a collector at all.
func (e *environment) wanted() bool {
	if strings.EqualFold(e.getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	switch exporter := e.getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "otlp":
		return true
	case "":
		endpoint, _ := e.of("ENDPOINT")
		return endpoint != ""
	case "none":
		return false
	default:
		e.wrong("OTEL_TRACES_EXPORTER", "%q is not known here: write otlp or none, or start with --trace-file", exporter)
		return false
	}
}

// endpoint is where spans are posted. The variable for all signals has the path of none.
func (e *environment) endpoint() string {
	raw, variable := e.of("ENDPOINT")
	if raw == "" {
		raw = "http://localhost:4318"
	}
	endpoint, err := ParseEndpoint(raw, variable == "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if err != nil {
		e.wrong(variable, "%w", err)
	}
	return endpoint
}

// ParseEndpoint reads the URL of a collector. Unless it is whole, /v1/traces goes behind it.
func ParseEndpoint(raw string, whole bool) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is no URL of a collector: write one with http:// or https://, for example "+
			"http://localhost:4318", raw)
	}
	if !whole {
		u.Path = strings.TrimRight(u.Path, "/") + "/v1/traces"
	} else if u.Path == "" {
		u.Path = "/"
	}
	return u.String(), nil
}

// form reads in which form spans go.
func (e *environment) form(s *Settings) {
	switch value, variable := e.of("PROTOCOL"); value {
	case "", "http/protobuf":
	case "http/json":
		s.JSON = true
	default:
		e.wrong(variable, "%q is not spoken here, http/protobuf is used: write that or http/json, and the collector's "+
			"port for HTTP (4318 as a rule) in the endpoint", value)
	}
	switch value, variable := e.of("COMPRESSION"); value {
	case "", "none":
	case "gzip":
		s.Gzip = true
	default:
		e.wrong(variable, "%q is not known: write gzip or none", value)
	}
}

// number reads a variable that is a positive number; 0 for none.
func (e *environment) number(variable string, most int) int {
	text := e.getenv(variable)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		e.wrong(variable, "%q is ignored: write a number from 1 to %d", text, most)
		return 0
	}
	return n
}

// pairs reads KEY=VALUE,KEY=VALUE with values in percent-encoding.
func (e *environment) pairs(variable string, pair func(key, value string)) {
	for part := range strings.SplitSeq(e.getenv(variable), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		text, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			e.wrong(variable, "a part of it is ignored that is not KEY=VALUE: write KEY=VALUE,KEY=VALUE, and %%2C for a comma")
			continue // without its text, which may be secret
		}
		pair(key, text)
	}
}

func (e *environment) headers(variable string) http.Header {
	var h http.Header
	e.pairs(variable, func(key, value string) {
		if h == nil {
			h = http.Header{}
		}
		h.Add(key, value)
	})
	return h
}

// resource reads whose spans they are.
func (e *environment) resource() (all []Attribute) {
	service := e.getenv("OTEL_SERVICE_NAME")
	e.pairs("OTEL_RESOURCE_ATTRIBUTES", func(key, value string) {
		if key != "service.name" {
			all = append(all, Attribute{Key: Clean(key), Text: Clean(value)})
		} else if service == "" {
			service = value
		}
	})
	if service == "" {
		service = "abate-proxy"
	}
	return append([]Attribute{{Key: "service.name", Text: Clean(service)}}, all...)
}
