package tracing

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"
)

// Settings are how spans are made and where they go. The zero Settings have none made.
type Settings struct {
	// Endpoint is the URL that spans are posted to, with its path; "" for no collector.
	Endpoint string
	// JSON has OTLP sent in JSON and not in protobuf; Gzip has it compressed.
	JSON, Gzip bool
	// Headers go with each request to the collector, such as a token.
	Headers http.Header
	// Timeout bounds one request to the collector. 0 means 10s.
	Timeout time.Duration
	// CA is the path of the authorities that the collector's certificate may be of, "" for the system's. Certificate and
	// Key are the paths of the proxy's own, for a collector that asks for one.
	CA, Certificate, Key string

	// File is the path of a file that spans are appended to, as OTLP in JSON, a batch on each line; "" for none. It grows
	// without a bound: it is for looking at some calls.
	File string

	// Sampler decides which calls are recorded.
	Sampler Sampler
	// Resource says whose spans they are: service.name and others.
	Resource []Attribute
	// Version is that of the program that makes them; "" if nobody knows.
	Version string

	// Queue is how many spans may wait; one more is dropped. 0 means 2048.
	Queue int
	// Batch is how many spans are sent at once. 0 means 512, or Queue if that is less.
	Batch int
	// Delay is how long a span waits for others. 0 means 5s.
	Delay time.Duration

	// Transport sends the requests to the collector. Nil means one of its own, which goes through no proxy: the one in
	// http_proxy is often this one.
	Transport http.RoundTripper
}

// Enabled reports whether spans go anywhere.
func (s *Settings) Enabled() bool { return s.Endpoint != "" || s.File != "" }

func (s Settings) withDefaults() Settings {
	s.Resource = slices.Clone(s.Resource)
	host, _ := os.Hostname() // "" says nothing
	for _, a := range []Attribute{
		{Key: "service.version", Text: s.Version}, {Key: "host.name", Text: host},
		{Key: "telemetry.sdk.name", Text: "abate"}, {Key: "telemetry.sdk.language", Text: "go"},
		{Key: "telemetry.sdk.version", Text: cmp.Or(s.Version, "unknown")},
	} {
		there := slices.ContainsFunc(s.Resource, func(b Attribute) bool { return b.Key == a.Key })
		if a.Text != "" && !there {
			s.Resource = append(s.Resource, a)
		}
	}
	s.Timeout = cmp.Or(s.Timeout, 10*time.Second)
	s.Queue = cmp.Or(s.Queue, 2048)
	s.Batch = min(cmp.Or(s.Batch, 512), s.Queue)
	s.Delay = cmp.Or(s.Delay, 5*time.Second)
	return s
}

// Shown is the endpoint for a log: without what may be secret.
func (s *Settings) Shown() string {
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		return "its endpoint"
	}
	u.RawQuery = ""
	return u.Redacted()
}

// transport is how to reach the collector.
func (s *Settings) transport() (http.RoundTripper, error) {
	if s.Transport != nil || s.Endpoint == "" {
		return s.Transport, nil
	}
	t := &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: s.Timeout,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	var problems []error
	if s.CA != "" {
		pem, err := os.ReadFile(s.CA)
		if t.TLSClientConfig.RootCAs = x509.NewCertPool(); err == nil &&
			!t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s has no certificate in PEM", s.CA)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("the authorities of the trace collector: %w", err))
		}
	}
	if s.Certificate != "" || s.Key != "" {
		pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
		if t.TLSClientConfig.Certificates = []tls.Certificate{pair}; err != nil {
			problems = append(problems, fmt.Errorf("the certificate for the trace collector: %w", err))
		}
	}
	return t, errors.Join(problems...)
}
