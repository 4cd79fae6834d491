package kafka

import (
	"errors"

	"github.com/abate-go/abate/internal/loopback"
)

// ports are where a node listens: for clients and for itself.
type ports struct{ clients, controller int }

// find finds two at which nobody listens.
func (p *ports) find() error {
	var noClients, noController error
	p.clients, noClients = loopback.Port()
	p.controller, noController = loopback.Port()
	return errors.Join(noClients, noController)
}
