package proxy

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/abate-go/abate/core"
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
	leaving  atomic.Bool  // see Proxy.Leave
	crowd    atomic.Int32 // clients who wait for a slot

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

// note writes down what became of a client that did not come as far as a request, unless there are too many of them.
func (p *plane) note(what string, attrs ...slog.Attr) {
	log := p.config.AccessLog
	if dropped, ok := p.lines.admit(core.Now()); ok && log != nil {
		log.LogAttrs(context.Background(), slog.LevelInfo, what, append(attrs, slog.Int("linesDropped", dropped))...)
	}
}

// leaves reports whether clients at a listener of this name are to go, see Leave.
func (p *plane) leaves(listen string) bool {
	return p.leaving.Load() && (listen != "" || p.config.Gateway)
}
