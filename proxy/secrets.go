package proxy

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"

	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/identity"
)

// secrets are the files with certificates and tokens that the policy file names.
type secrets struct {
	log    *slog.Logger
	mu     sync.Mutex // held while they are read
	tokens map[string]*watched[identity.Tokens]
	secure map[policyfile.TLS]*watched[tls.Config]
}

// follow reads the files that have changed. Those that nothing names any more are forgotten.
func (e *secrets) follow(policies *policyfile.Set) (problems []error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	tokens, secure := map[string]*watched[identity.Tokens]{}, map[policyfile.TLS]*watched[tls.Config]{}
	for _, name := range policies.GateNames() {
		d, ok := policies.Protection(name)
		if !ok {
			continue
		}
		if a := d.Authentication; a.Enabled() && tokens[a.BearerTokens] == nil {
			w := orMade(e.tokens[a.BearerTokens], func() *watched[identity.Tokens] { return watchTokens(a.BearerTokens) })
			tokens[a.BearerTokens] = w
			problems = append(problems, readAgain(e.log, w, "protect."+name+".authentication.bearerTokens"))
		}
		if t := d.TLS; t.Enabled() && secure[t] == nil {
			w := orMade(e.secure[t], func() *watched[tls.Config] { return watchTLS(t, tls.RequireAndVerifyClientCert) })
			secure[t] = w
			problems = append(problems, readAgain(e.log, w, "protect."+name+".tls"))
		}
	}
	e.tokens, e.secure = tokens, secure
	return problems
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

// secureAt is the certificate to show at the address of a gate, nil for none. It is an error while none could be read.
func (e *secrets) secureAt(gate string, p *policyfile.Protection) (*watched[tls.Config], error) {
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
