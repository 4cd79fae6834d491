package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/proxy/proxyproto"
)

// approach is how the endpoints of a service are reached, as its policy says.
type approach struct {
	https         bool                  // an upstream speaks TLS
	files         *watched[credentials] // nil: TLS as usual
	before        *tls.Config           // what holds until they can be read; nil for nothing
	proxyProtocol int                   // the version of the header that connections begin with, 0 for none
}

// announcement is what the beginning of a connection to a service tells of its client: a PROXY header. The zero
// announcement is none.
type announcement struct {
	version     int
	source, dst netip.AddrPort // zero if they are not known
	client      *herald        // nil if the connection serves many, or is the proxy's own
}

// to begins a connection with it.
func (a announcement) to(nc net.Conn, until time.Time) error {
	if a.version == 0 {
		return nil
	}
	nc.SetWriteDeadline(until)
	_, err := nc.Write(proxyproto.Append(nil, proxyproto.Header{Local: a.client == nil, Source: a.source,
		Destination: a.dst}, a.version))
	nc.SetWriteDeadline(time.Time{})
	return err
}

// config is how TLS is spoken now. What could be read last stays in force while the files are not well.
func (a *approach) config() (*tls.Config, error) {
	if a.files == nil {
		return usualTLS, nil
	}
	if c := a.files.value.Load(); c != nil {
		return c.config, nil
	}
	if a.before != nil {
		return a.before, nil
	}
	return nil, errNoCredentials
}

var errNoCredentials = errors.New("the files of its tls could not be read: the log says what is wrong with them")

// usualTLS is how TLS is spoken with a service of which the policy file says nothing else.
var usualTLS = &tls.Config{MinVersion: tls.VersionTLS12}

// sessions is how many TLS sessions an endpoint keeps to resume.
const sessions = 32

// security is how TLS is spoken with one endpoint.
type security struct {
	of           *tls.Config // what it was made of
	http1, http2 *tls.Config
}

// secured keeps the security of an endpoint.
type secured struct {
	name string // the host to ask for, unless the policy names one
	by   atomic.Pointer[approach]
	made atomic.Pointer[security]
}

// now is how TLS is spoken with the endpoint from here on. Sessions that were begun otherwise are not resumed.
func (s *secured) now() (*security, error) {
	of, err := s.by.Load().config()
	if err != nil {
		return nil, err
	}
	before := s.made.Load()
	if before != nil && before.of == of {
		return before, nil
	}
	one := &security{of: of, http1: of.Clone(), http2: of.Clone()}
	for _, c := range []struct {
		config   *tls.Config
		protocol string
	}{{one.http1, "http/1.1"}, {one.http2, "h2"}} {
		c.config.NextProtos, c.config.ClientSessionCache = []string{c.protocol}, tls.NewLRUClientSessionCache(sessions)
		if c.config.ServerName == "" {
			c.config.ServerName = s.name
		}
	}
	if !s.made.CompareAndSwap(before, one) { // somebody else was faster
		return s.now()
	}
	return one, nil
}

// outdated reports whether TLS is spoken otherwise by now than with a connection that was made before.
func (s *secured) outdated(made *security) bool {
	if made == nil {
		return false
	}
	now, err := s.now()
	return err == nil && now != made
}

// announced is what a connection that is for no single client begins with.
func (e *endpoint) announced() announcement {
	return announcement{version: e.secured.by.Load().proxyProtocol}
}
