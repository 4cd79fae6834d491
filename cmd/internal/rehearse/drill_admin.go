package rehearse

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/internal/drill/httpdrill"
	"github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/internal/series"
)

// defaultAdmin is where the page of a proxy or a drill is, and where "abate top" looks for it.
const defaultAdmin = "127.0.0.1:15000"

// drillAdmin is the page beside a drill. Nobody can change anything there.
type drillAdmin struct {
	watchers httpdrill.Watchers
	listener net.Listener // nil without one
	server   *http.Server
}

// lasting are metrics, which count on from act to act and show the last guard of a name for good.
type lasting struct{ *metrics.Metrics }

// Begin does nothing.
func (lasting) Begin(string) {}

// Remove does nothing.
func (lasting) Remove(...*abate.Guard) {}

// openAdmin serves the page. At the default address it gives way to a program that is there already.
func (o *drillOptions) openAdmin() (*drillAdmin, error) {
	a := new(drillAdmin)
	if o.admin == cli.Off {
		return a, nil
	}
	addr := o.admin
	if addr == "" {
		addr = defaultAdmin
	}
	l, err := net.Listen("tcp", addr)
	if o.admin == "" && errors.Is(err, syscall.EADDRINUSE) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("--admin %s: %s", addr, cli.ListenProblem(err))
	}
	metrics, registry := metrics.New(), new(series.Registry)
	if err := registry.Register(metrics); err != nil {
		_ = l.Close() // nobody has come yet
		return nil, err
	}
	page := abateadmin.New(abateadmin.Config{Title: "abate drill"})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", series.Handler(registry))
	mux.Handle("/", page)
	a.watchers, a.listener = httpdrill.Watchers{lasting{metrics}, page}, l
	a.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = a.server.Serve(l) }() // always an error: the one that says it was closed
	return a, nil
}

// greet says where the page is.
func (a *drillAdmin) greet(w io.Writer) {
	if a.listener == nil {
		return
	}
	address := a.listener.Addr().String()
	top := "abate top"
	if address != defaultAdmin {
		top += " --admin " + address
	}
	fmt.Fprintf(w, "Watch it live: http://%s/ in a browser, or \"%s\" in another terminal.\n\n", address, top)
}

// close ends the page. Whoever still looks is cut off.
func (a *drillAdmin) close() {
	if a.server != nil {
		_ = a.server.Close()
	}
}
