package proxy

import (
	"slices"

	"github.com/abate-go/abate/internal/fieldname"
	"github.com/abate-go/abate/proxy/h1"
)

// asStranger reports whether a field is one that a stranger may not send through a gateway: where a request has been,
// and who a user is.
func asStranger(f h1.Field) bool { return byProxies(f) || fieldname.Asserted(f.Name) }

// fromStranger reports whether a gateway got the request from a peer that is not among those whose fields are believed.
// Where nobody has said who is, it knows no strangers.
func (r *request) fromStranger() bool {
	c := &r.plane.config
	from := r.client.origin()
	if !c.Gateway || from.listen != "" || len(c.TrustedPeers) == 0 {
		return false
	}
	for _, p := range c.TrustedPeers {
		if p.Contains(from.peer) {
			return false
		}
	}
	return true
}

// unmask takes off what a stranger may not say.
func (r *request) unmask() {
	if r.fromStranger() {
		r.Fields = slices.DeleteFunc(r.Fields, asStranger)
	}
}
