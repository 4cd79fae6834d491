package gatewayapi

import (
	"github.com/abate-go/abate/importer/kong"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// ofKong reads a rule as Kong's controller does: of it only backendRequest counts, which is the limit of opening a
// connection too.
func (r *reader) ofKong(l *topology.Layer, rule source.Node) {
	for _, n := range []source.Node{rule.Get("retry"), rule.Get("timeouts", "request")} {
		if n.Written() {
			r.remark("F602", n.At(), l.Name+" retry", "Kong's controller reads neither retry nor timeouts.request of a rule",
				"write annotations of the Service: konghq.com/retries, konghq.com/read-timeout")
		}
	}
	l.PerTry = read(r, rule.Get("timeouts", "backendRequest"), source.Duration)
	l.Connect = l.PerTry
}

// behindKong is a rule of Kong's for one of its back ends, whose annotations hold before it.
func (r *reader) behindKong(l topology.Layer, name, namespace string) topology.Layer {
	r.kong.Version = l.Version
	one := r.kong.Layer(kong.Service{Name: l.Name, Choice: l.Choice, At: l.At, ReadTimeout: l.PerTry,
		ConnectTimeout: l.Connect}, name, namespace)
	one.Match = l.Match
	if one.Speaks.IsZero() {
		one.Speaks = l.Speaks
	}
	return one
}
