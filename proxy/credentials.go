package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/identity"
)

// credentials are what the files of one side of TLS say: how to speak it, and when what they hold ends.
type credentials struct {
	config *tls.Config
	papers []paper
}

// paper is the certificate, or the authorities, of a file.
type paper struct {
	file        string
	authorities bool
	from, until time.Time // of the one that is valid for longest
	others      []paper   // in the same file: one that is valid is enough
}

// outOfDateError is a file whose certificate is of no use now, though it can be read.
type outOfDateError struct{ text string }

func (e *outOfDateError) Error() string { return e.text }

// current is nil while all papers are valid.
func (c *credentials) current() error {
	var problems []error
	for _, p := range c.papers {
		if err := p.valid(time.Now()); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

func (p *paper) valid(now time.Time) error {
	if slices.ContainsFunc(p.others, func(o paper) bool { return o.valid(now) == nil }) {
		return nil
	}
	what := "certificate"
	if p.authorities {
		what = "authorities"
	}
	switch {
	case now.After(p.until):
		return &outOfDateError{fmt.Sprintf("%s %s: out of date since %s: replace the file, which is read again when it "+
			"changes", what, p.file, p.until.UTC().Format(time.RFC3339))}
	case now.Before(p.from):
		return &outOfDateError{fmt.Sprintf("%s %s: valid from %s on: wait, replace the file, or set the clock right",
			what, p.file, p.from.UTC().Format(time.RFC3339))}
	}
	return nil
}

// soon reports whether a paper ends so soon that it should have been replaced: in less than a fifth of its life, and
// than two weeks. cert-manager replaces a certificate when a third is left, SPIRE when half of it is.
func (p *paper) soon(now time.Time) bool {
	return now.Before(p.until) && p.until.Sub(now) < min(p.until.Sub(p.from)/5, 14*24*time.Hour)
}

// watchServer watches the certificate of a server, and the authorities of its clients' if it asks for them.
func watchServer(t policyfile.TLS, clients tls.ClientAuthType) *watched[credentials] {
	return &watched[credentials]{files: present(t.Certificate, t.Key, t.ClientCA), check: (*credentials).current,
		read: func() (*credentials, error) {
			c := &credentials{config: &tls.Config{MinVersion: policyfile.Version(t.MinVersion),
				NextProtos: []string{"h2", "http/1.1"}}}
			err := c.show(t.Certificate, t.Key)
			if err == nil && t.ClientCA != "" {
				c.config.ClientAuth = clients
				c.config.ClientCAs, err = c.trust(t.ClientCA)
			}
			return c.orNone(err)
		}}
}

// watchClient watches the files of a client.
func watchClient(t policyfile.UpstreamTLS) *watched[credentials] {
	return &watched[credentials]{files: present(t.Certificate, t.Key, t.CA), check: (*credentials).current,
		read: func() (c *credentials, err error) {
			c = &credentials{config: &tls.Config{ServerName: t.ServerName, MinVersion: policyfile.Version(t.MinVersion)}}
			if t.Certificate != "" {
				err = c.show(t.Certificate, t.Key)
			}
			if err == nil && t.CA != "" {
				c.config.RootCAs, err = c.trust(t.CA)
			}
			if len(t.Peers) > 0 {
				c.expect(t.Peers)
			}
			return c.orNone(err)
		}}
}

func present(paths ...string) (all []string) {
	for _, p := range paths {
		if p != "" {
			all = append(all, p)
		}
	}
	return all
}

// orNone is what was read if there is no mistake in it. What is out of date is better than nothing at a start.
func (c *credentials) orNone(err error) (*credentials, error) {
	if err != nil {
		return nil, err
	}
	return c, c.current()
}

// show takes the certificate to show.
func (c *credentials) show(certificate, key string) error {
	chain, err := readCertificates("certificate", certificate)
	if err != nil {
		return err
	}
	certPEM, err := os.ReadFile(certificate)
	if err != nil {
		return err
	}
	keyPEM, err := os.ReadFile(key)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "does not match"):
		return fmt.Errorf("key %s: does not fit the certificate in %s: write both of one pair", key, certificate)
	default:
		return fmt.Errorf("key %s: cannot be used: %w: write the certificate's private key in PEM, without a password",
			key, err)
	}
	c.config.Certificates = []tls.Certificate{pair}
	c.papers = append(c.papers, paper{file: certificate, from: chain[0].NotBefore, until: chain[0].NotAfter})
	return nil
}

// trust reads authorities. One that has ended does no harm beside others.
func (c *credentials) trust(path string) (*x509.CertPool, error) {
	all, err := readCertificates("authorities", path)
	if err != nil {
		return nil, err
	}
	pool, p := x509.NewCertPool(), paper{file: path, authorities: true}
	for _, a := range all {
		pool.AddCert(a)
		p.others = append(p.others, paper{from: a.NotBefore, until: a.NotAfter})
		if a.NotAfter.After(p.until) {
			p.from, p.until = a.NotBefore, a.NotAfter
		}
	}
	c.papers = append(c.papers, p)
	return pool, nil
}

// readCertificates reads a PEM file with certificates only, or with other things between them. It has at least one.
func readCertificates(what, path string) (all []*x509.Certificate, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rest := data
	for block := new(pem.Block); ; {
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s %s: number %d cannot be read: %w: write it anew", what, path, len(all)+1, err)
		}
		all = append(all, one)
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s %s: has no certificate in PEM: write one that begins with -----BEGIN CERTIFICATE-----",
			what, path)
	case bytes.Contains(rest, []byte("-----BEGIN ")):
		return nil, fmt.Errorf("%s %s: what follows number %d is not PEM: write the file anew", what, path, len(all))
	}
	return all, nil
}

// expect has the other end show one of these identities instead of its host name. The chain is checked here, also of a
// session that is resumed: it may have been begun when others were trusted.
func (c *credentials) expect(peers []string) {
	c.config.InsecureSkipVerify = true // of the host name; VerifyConnection checks the rest
	c.config.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 { // cannot be: a server shows one
			return errors.New("the server has shown no certificate")
		}
		rest := x509.NewCertPool()
		for _, one := range s.PeerCertificates[1:] {
			rest.AddCert(one)
		}
		leaf := s.PeerCertificates[0]
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: c.config.RootCAs, Intermediates: rest}); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
		}
		if !identity.Shows(leaf, peers) {
			return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: fmt.Errorf(
				"the server is %s, not one of %s", identity.Names(leaf), strings.Join(peers, ", "))}
		}
		return nil
	}
}
