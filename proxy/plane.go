package proxy

import (
	"context"
	"sync"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/stale"
	"github.com/abate-go/abate/proxy/tracing"
)

// plane is what all requests of a proxy share: the policy in force, the connections to services, and what is
// remembered of one request for others.
type plane struct {
	config   Config
	policies *policyfile.Set
	clock    instant
	life     context.Context // until the last client has gone
	end      context.CancelFunc

	out      transport
	services services
	outside  outside
	trees    calltree.Table
	kept     *stale.Store
	tunnels  tunnels
	pinned   sync.Map        // address of a listener for one service, to its name
	lines    lineLimit       // of the access log
	tracer   *tracing.Tracer // nil if no traces are recorded
}
