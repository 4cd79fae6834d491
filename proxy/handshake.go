package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// handshakeError is a connection to a service on which TLS did not begin.
type handshakeError struct {
	addr string
	err  error
}

func (e *handshakeError) Error() string {
	text := fmt.Sprintf("TLS handshake with %s: %v", e.addr, e.err)
	if turnedAway(e.err) {
		text += ": the service wants a certificate, or another one: see certificate and key in its tls"
	}
	return text
}

func (e *handshakeError) Unwrap() error { return e.err }

// toldBy is the alert with which the other end of a TLS connection ended it, "" if it was something else.
func toldBy(err error) string {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "remote error" {
		return op.Err.Error()
	}
	return ""
}

// distrusts reports whether this side ended a handshake, because the server is not who it should be.
func distrusts(err error) bool { return errors.As(err, new(*tls.CertificateVerificationError)) }

// settled reports whether another handshake with the same endpoint would end as this one did. One with another
// endpoint need not.
func settled(err error) bool {
	says := toldBy(err)
	return errors.As(err, new(*handshakeError)) && (distrusts(err) || errors.As(err, new(tls.RecordHeaderError)) ||
		says != "" && !strings.Contains(says, "internal error"))
}

// shake begins TLS with an endpoint.
func (e *endpoint) shake(ctx context.Context, nc net.Conn, config *tls.Config) (*tls.Conn, error) {
	secure := tls.Client(nc, config)
	err := secure.HandshakeContext(ctx)
	if err == nil {
		return secure, nil
	}
	nc.Close()
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the server ended it: %w", io.ErrUnexpectedEOF)
	}
	return nil, &handshakeError{e.addr, err}
}

// turnedAway reports whether an error, the first that is heard on a connection, is the end of its handshake: in TLS 1.3
// a server tells only behind it that it does not take the certificate of its client. It has not looked at what was sent
// by then.
func turnedAway(err error) bool { return strings.Contains(toldBy(err), "certificate") }
