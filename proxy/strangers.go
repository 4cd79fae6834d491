package proxy

import (
	"slices"

	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/identity"
)

// fromStranger tells whether a gateway got the request from a peer that is not among those whose fields are believed. Where nobody
// has said who is, it knows no strangers.
func (x *exchange) fromStranger() bool {
	c := &x.plane.config
	from := x.client.origin()
	if !c.Gateway || from.door.name != "" || len(c.TrustedPeers) == 0 {
		return false
	}
	for _, p := range c.TrustedPeers {
		if p.Contains(from.peer) {
			return false
		}
	}
	return true
}

// asStranger tells whether a field is one that a stranger may not send through a gateway: where a request has been, and who a user is.
func asStranger(f h1.Field) bool { return byProxies(f) || identity.Told(f.Name) }

// unmask takes off what a stranger may not say.
func (x *exchange) unmask() {
	if x.fromStranger() {
		x.req.Fields = slices.DeleteFunc(x.req.Fields, asStranger)
	}
}
