package proxy

import (
	"net"
	"strconv"

	"github.com/abate-go/abate/proxy/h1"
)

// output is what a client of HTTP/1.1 is sent. Head and content are put together, so that a small answer is one write.
type output struct {
	sock    *clientSocket
	b       []byte  // not written yet
	buf     *[]byte // what b lies in
	chunked bool
	bare    bool // the answer has no content, whatever its head says
	open    bool // the end of the connection is that of the answer
	broken  bool // the client did not take it, or the answer could not be completed
}

func (o *output) take() {
	if o.buf == nil {
		o.buf = buffers.Get().(*[]byte)
		o.b = (*o.buf)[:0]
	}
}

func (o *output) put() {
	if o.buf != nil {
		buffers.Put(o.buf)
		o.buf, o.b = nil, nil
	}
}

// begin writes the head of the final answer to r, and reports whether the connection ends with it: last says that it
// has to.
func (o *output) begin(a *head, r *h1.Request, last bool) bool {
	o.take()
	o.open, o.chunked = false, false
	toHead := string(r.Method) == "HEAD"
	o.bare = toHead || bodiless(a.status)
	o.b = h1.AppendStatus(o.b, a.status, a.reason)
	o.b = h1.AppendFields(o.b, a.fields)
	o.b = append(o.b, a.extra...)
	switch {
	case a.length >= 0 && !bodiless(a.status):
		o.b = append(o.b, "Content-Length: "...)
		o.b = append(strconv.AppendInt(o.b, a.length, 10), "\r\n"...)
	case o.bare:
	case r.Minor == 0: // it does not know chunks: the end of the connection is the end of the answer
		last, o.open = true, true
	default:
		o.chunked = true
		o.b = append(o.b, "Transfer-Encoding: chunked\r\n"...)
	}
	if last {
		o.b = append(o.b, "Connection: close\r\n"...)
	} else if r.Minor == 0 {
		o.b = append(o.b, "Connection: keep-alive\r\n"...)
	}
	o.b = append(o.b, "\r\n"...)
	return last
}

// accept says that a tunnel is there: such an answer has no content, and no field that speaks of any.
func (o *output) accept() {
	o.take()
	o.open, o.chunked, o.bare = false, false, true
	o.b = append(o.b, "HTTP/1.1 200 Connection established\r\n\r\n"...)
}

// write adds content. What fits waits in the buffer for more, or for flush.
func (o *output) write(p []byte) {
	if o.bare || o.broken || len(p) == 0 {
		return
	}
	const frame = 20 // a chunk's size and its two ends
	if len(o.b)+len(p)+frame > bufferSize {
		o.flush()
	}
	switch {
	case len(p)+frame <= bufferSize && o.chunked:
		o.b = h1.AppendChunk(o.b, p)
	case len(p)+frame <= bufferSize && len(o.b) > 0:
		o.b = append(o.b, p...)
	case o.chunked:
		o.b = h1.AppendChunkSize(o.b, len(p))
		o.send(net.Buffers{o.b, p, crlf})
		o.b = o.b[:0]
	default:
		o.send(net.Buffers{p})
	}
}

// end completes the answer.
func (o *output) end(trailer []h1.Field) {
	if o.chunked && !o.bare {
		o.b = h1.AppendLastChunk(o.b, trailer)
	}
	o.flush()
	o.put()
}

func (o *output) flush() {
	if len(o.b) == 0 || o.broken {
		return
	}
	o.broken = o.sock.write(o.b) != nil
	o.b = o.b[:0]
}

// send writes pieces that are too large to be put together.
func (o *output) send(pieces net.Buffers) {
	o.sock.setWriteDeadline()
	var err error
	if len(pieces) == 1 {
		_, err = o.sock.conn().Write(pieces[0])
	} else {
		_, err = pieces.WriteTo(o.sock.conn())
	}
	if err != nil {
		o.broken = true
	}
}

// abort gives up an answer in its middle: the client must not take it for complete.
func (o *output) abort() {
	o.flush()
	o.broken = true
	o.put()
}

// interim sends an informational answer, such as 103 Early Hints.
func (o *output) interim(status int, fields []h1.Field) {
	if o.broken {
		return
	}
	o.take()
	o.b = h1.AppendStatus(o.b, status, nil)
	o.b = h1.AppendFields(o.b, fields)
	o.b = append(o.b, "\r\n"...)
	o.flush()
}
