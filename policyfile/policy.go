package policyfile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/check"
	"github.com/abate-go/abate/internal/check/kafkacheck"
	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/policy/health"
	"github.com/abate-go/abate/policy/redelivery"
)

// Policy is one service, or the defaults, as the policy file has it, field for key: the policy of its guard, and what
// no guard looks at, for those that act on it.
type Policy struct {
	abate.Policy `yaml:",inline"`

	// OutlierDetection takes endpoints that fail out of the proxy's balancing for a while.
	OutlierDetection balance.Config `yaml:"outlierDetection"`

	// HealthCheck has the proxy ask endpoints how they are, and leave out those that are not well. With a single one it
	// is only shown.
	HealthCheck health.Config `yaml:"healthCheck"`

	// Kafka says what a consumer in front of the service does with messages that fail: retry topics, the dead-letter
	// topic, the drain after an outage. See adapter/abatekafka.
	Kafka redelivery.Config `yaml:"kafka"`

	// IgnoreZones has endpoints in the caller's own zone preferred no more than others.
	IgnoreZones bool `yaml:"ignoreZones"`

	// Upstreams are the base URLs of the service, one per endpoint: http, https, h2c for HTTP/2 without TLS, or
	// unix:/PATH?host=NAME for a Unix socket (h2c+unix and https+unix for the other two). A request to one of their hosts
	// belongs to this service. The proxy balances over them.
	Upstreams []string `yaml:"upstreams" example:"[\"http://payments:8080\"]"`
	// Discovery finds the addresses of the service, by DNS, in a file or in Kubernetes; not set, the upstreams are its
	// endpoints.
	Discovery Discovery `yaml:"discovery"`
	// Weights are those of the upstreams, in their order: one with weight 2 gets twice as many attempts as one with weight
	// 1. Default: all weigh the same. In a simulation they are those of the replicas, again from the first one on where
	// there are more.
	Weights []int `yaml:"weights" range:"1..1000" example:"[3, 1]"`
	// Routes choose this service for a request by host and path prefix; the longest prefix wins.
	Routes []Route `yaml:"routes"`

	// TLS is how the proxy speaks to the https upstreams: whom it trusts, and how it shows who it is. Not set: it trusts
	// the authorities of the system, and shows no certificate.
	TLS UpstreamTLS `yaml:"tls"`
	// SendProxyProtocol has every connection to an upstream begin with a header of the PROXY protocol, which tells the
	// address of the client: version v1 or v2. A connection is used again for the same connection of a client only. One of
	// HTTP/2, which clients share, says that it is the proxy's own. Empty: none is sent.
	SendProxyProtocol string `yaml:"sendProxyProtocol" enum:"v1|v2" example:"v2"`
}

// ofOneService are the keys that the defaults cannot have.
var ofOneService = []string{"upstreams", "discovery", "weights", "routes"}

// DefaultPolicy is what every service of a policy file begins with, but for those for connections.
func DefaultPolicy() Policy {
	return Policy{Policy: abate.DefaultPolicy(), OutlierDetection: balance.Config{ConsecutiveFailures: 5}}
}

// Validate returns everything that is wrong with the policy, joined: each part is an *abate.FieldError.
func (p Policy) Validate() error {
	var v check.Errors
	rest := p
	rest.Policy, rest.Kafka = abate.Policy{}, redelivery.Config{} // they check themselves
	v.Walk("", reflect.ValueOf(rest))
	checkOutliers(&v, p.OutlierDetection)
	checkHealth(&v, p.HealthCheck, p.Upstreams)
	kafkacheck.Validate(&v, p.Kafka)
	v.Upstreams(p.Upstreams)
	checkDiscovery(&v, p.Discovery, p.Upstreams, p.Weights)
	p.TLS.validate(&v, "tls")
	if n, upstreams := len(p.Weights), len(p.Upstreams); n > 0 && upstreams > 0 && n != upstreams {
		v.Add("weights", fmt.Sprintf("has %d weights for %d upstreams", n, upstreams), "write one for each, in their order")
	}
	for i, r := range p.Routes {
		checkRoute(&v, i, r)
	}
	return errors.Join(p.Policy.Validate(), v.Join())
}

func checkOutliers(v *check.Errors, c balance.Config) {
	v.Below("outlierDetection.baseEjectionTime", c.BaseEjectionTime, "maxEjectionTime", c.MaxEjectionTime,
		"lower it or raise maxEjectionTime")
}

func checkHealth(v *check.Errors, c health.Config, upstreams []string) {
	v.Below("healthCheck.timeout", c.Timeout, "interval", c.Interval, "lower it or raise interval")
	v.Below("healthCheck.interval", c.Interval, "maxInterval", c.MaxInterval, "lower it or raise maxInterval")
	strange := func(r rune) bool { return r <= ' ' || r > '~' }
	if c.Path != "" && (c.Path[0] != '/' || strings.ContainsFunc(c.Path, strange)) {
		v.Add("healthCheck.path", strconv.Quote(c.Path)+" is not a path", `for example "/healthz"`)
	}
	other := func(u string) bool { return strings.HasPrefix(u, "h2c:") }
	if i := slices.IndexFunc(upstreams, other); i >= 0 && c.Kind == health.HTTP {
		v.Add("healthCheck.kind", fmt.Sprintf("http is HTTP/1.1, which upstreams[%d] does not speak", i), "write grpc or tcp")
	}
}

// Ineffective returns the settings that do nothing because what they belong to is off, joined like Validate's mistakes.
func (p Policy) Ineffective() error {
	var v check.Errors
	p.HealthCheck.Ineffective(func(key string, set bool, fix string) { v.Idle("healthCheck."+key, set, fix) })
	kafkacheck.Ineffective(&v, p.Kafka)
	p.TLS.ineffective(&v, "tls", p.Upstreams)
	return errors.Join(p.Policy.Ineffective(), v.Join())
}

// WithDefaults returns the policy with every default written out. It is idempotent.
func (p Policy) WithDefaults() Policy {
	p.Policy = p.Policy.WithDefaults()
	p.OutlierDetection = p.OutlierDetection.WithDefaults()
	p.HealthCheck = p.HealthCheck.WithDefaults()
	p.Kafka = p.Kafka.WithDefaults()
	return p
}

// own cuts the policy loose from the lists it shares.
func (p Policy) own() Policy {
	p.RetryOn, p.NeverRetryOn = slices.Clone(p.RetryOn), slices.Clone(p.NeverRetryOn)
	p.RetryMethods = slices.Clone(p.RetryMethods)
	p.Fallback.Identity = slices.Clone(p.Fallback.Identity)
	p.Kafka = p.Kafka.Clone()
	p.Upstreams, p.Weights, p.Routes = slices.Clone(p.Upstreams), slices.Clone(p.Weights), slices.Clone(p.Routes)
	p.TLS.Peers = slices.Clone(p.TLS.Peers)
	return p
}

// forStrangers returns the policy for a host that the file does not list.
func (p Policy) forStrangers() Policy {
	p.Policy, p.HealthCheck = p.Policy.ForStrangers(), health.Config{}
	return p
}
