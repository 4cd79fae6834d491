package proxy

import (
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// websocket is the one protocol that an extended CONNECT begins (RFC 8441 §5).
const websocket = "websocket"

// acceptOf is the Sec-WebSocket-Accept that proves that a key has been read: RFC 6455 §4.2.2.
func acceptOf(key []byte) []byte {
	sum := sha1.Sum(append(append([]byte{}, key...), "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"...))
	return base64.StdEncoding.AppendEncode(nil, sum[:])
}

// asksWebSocket reports whether the request wants to switch to WebSocket.
func (r *request) asksWebSocket() bool {
	return r.Upgrade != nil && strings.EqualFold(text(r.Upgrade), websocket)
}

// extend makes the head of an attempt an extended CONNECT.
func (h *http2Answer) extend() {
	h.extended = true
	h.head.Method, h.head.Protocol, h.head.Length = methodConnect, []byte(websocket), -1
	kept := h.head.Fields[:0]
	for _, f := range h.head.Fields {
		if !f.Is("sec-websocket-key") {
			kept = append(kept, f)
		}
	}
	h.head.Fields = kept
}

var methodConnect = []byte(http.MethodConnect)

// switched makes the answer to an extended CONNECT what one over HTTP/1.1 would be, if the service agrees.
func switched(a *answer, head *h2.Head) {
	if !a.h2.extended || head.Status/100 != 2 {
		return
	}
	a.resp.Status, a.resp.Upgrade = http.StatusSwitchingProtocols, []byte(websocket)
	for _, f := range a.req.Fields {
		if f.Is("sec-websocket-key") {
			a.resp.Fields = append(a.resp.Fields, h1.Field{Name: []byte("Sec-WebSocket-Accept"), Value: acceptOf(f.Value)})
		}
	}
}
