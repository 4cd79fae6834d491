package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/identity"
)

// secrets are the files with certificates and tokens that the policy file and the configuration name.
type secrets struct {
	log     *slog.Logger
	listen  *watched[credentials] // of the address for outgoing calls; nil without TLS
	page    *watched[credentials] // of the admin page
	mu      sync.Mutex            // held while they are read
	tokens  map[string]*watched[identity.Tokens]
	secure  map[policyfile.TLS]*watched[credentials]
	clients map[string]*watched[credentials] // by the text of a policyfile.UpstreamTLS
	warned  map[string]time.Time             // by file: the end that was said to be near
}

func (e *secrets) init(c *Config) {
	e.log, e.warned = c.Log, map[string]time.Time{}
	if c.ListenTLS.Enabled() {
		e.listen = watchServer(c.ListenTLS, tls.RequireAndVerifyClientCert)
	}
	if c.AdminTLS.Enabled() {
		e.page = watchServer(c.AdminTLS, tls.VerifyClientCertIfGiven)
	}
}

// follow reads the files that have changed. Those that nothing names any more are forgotten.
func (e *secrets) follow(policies *policyfile.Set) (problems []error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := &secrets{log: e.log, tokens: map[string]*watched[identity.Tokens]{},
		secure: map[policyfile.TLS]*watched[credentials]{}, clients: map[string]*watched[credentials]{}}
	if e.listen != nil {
		problems = append(problems, readAgain(e.log, e.listen, "the certificate of the address for outgoing calls"))
	}
	if e.page != nil {
		problems = append(problems, readAgain(e.log, e.page, "the admin page's certificate"))
	}
	for _, name := range policies.Names() {
		if d, ok := policies.Service(name); ok {
			problems = append(problems, e.followClient(now, d.Policy.TLS, "services."+name+".tls"))
		}
	}
	for _, name := range policies.GateNames() {
		if d, ok := policies.Protection(name); ok {
			problems = append(problems, e.followGate(now, name, d)...)
		}
	}
	e.tokens, e.secure, e.clients = now.tokens, now.secure, now.clients
	e.warn(time.Now())
	return problems
}

// followGate reads what a gate names, unless that has been done, and notes it in now.
func (e *secrets) followGate(now *secrets, name string, d *policyfile.Protection) (problems []error) {
	if a := d.Authentication; a.Enabled() && now.tokens[a.BearerTokens] == nil {
		w := orMade(e.tokens[a.BearerTokens], func() *watched[identity.Tokens] { return watchTokens(a.BearerTokens) })
		now.tokens[a.BearerTokens] = w
		problems = append(problems, readAgain(e.log, w, "protect."+name+".authentication.bearerTokens"))
	}
	if t := d.TLS; t.Enabled() && now.secure[t] == nil {
		w := orMade(e.secure[t], func() *watched[credentials] { return watchServer(t, tls.RequireAndVerifyClientCert) })
		now.secure[t] = w
		problems = append(problems, readAgain(e.log, w, "protect."+name+".tls"))
	}
	return append(problems, e.followClient(now, d.UpstreamTLS, "protect."+name+".upstreamTLS"))
}

func (e *secrets) followClient(now *secrets, t policyfile.UpstreamTLS, what string) error {
	key := fmt.Sprintf("%q", t)
	if !t.Enabled() || now.clients[key] != nil {
		return nil
	}
	w := orMade(e.clients[key], func() *watched[credentials] { return watchClient(t) })
	now.clients[key] = w
	return readAgain(e.log, w, what)
}

// all lists what is watched that has papers. mu is held.
func (e *secrets) all() (list []*watched[credentials]) {
	for _, w := range slices.Concat([]*watched[credentials]{e.listen, e.page}, slices.Collect(maps.Values(e.secure)),
		slices.Collect(maps.Values(e.clients))) {
		if w != nil && w.value.Load() != nil {
			list = append(list, w)
		}
	}
	return list
}

// papers lists the certificates and authorities in force, each file once.
func (e *secrets) papers() map[string]paper {
	e.mu.Lock()
	defer e.mu.Unlock()
	papers := map[string]paper{}
	for _, w := range e.all() {
		for _, p := range w.value.Load().papers {
			papers[p.file] = p
		}
	}
	return papers
}

// warn says once of each certificate that its end is near. mu is held.
func (e *secrets) warn(now time.Time) {
	for _, w := range e.all() {
		for _, p := range w.value.Load().papers {
			if p.soon(now) && !e.warned[p.file].Equal(p.until) {
				e.warned[p.file] = p.until
				e.log.Warn("ends soon, and has not been replaced", "file", p.file, "ends", p.until.UTC().Format(time.RFC3339),
					"days", float64(int(p.until.Sub(now).Hours()/2.4))/10)
			}
		}
	}
}

func orMade[T any](there *T, make func() *T) *T {
	if there != nil {
		return there
	}
	return make()
}

// readAgain refreshes w, which the policy file knows as what.
func readAgain[T any](log *slog.Logger, w *watched[T], what string) error {
	changed, err := w.refresh()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if changed {
		log.Info("read again, because it has changed", "what", what, "files", w.files)
	}
	return nil
}

// unusable are the problems because of which a proxy is not to start: a certificate that has run out is none of them,
// because other services can be reached, and clients told.
func unusable(problems []error) error {
	return errors.Join(slices.DeleteFunc(problems, func(err error) bool {
		var old *outOfDateError
		return errors.As(err, &old)
	})...)
}

// secureAt is the certificate to show at the address of a gate, nil for none. It is an error while none could be read.
func (e *secrets) secureAt(gate string, p *policyfile.Protection) (*watched[credentials], error) {
	t := p.TLS
	if !t.Enabled() {
		return nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.secure[t]
	if w == nil || w.value.Load() == nil {
		return nil, fmt.Errorf("protect.%s.listen %s: not opened without its certificate", gate, p.Listen)
	}
	return w, nil
}

// tokensIn is the watched file of a gate that asks for tokens, nil for one that does not. That of a file that came
// just now is read at once.
func (e *secrets) tokensIn(a inbound.Authentication) *watched[identity.Tokens] {
	if !a.Enabled() {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.tokens[a.BearerTokens]
	if w == nil {
		w = watchTokens(a.BearerTokens)
		e.tokens[a.BearerTokens] = w
		_, _ = w.refresh() // what is wrong, the next follow tells
	}
	return w
}

// approach is how the endpoints of a service are to be reached by a policy; before is how they were, nil for not at
// all. Files that came just now are read at once. While they cannot be read, a service that spoke TLS goes on as it
// did; one that did not is not reached: the authorities of the system are not those that the policy asks for.
func (e *secrets) approach(p *policyfile.Policy, before *approach) *approach {
	a := &approach{proxyProtocol: map[string]int{"v1": 1, "v2": 2}[p.SendProxyProtocol],
		https: slices.ContainsFunc(p.Upstreams, func(u string) bool { return strings.HasPrefix(u, "https:") })}
	if !p.TLS.Enabled() {
		return a
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	key := fmt.Sprintf("%q", p.TLS)
	w := e.clients[key]
	if w == nil {
		w = watchClient(p.TLS)
		if e.clients == nil {
			e.clients = map[string]*watched[credentials]{}
		}
		e.clients[key] = w
		_, _ = w.refresh() // what is wrong, the next follow tells
	}
	if a.files = w; w.value.Load() == nil && before != nil && before.https {
		a.before, _ = before.config() // nil, if that is an error too
	}
	return a
}
