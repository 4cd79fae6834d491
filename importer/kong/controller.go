package kong

import (
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// The controller in a cluster, as --assume and layers call it, and the newest version that is known here.
const (
	ControllerName    = "kong-ingress-controller"
	ControllerVersion = "3.5"
)

// annotation is how the names of its annotations begin.
const annotation = "konghq.com/"

// Controller is Kong's controller in a cluster, which writes a service of Kong for what an Ingress or a route leads to.
type Controller struct {
	Version topology.Value[string]
	// Services are those with annotations of Kong, and Overrides the KongIngresses.
	Services, Overrides []source.Resource
	Remarks             []topology.Remark // noticed by Layer
}

// Who says whose defaults hold: "Kong Ingress Controller 3.5".
func (c *Controller) Who() string { return "Kong Ingress Controller " + c.Version.V }

// Layer returns how a Service is tried. s says what else is known of it; the annotations of the Service hold before
// that. What they leave out, the controller writes.
func (c *Controller) Layer(s Service, name, namespace string) topology.Layer {
	o := find(c.Services, name, namespace)
	s.Product, s.Version, s.Who = ControllerName, c.Version, c.Who()
	s.Defaults = o.Root.Get("metadata", "annotations").At()
	set := func(to *topology.Value[time.Duration], key, old string, proxy source.Node) {
		milliseconds := source.Whole(time.Millisecond, "milliseconds")
		*to = or(annotated(c, o, key, milliseconds), or(read(c, proxy.Get(old), milliseconds), *to))
	}
	proxy := c.override(o)
	s.Retries = or(annotated(c, o, "retries", source.Int), or(read(c, proxy.Get("retries"), source.Int), s.Retries))
	set(&s.ReadTimeout, "read-timeout", "read_timeout", proxy)
	set(&s.ConnectTimeout, "connect-timeout", "connect_timeout", proxy)
	l := s.Layer()
	if is := o.Annotation(annotation + "protocol"); strings.HasPrefix(is.Text(), "grpc") {
		l.Speaks = topology.Write(topology.SpeaksGRPC, is.At())
	}
	return l
}

// Annotated reports whether an object says something to the controller of a Service: it is one with annotations of
// Kong, or a KongIngress.
func Annotated(o source.Resource) bool {
	switch o.Kind {
	case "KongIngress":
		return o.Group == "configuration.konghq.com"
	case "Service":
		return o.Group == "" && slices.ContainsFunc(o.Root.Get("metadata", "annotations").Pairs(),
			func(p source.Pair) bool { return strings.HasPrefix(p.Key, annotation) })
	}
	return false
}

// find returns the object of a name in a namespace, as far as its file says that.
func find(all []source.Resource, name, namespace string) source.Resource {
	for _, o := range all {
		if o.Name == name && (o.Namespace == namespace || o.Namespace == "" || namespace == "") {
			return o
		}
	}
	return source.Resource{}
}

// annotated reads an annotation of a Service. The controller leaves out one that it cannot read.
func annotated[T topology.Scalar](c *Controller, o source.Resource, key string, parse func(string) (T, error),
) topology.Value[T] {
	v, remarks := source.Tolerated(o.Annotation(annotation+key), "Kong's controller", o.String()+" "+annotation+key, parse)
	c.Remarks = append(c.Remarks, remarks...)
	return v
}

func read[T topology.Scalar](c *Controller, n source.Node, parse func(string) (T, error)) topology.Value[T] {
	v, remarks := source.Scalar(n, parse)
	c.Remarks = append(c.Remarks, remarks...)
	return v
}

// override returns the settings of the KongIngress that a Service names. The controller reads them before 3.0.
func (c *Controller) override(o source.Resource) source.Node {
	name := o.Annotation(annotation + "override").Text()
	if name == "" || !c.readsOverrides() {
		return source.Node{}
	}
	return find(c.Overrides, name, o.Namespace).Root.Get("proxy")
}

func (c *Controller) readsOverrides() bool { return source.Before(c.Version.V, "3.0") }

// Retired returns remarks of settings of a KongIngress that the controller no longer reads.
func (c *Controller) Retired() (all []topology.Remark) {
	for _, o := range c.Overrides {
		proxy := o.Root.Get("proxy")
		if !proxy.Exists() || c.readsOverrides() {
			continue
		}
		one := topology.Remark{Rule: "F602", At: proxy.At(), Subject: o.String() + " proxy",
			Text: c.Who() + " does not read proxy of a KongIngress: it did until 3.0",
			Fix:  "write annotations of the Service: konghq.com/retries, konghq.com/read-timeout, konghq.com/connect-timeout"}
		if c.Version.Origin == topology.Assumed {
			one.Assumed = c.Version.Why
		}
		all = append(all, one)
	}
	return all
}
