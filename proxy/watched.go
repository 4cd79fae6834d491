package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/identity"
)

// watched is something read from files, which is read again when they change. What was good last stays while they are
// not.
type watched[T any] struct {
	files []string
	read  func() (*T, error)
	seen  []os.FileInfo // as they were before the last read that went well
	value atomic.Pointer[T]
}

// refresh reads the files if they have changed. It is called by one goroutine at a time.
func (w *watched[T]) refresh() (changed bool, err error) {
	now := make([]os.FileInfo, len(w.files))
	for i, path := range w.files {
		if now[i], err = os.Stat(path); err != nil {
			return false, err
		}
	}
	if w.seen != nil && same(w.seen, now) {
		return false, nil
	}
	value, err := w.read()
	if err != nil { // perhaps half of a new pair is there: looked at again next time
		return false, err
	}
	changed = w.seen != nil
	w.seen = now
	w.value.Store(value)
	return changed, nil
}

// same reports whether files are as they were: also those that a mounted Secret replaces by turning a link.
func same(a, b []os.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() {
			return false
		}
	}
	return true
}

func watchTokens(path string) *watched[identity.Tokens] {
	return &watched[identity.Tokens]{files: []string{path}, read: func() (*identity.Tokens, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return identity.ParseTokens(path, data)
	}}
}

// watchTLS watches the certificate of a server, and the authorities of its clients' if it asks for them.
func watchTLS(t policyfile.TLS, clients tls.ClientAuthType) *watched[tls.Config] {
	files := []string{t.Certificate, t.Key}
	if t.ClientCA != "" {
		files = append(files, t.ClientCA)
	}
	return &watched[tls.Config]{files: files, read: func() (*tls.Config, error) { return serverTLS(t, clients) }}
}

func serverTLS(t policyfile.TLS, clients tls.ClientAuthType) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s and key %s: %w", t.Certificate, t.Key, err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"}}
	if t.ClientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), clients
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: has no certificate in PEM: write those of the authorities that issue the clients'",
			t.ClientCA)
	}
	return c, nil
}
