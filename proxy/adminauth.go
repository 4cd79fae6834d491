package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"github.com/abate-go/abate/policyfile"
)

// serverTLS is Proxy.AdminTLS.
func (p *admin) serverTLS() *tls.Config {
	page := p.entrances.secrets.page
	if page == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: policyfile.Version(p.plane.config.AdminTLS.MinVersion), NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return page.value.Load().config, nil },
	}
}

// known lets those pass who have shown what the configuration asks for: a token, a certificate, or both. Where it
// asks for nothing a web site could still read what is on loopback, under a name of its own that it has point there:
// see abateadmin.Page.Admit.
func (p *admin) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.page.Admit(r); err != nil {
			http.Error(w, err.Error(), http.StatusMisdirectedRequest)
			return
		}
		switch p.missing(r) {
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this page is for those with a token of --admin-token-file, in Authorization: Bearer",
				http.StatusUnauthorized)
		case http.StatusForbidden:
			http.Error(w, "this page is for those with a client certificate of --admin-client-ca", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// missing is what whoever asks has not shown: 401 a token, 403 a certificate, 0 nothing.
func (p *admin) missing(r *http.Request) (status int) {
	if p.tokens != nil {
		authorization := r.Header["Authorization"]
		if len(authorization) != 1 {
			authorization = []string{""}
		}
		if _, ok := p.tokens.value.Load().Caller([]byte(authorization[0])); !ok {
			return http.StatusUnauthorized
		}
	}
	if p.plane.config.AdminTLS.ClientCA != "" && !p.certified(r.TLS) {
		return http.StatusForbidden
	}
	return 0
}

// certified reports whether a connection is of somebody whose certificate is believed: at its beginning, and now.
func (p *admin) certified(state *tls.ConnectionState) bool {
	if state == nil || len(state.VerifiedChains) == 0 {
		return false
	}
	between := x509.NewCertPool()
	for _, one := range state.PeerCertificates[1:] {
		between.AddCert(one)
	}
	now := p.entrances.secrets.page.value.Load().config
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: now.ClientCAs, Intermediates: between,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}
