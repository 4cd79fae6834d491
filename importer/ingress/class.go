package ingress

import (
	"strings"

	"github.com/abate-go/abate/importer/kong"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// The controllers whose retries are known.
const (
	ingressNginx = "ingress-nginx"
	kongIngress  = kong.ControllerName
)

// class is what serves an Ingress.
type class struct {
	controller string // one of the constants, or empty
	service    string // of the form
}

// classOf returns what serves an Ingress: as its class says, or the default class of the files, or an annotation that
// one controller has.
func (r *reader) classOf(o source.Resource) class {
	name := o.Spec.Get("ingressClassName").Text()
	if name == "" {
		name = o.Annotation("kubernetes.io/ingress.class").Text()
	}
	if name == "" {
		name = r.defaultClass
	}
	if name == "" || source.Template(name) != "" {
		switch {
		case annotated(o, nginxPrefix):
			return class{ingressNginx, "ingress-nginx"}
		case annotated(o, kongPrefix):
			return class{kongIngress, "ingress-kong"}
		}
		return class{service: "ingress"}
	}
	c := class{service: name, controller: byName(name)}
	if !strings.Contains(name, "ingress") {
		c.service = "ingress-" + name
	}
	if strings.Contains(name, "traefik") { // as its own resources call it
		c.service = "traefik"
	}
	if resource, found := r.classes[name]; found {
		c.controller = byController(resource.Spec.Get("controller").Text())
	} else if c.controller == ingressNginx && r.isOfNginxInc(o) {
		c.controller = ""
	}
	return c
}

// isOfNginxInc reports whether an Ingress whose class is nginx is for the controller of NGINX Inc., whose class that is
// too: it has annotations of it, or its image runs, or there are resources of it, and ingress-nginx does not run.
func (r *reader) isOfNginxInc(o source.Resource) bool {
	theirs := r.assume.NginxInc || !r.assume.Images["nginx-ingress"].IsZero()
	return annotated(o, "nginx.org/") || annotated(o, "nginx.com/") ||
		theirs && r.assume.Images[ingressNginx].IsZero() && !annotated(o, nginxPrefix)
}

// byName is the controller that a class means by custom.
func byName(class string) string {
	switch {
	case strings.Contains(class, "nginx-plus"): // that of NGINX Inc.
	case strings.Contains(class, "nginx"):
		return ingressNginx
	case strings.Contains(class, "kong"):
		return kongIngress
	}
	return ""
}

// byController is the controller that an IngressClass names. A cluster with several of one kind gives them names of
// their own: k8s.io/ingress-nginx-internal.
func byController(name string) string {
	switch {
	case strings.HasPrefix(name, "k8s.io/") && strings.Contains(name, "ingress-nginx"):
		return ingressNginx
	case strings.HasPrefix(name, "ingress-controllers.konghq.com/"):
		return kongIngress
	}
	return ""
}

// from returns the service of the form that a class is, and makes it the first time.
func (r *reader) from(c class, at topology.Position) string {
	if !r.made[c.service] {
		r.made[c.service] = true
		who := "a proxy"
		if c.controller != "" {
			who = r.who(c.controller)
		}
		s := topology.Service{Name: c.service, At: at, Proxy: true, AnswersWith: topology.DefaultOf("same", who, at)}
		if c.controller != "" {
			s.Cancels = topology.DefaultOf(true, who, at)
		}
		r.form.Services = append(r.form.Services, s)
	}
	return c.service
}

// controllers are the titles of the controllers, and the newest version that is known here.
var controllers = map[string][2]string{ingressNginx: {"ingress-nginx", "1.15"},
	kongIngress: {"Kong Ingress Controller", kong.ControllerVersion}}

func (r *reader) version(controller string) topology.Value[string] {
	return r.assume.Version(controller, controllers[controller][1])
}

// who says whose defaults were taken: "ingress-nginx 1.15".
func (r *reader) who(controller string) string {
	return controllers[controller][0] + " " + r.version(controller).V
}
