package inspect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

// assumptions is a flag that may be given several times.
type assumptions []string

func (a *assumptions) String() string     { return strings.Join(*a, ",") }
func (a *assumptions) Set(s string) error { *a = append(*a, s); return nil }

// versioned are the products whose defaults depend on their version.
var versioned = []string{"istio", "envoy", "envoy-gateway", "linkerd", "kuma", "contour", "nginx", "haproxy", "grpc",
	"resilience4j", "traefik", "kong", "dapr", "ingress-nginx", "kong-ingress-controller"}

// implementations are the products whose Gateway API is known.
var implementations = []string{"istio", "envoy-gateway", "consul"}

var version = regexp.MustCompile(`^v?\d+(\.\d+)*`)

// read returns what the words assume, and whether applications pass failures on. It calls wrong for what is no
// assumption; app says whether app=propagate is one.
func (a assumptions) read(app bool, wrong func(format string, args ...any)) (assume source.Assume, propagate bool) {
	assume.Versions = map[string]string{}
	for _, word := range a {
		name, value, ok := strings.Cut(word, "=")
		name = strings.ToLower(name)
		switch {
		case !ok || name == "" || value == "":
			wrong("--assume: %q is no assumption; write NAME=VALUE, for example istio=1.23", word)
		case name == "app" && app && value == "propagate":
			propagate = true
		case name == "app" && app:
			wrong("--assume: app=%s is not known; allowed: app=propagate", value)
		case name == "implementation" && slices.Contains(implementations, value):
			assume.Implementation = value
		case name == "implementation":
			wrong("--assume: implementation=%s is not known; %s", value, source.Meant(value, implementations))
		case name == "spring.profiles":
			assume.Versions[name] = value
		case !slices.Contains(versioned, name):
			wrong("--assume: %s has no versions that are known here; %s", name, source.Meant(name, versioned))
		case !version.MatchString(value):
			wrong("--assume: %s=%s: %q is no version; write for example %s=1.23", name, value, value, name)
		default:
			assume.Versions[name] = value
		}
	}
	return assume, propagate
}
