package proxy

import (
	"crypto/rand"
	"encoding/base64"
	"net"
	"net/http"

	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// What an exchange asks of a stream that becomes a tunnel: after CONNECT, or after an extended one.

func (st *stream) accept() {
	st.done(st.h2.WriteHead(http.StatusOK, nil, -1, false), false)
	st.h2.Flush()
}

// enterTunnel: what comes in the tunnel of a stream is HTTP/1.1, which nobody reads there. A client that speaks HTTP/2
// to a proxy can send it the request itself.
func (st *stream) enterTunnel([]byte) bool { return false }

// takeOver gives the stream away. What has come of it is still to be read.
func (st *stream) takeOver() (net.Conn, []byte) {
	st.handed = true
	c := newStreamConn(st.h2, st.from.peer)
	c.data, st.data = st.data, nil
	return c, nil
}

var (
	methodGet = []byte(http.MethodGet)
	// errProtocol: RFC 9220 §3 has 501 for it.
	errProtocol = &h1.Error{Status: http.StatusNotImplemented,
		Problem: "an extended CONNECT for another protocol than websocket is not known"}
)

// askUpgrade writes what an extended CONNECT asks for as HTTP/1.1 asks for it. The key is the proxy's own: over HTTP/2
// there is none.
func (st *stream) askUpgrade(b []byte, head *h2.Head) []byte {
	st.asked = head.Protocol
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails
	b = append(append(b, "Connection: Upgrade\r\nUpgrade: "...), head.Protocol...)
	b = append(b, "\r\nSec-WebSocket-Key: "...)
	return append(base64.StdEncoding.AppendEncode(b, key[:]), "\r\n"...)
}
