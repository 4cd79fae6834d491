package gatewayapi

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/kong"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

type (
	scalar                   = topology.Scalar
	value[T topology.Scalar] = topology.Value[T]
)

// reader holds the objects of all files while routes are read.
type reader struct {
	assume    source.Assume
	classes   []source.Resource
	gateways  []source.Resource
	routes    []source.Resource
	policies  []source.Resource // BackendTrafficPolicies of Envoy Gateway
	budgets   []source.Resource // XBackendTrafficPolicies
	filters   []source.Resource // RouteRetryFilters and RouteTimeoutFilters of Consul
	kong      kong.Controller
	services  map[string]int // gateways that are services of the form, by name
	targeted  map[target][]source.Resource
	selecting []source.Resource            // policies that choose by labels
	named     map[string][]source.Resource // gateways by name
	noted     map[string]bool              // what has been remarked once
	form      topology.Form
}

// Read returns what the documents, all of them recognised, say.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	r := &reader{assume: assume, services: map[string]int{}, noted: map[string]bool{}}
	for _, d := range docs {
		switch o := d.Resource(); o.Kind {
		case "GatewayClass":
			r.classes = append(r.classes, o)
		case "Gateway":
			r.gateways = append(r.gateways, o)
		case "HTTPRoute", "GRPCRoute":
			r.routes = append(r.routes, o)
		case "BackendTrafficPolicy":
			r.policies = append(r.policies, o)
		case "RouteRetryFilter", "RouteTimeoutFilter":
			r.filters = append(r.filters, o)
		case "Service":
			r.kong.Services = append(r.kong.Services, o)
		case "KongIngress":
			r.kong.Overrides = append(r.kong.Overrides, o)
		default:
			r.budgets = append(r.budgets, o)
		}
	}
	r.attach()
	r.named = map[string][]source.Resource{}
	for _, g := range r.gateways {
		r.named[g.Name] = append(r.named[g.Name], g)
	}
	for _, route := range r.routes {
		r.route(route)
	}
	r.unattached()
	r.form.Remarks = source.Distinct(append(r.form.Remarks, r.kong.Remarks...))
	return r.form
}

func (r *reader) remark(rule string, at topology.Position, subject, text, fix string) {
	r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: rule, At: at, Subject: subject, Text: text, Fix: fix})
}

// read is source.Scalar, whose remarks are added to the form's.
func read[T scalar](r *reader, n source.Node, parse func(string) (T, error)) value[T] {
	v, more := source.Scalar(n, parse)
	r.form.Remarks = append(r.form.Remarks, more...)
	return v
}

// The products whose defaults this package knows.
const (
	istio        = "istio"
	envoyGateway = "envoy-gateway"
	consul       = "consul"

	kongController = kong.ControllerName
)

// controllers are words in the name of a class or of its controller, and the product that they mean.
var controllers = [][2]string{{"gateway.envoyproxy.io", envoyGateway}, {"envoy-gateway", envoyGateway}, {"istio",
	istio},
	{"linkerd", "linkerd"}, {"projectcontour.io", "contour"}, {"contour", "contour"}, {"traefik", "traefik"}, {"cilium",
		"cilium"},
	{"konghq", kongController}, {"kong", kongController}, {"nginx", "nginx"}, {"haproxy", "haproxy"}, {"consul", consul},
	{"kuma", "kuma"},
	{"gke", "gke"}, {"alb", "aws"}, {"vpc-lattice", "aws"}, {"kgateway", "kgateway"}, {"solo.io", "kgateway"}}

// product returns the product that serves a gateway, and what says so. It is empty when nobody knows.
func (r *reader) product(gateway source.Resource) value[string] {
	class := gateway.Spec.Get("gatewayClassName")
	for _, c := range r.classes {
		if c.Name == class.Text() && class.Exists() {
			controller := c.Spec.Get("controllerName")
			if p := byWords(controller.Text()); p != "" {
				return topology.Write(p, controller.At())
			}
		}
	}
	if class.Text() == "eg" {
		return topology.Assume(envoyGateway, "by the name of the gateway class")
	}
	if p := byWords(class.Text()); p != "" {
		return topology.Assume(p, "by the name of the gateway class")
	}
	return r.told()
}

// told returns the product that people named; or the only one with policies of its own.
func (r *reader) told() value[string] {
	if r.assume.Implementation != "" {
		return topology.Assume(r.assume.Implementation, "told on the command line")
	}
	if len(r.filters) > 0 {
		return topology.Assume(consul, "there are filters of Consul")
	}
	if len(r.policies) > 0 {
		return topology.Assume(envoyGateway, "there are policies of Envoy Gateway")
	}
	return value[string]{}
}

// runsIstio reports whether a Gateway is Istio's, a waypoint or one at the edge, so that the mesh beside it is too.
func (r *reader) runsIstio() bool {
	for _, of := range r.named {
		for _, g := range of {
			if strings.HasPrefix(g.Spec.Get("gatewayClassName").Text(), "istio") {
				return true
			}
		}
	}
	return false
}

func byWords(name string) string {
	for _, c := range controllers {
		if strings.Contains(strings.ToLower(name), c[0]) {
			return c[1]
		}
	}
	return ""
}

// gateway returns a gateway by its name; it need not be in any file.
func (r *reader) gateway(name, namespace string) source.Resource {
	for _, g := range r.named[name] {
		if g.Namespace == namespace {
			return g
		}
	}
	for _, g := range r.named[name] { // namespaces are often left to kubectl
		if g.Namespace == "" || namespace == "" {
			return g
		}
	}
	return source.Resource{Kind: "Gateway", Name: name, Namespace: namespace}
}

// service returns the service of the form that a gateway is, and makes it the first time.
func (r *reader) service(g source.Resource, at topology.Position, who string, hosts []string) string {
	name := source.Qualified(g.Name, g.Namespace)
	i, known := r.services[name]
	if !known {
		i = len(r.form.Services)
		r.services[name] = i
		s := topology.Service{Name: name, At: g.At}
		if g.At.IsZero() {
			s.At = at
		}
		if who != "" {
			s.AnswersWith, s.Cancels = topology.DefaultOf("same", who, s.At), topology.DefaultOf(true, who, s.At)
		}
		r.form.Services = append(r.form.Services, s)
	}
	s := &r.form.Services[i]
	for _, h := range hosts {
		if strings.Contains(h, ".") && !strings.Contains(h, "*") && source.Template(h) == "" && !slices.Contains(s.Aliases,
			h) {
			s.Aliases = append(s.Aliases, h)
		}
	}
	return name
}
