package sidecar

import (
	"fmt"
	"io"
	"strings"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy"
)

// greetEntrances says which services are protected where, and by what.
func greetEntrances(p *proxy.Proxy, stdout io.Writer) {
	for _, e := range p.Entrances() {
		scheme := "http"
		if e.TLS {
			scheme = "https"
		}
		for _, g := range e.Gates {
			policy, ok := p.Policies().Protection(g.Name())
			if !ok { // a reload has taken it away
				continue
			}
			fmt.Fprintf(stdout, "  %-22s %s://%s%s -> %s\n", g.Name(), scheme, e.Addr, routes(policy.Routes),
				upstreams(policy.Upstreams))
			fmt.Fprintf(stdout, "  %-22s %s\n", "", cli.Parts(policy))
		}
	}
}

// routes is what a protected service takes of those at its address.
func routes(all []policyfile.Route) string {
	if len(all) == 0 {
		return ""
	}
	var texts []string
	for _, r := range all {
		texts = append(texts, r.Host+r.Path)
	}
	return " (" + strings.Join(texts, ", ") + ")"
}
