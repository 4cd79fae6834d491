package importer

import (
	"github.com/abate-go/abate/importer/abatefile"
	"github.com/abate-go/abate/importer/awssdk"
	"github.com/abate-go/abate/importer/consul"
	"github.com/abate-go/abate/importer/contour"
	"github.com/abate-go/abate/importer/dapr"
	"github.com/abate-go/abate/importer/envoy"
	"github.com/abate-go/abate/importer/gatewayapi"
	"github.com/abate-go/abate/importer/grpcconfig"
	"github.com/abate-go/abate/importer/haproxy"
	"github.com/abate-go/abate/importer/ingress"
	"github.com/abate-go/abate/importer/istio"
	"github.com/abate-go/abate/importer/kong"
	"github.com/abate-go/abate/importer/kuma"
	"github.com/abate-go/abate/importer/linkerd"
	"github.com/abate-go/abate/importer/metrics"
	"github.com/abate-go/abate/importer/nginx"
	"github.com/abate-go/abate/importer/polly"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/spring"
	"github.com/abate-go/abate/importer/traces"
	"github.com/abate-go/abate/importer/traefik"
	"github.com/abate-go/abate/importer/workloads"
	"github.com/abate-go/abate/topology"
)

// format is one kind of file.
type format struct {
	name      string
	form      form
	recognise func(source.Document) bool
	read      func([]source.Document, source.Assume) topology.Form
}

// form says how the files of a format are written.
type form uint8

const (
	parsed form = 1 << iota // YAML or JSON, as a tree of nodes
	stream                  // JSON that may be large, or a value a line: the text is looked at first
	plain                   // a language of its own
)

// formats are all that an audit reads.
var formats = []format{
	{"calls", parsed, isForm, readForms},
	{"workloads", parsed, workloads.Recognise, workloads.Read},
	{"traces", stream, traces.Recognise, traces.Read},
	{"metrics", stream, metrics.Recognise, metrics.Read},
	{"envoy", parsed, envoy.Recognise, envoy.Read},
	{"istio", parsed, istio.Recognise, istio.Read},
	{"gateway-api", parsed, gatewayapi.Recognise, gatewayapi.Read},
	{"ingress", parsed, ingress.Recognise, ingress.Read},
	{"linkerd", parsed, linkerd.Recognise, linkerd.Read},
	{"grpc", parsed, grpcconfig.Recognise, grpcconfig.Read},
	{"spring", parsed | plain, spring.Recognise, spring.Read},
	{"kuma", parsed, kuma.Recognise, kuma.Read},
	{"abate", parsed, abatefile.Recognise, abatefile.Read},
	{"contour", parsed, contour.Recognise, contour.Read},
	{"kong", parsed, kong.Recognise, kong.Read},
	{"traefik", parsed, traefik.Recognise, traefik.Read},
	{"consul", parsed, consul.Recognise, consul.Read},
	{"aws-sdk", parsed | plain, awssdk.Recognise, awssdk.Read},
	{"polly", parsed, polly.Recognise, polly.Read},
	{"dapr", parsed, dapr.Recognise, dapr.Read},
	{"nginx", plain, nginx.Recognise, nginx.Read},
	{"haproxy", plain, haproxy.Recognise, haproxy.Read},
}

// Formats returns the names of all formats that Read knows.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}
