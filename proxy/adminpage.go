package proxy

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateadmin"
)

// newPage makes the live page. Something can be changed from it only where the proxy knows who asks.
func (p *admin) newPage(reload func() error) *abateadmin.Page {
	c := abateadmin.Config{
		Title: "abate proxy", Reload: reload, Log: p.plane.config.Log, Who: p.who,
		Format: func(name string, policy *abate.Policy) []byte { return p.plane.policies.FormatPolicy(name, policy) },
		Sees:   func(r *http.Request) bool { return p.missing(r) == 0 },
		File: func() abateadmin.File {
			s := p.plane.policies.Status()
			return abateadmin.File{Path: s.Path, Loaded: s.Loaded, Err: s.Err}
		},
		How: "To change something from this page, start the proxy with --admin-token-file FILE, " +
			"or with --admin-client-ca FILE.",
	}
	switch {
	case p.plane.config.AdminTokens != "":
		c.Known, c.How = c.Sees, "This is for those with a token of --admin-token-file."
	case p.plane.config.AdminTLS.ClientCA != "":
		c.Known, c.How = c.Sees, "This is for those with a client certificate of --admin-client-ca."
	}
	return abateadmin.New(c)
}

// who is the name of somebody of whom nothing is missing.
func (p *admin) who(r *http.Request) string {
	if p.tokens != nil {
		if name, ok := p.tokens.value.Load().Caller([]byte(r.Header.Get("Authorization"))); ok {
			return name
		}
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return r.TLS.VerifiedChains[0][0].Subject.CommonName
	}
	return ""
}

// servePage mounts the page. Its shell holds no data, so that whoever has no token yet can type one. What asks for no
// HTML, such as curl, gets a list instead of it.
func (p *admin) servePage(mux *http.ServeMux) {
	index := p.known(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, adminIndex) }))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			p.page.ServeHTTP(w, r)
			return
		}
		index.ServeHTTP(w, r)
	})
	mux.Handle("GET /page.css", p.page)
	mux.Handle("GET /page.js", p.page)
	for _, pattern := range []string{"GET /state", "GET /events", "GET /guard", "GET /gate", "POST /override",
		"POST /reload"} {
		mux.Handle(pattern, p.known(p.page))
	}
}

const adminIndex = `abate proxy: open this address in a browser, or run "abate top", for the live page

/guards   state of every service that is called
/gates    state of every service that is protected
/outside  what went past the policy: tunnels, and requests to hosts that it does not list
/policy   the policy in force
/state    what the live page shows, as JSON
/metrics  for Prometheus
/healthz  alive
/readyz   takes requests
grpc.health.v1.Health  the same over gRPC, and whether a service's circuit is closed
`
