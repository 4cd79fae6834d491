package proxy

import (
	"crypto/tls"
	"fmt"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy/identity"
)

// readSecrets reads the files with certificates and tokens that the policy file and the flags name, if they have changed.
// Those that nothing names any more are forgotten. mu of the entrances is held.
func (p *Proxy) readSecrets() (problems []error) {
	e := &p.entrances
	tokens, secure := map[string]*watched[identity.Tokens]{}, map[abate.TLS]*watched[tls.Config]{}
	for _, name := range p.policies.GateNames() {
		g, ok := p.policies.Gate(name)
		if !ok {
			continue
		}
		d := g.Describe()
		if a := d.Authentication; a.Enabled() && tokens[a.BearerTokens] == nil {
			w := orMade(e.tokens[a.BearerTokens], func() *watched[identity.Tokens] { return watchTokens(a.BearerTokens) })
			tokens[a.BearerTokens] = w
			problems = append(problems, readAgain(p, w, "protect."+name+".authentication.bearerTokens")...)
		}
		if t := d.TLS; t.Enabled() && secure[t] == nil {
			w := orMade(e.secure[t], func() *watched[tls.Config] { return watchTLS(t, tls.RequireAndVerifyClientCert) })
			secure[t] = w
			problems = append(problems, readAgain(p, w, "protect."+name+".tls")...)
		}
	}
	e.tokens, e.secure = tokens, secure
	if p.adminTokens != nil {
		problems = append(problems, readAgain(p, p.adminTokens, "the admin page's tokens")...)
	}
	if p.adminTLS != nil {
		problems = append(problems, readAgain(p, p.adminTLS, "the admin page's certificate")...)
	}
	return problems
}

func orMade[T any](there *T, make func() *T) *T {
	if there != nil {
		return there
	}
	return make()
}

// readAgain refreshes w, which the policy file knows as what.
func readAgain[T any](p *Proxy, w *watched[T], what string) []error {
	changed, err := w.refresh()
	if err != nil {
		return []error{fmt.Errorf("%s: %w", what, err)}
	}
	if changed {
		p.config.Log.Info("read again, because it has changed", "what", what, "files", w.files)
	}
	return nil
}

// tokensIn is the watched file of a gate that asks for tokens, nil for one that does not. That of a file that came just now
// is read at once.
func (p *Proxy) tokensIn(a abate.Authentication) *watched[identity.Tokens] {
	if !a.Enabled() {
		return nil
	}
	e := &p.entrances
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
