package ingress

import (
	"time"

	"github.com/abate-go/abate/importer/kong"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// near reports whether an object is the one of a name in a namespace, as far as its file says it.
func near(o source.Resource, name, namespace string) bool {
	return o.Name == name && (o.Namespace == namespace || o.Namespace == "" || namespace == "")
}

func find(all []source.Resource, name, namespace string) source.Resource {
	for _, o := range all {
		if near(o, name, namespace) {
			return o
		}
	}
	return source.Resource{}
}

// kong returns how Kong tries a service: what its annotations leave out, Kong's controller writes.
func (r *reader) kong(t target, name, namespace string) topology.Layer {
	o := find(r.services, name, namespace)
	s := kong.Service{Product: kongIngress, Version: r.version(kongIngress), Who: r.who(kongIngress), At: t.at,
		Defaults:       o.Root.Get("metadata", "annotations").At(),
		Retries:        ofKong(r, o, "retries", source.Int),
		ReadTimeout:    ofKong(r, o, "read-timeout", milliseconds),
		ConnectTimeout: ofKong(r, o, "connect-timeout", milliseconds)}
	if proxy := r.override(o); proxy.Exists() {
		s.Retries = or(s.Retries, read(r, proxy.Get("retries"), source.Int))
		s.ReadTimeout = or(s.ReadTimeout, read(r, proxy.Get("read_timeout"), milliseconds))
		s.ConnectTimeout = or(s.ConnectTimeout, read(r, proxy.Get("connect_timeout"), milliseconds))
	}
	l := s.Layer()
	r.sharedLimits(kongIngress, &l)
	return l
}

// milliseconds reads a whole number of them.
func milliseconds(word string) (time.Duration, error) { return whole(word, time.Millisecond) }

// ofKong reads an annotation of a Service. One that is no whole number is left out, as Kong's controller leaves it out.
func ofKong[T topology.Scalar](r *reader, o source.Resource, key string, parse func(string) (T, error),
) topology.Value[T] {
	return dropped(r, o.Annotation(kongPrefix+key), o.String()+" "+kongPrefix+key, controllers[kongIngress][0], parse)
}

// override returns the settings of the KongIngress that a Service names. The controller reads them before 3.0.
func (r *reader) override(o source.Resource) source.Node {
	name := o.Annotation(kongPrefix + "override").Text()
	if name == "" || !r.readsOverrides() {
		return source.Node{}
	}
	return find(r.overrides, name, o.Namespace).Root.Get("proxy")
}

func (r *reader) readsOverrides() bool { return source.Before(r.version(kongIngress).V, "3.0") }

// retired remarks settings of a KongIngress that the controller no longer reads.
func (r *reader) retired() {
	for _, o := range r.overrides {
		proxy := o.Root.Get("proxy")
		if !proxy.Exists() || r.readsOverrides() {
			continue
		}
		one := topology.Remark{Rule: "F602", At: proxy.At(), Subject: o.String() + " proxy",
			Text: r.who(kongIngress) + " does not read proxy of a KongIngress: it did until 3.0",
			Fix:  "write annotations of the Service: konghq.com/retries, konghq.com/read-timeout, konghq.com/connect-timeout"}
		if v := r.version(kongIngress); v.Origin == topology.Assumed {
			one.Assumed = v.Why
		}
		r.form.Remarks = append(r.form.Remarks, one)
	}
}
