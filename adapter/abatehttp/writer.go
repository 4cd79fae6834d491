package abatehttp

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
)

// writer is what Next gets to write to: an exchange, with the methods that what lies below has as well. A handler finds
// out by type assertions what it can do.
func (x *exchange) writer() http.ResponseWriter {
	flushes, hijacks := abilities(x.out)
	switch {
	case hijacks:
		return hijacker{flusher{x}}
	case flushes:
		return flusher{x}
	}
	return x
}

// abilities looks for them in w and in what it wraps, as http.ResponseController does.
func abilities(w http.ResponseWriter) (flushes, hijacks bool) {
	for {
		switch w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			flushes = true
		}
		if _, ok := w.(http.Hijacker); ok {
			return true, true
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return flushes, false
		}
		w = inner.Unwrap()
	}
}

// Unwrap is for http.ResponseController, which sets time limits below.
func (x *exchange) Unwrap() http.ResponseWriter { return x.out }

// Header is the answer's.
func (x *exchange) Header() http.Header { return x.out.Header() }

// WriteHeader passes the head on, and remembers its status. There may be others before it, of status 1xx.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		x.begin(status)
		if x.key != nil && status >= 200 {
			x.key.record.hold()
			return
		}
	}
	if x.key == nil || status < 200 {
		x.out.WriteHeader(status)
	}
}

// begin notes the head of the answer, which is about to be written. A failure of the service is where clients are told
// not to try again, when too many do or all that could be tried was tried.
func (x *exchange) begin(status int) {
	x.status = status
	x.tell(status, hops.StatusFailed(status) && x.Arrival.NoRetry(core.Now()))
	if x.key != nil {
		x.key.record.head(status, x.key.Config)
	}
}

// Write passes a part of the body on.
func (x *exchange) Write(p []byte) (int, error) {
	x.beginImplicitly()
	if x.key != nil {
		return x.key.record.write(p)
	}
	return x.send(p)
}

// WriteString passes a part of the body on.
func (x *exchange) WriteString(s string) (int, error) {
	x.beginImplicitly()
	if x.key != nil {
		return x.key.record.write([]byte(s))
	}
	return x.sendString(s)
}

// beginImplicitly is for a body that may come without a head. If the body is held back, the head is not: what Next does
// to the header from now on must not reach the client.
func (x *exchange) beginImplicitly() {
	if x.status != 0 {
		return
	}
	x.begin(http.StatusOK)
	if x.key != nil {
		x.key.record.hold()
	}
}

// flusher is an exchange that can send what has been written so far.
type flusher struct{ *exchange }

// Flush sends it.
func (f flusher) Flush() { _ = f.FlushError() }

// FlushError sends it, and makes the answer a stream: what comes from now on may take for ever and says nothing about
// the service, so for the limits the request is done.
func (f flusher) FlushError() error {
	x := f.exchange
	x.beginImplicitly()
	if x.key != nil {
		if err := x.key.record.release(); err != nil {
			return err
		}
	}
	x.settle(x.class()) // before: a client that does not read must not hold the slot
	err := http.NewResponseController(x.out).Flush()
	if x.key != nil && !x.key.record.partial { // see record.write
		return nil
	}
	return err
}

// hijacker is an exchange over HTTP/1, whose connection can be taken over.
type hijacker struct{ flusher }

// Hijack takes the connection over. For the limits the request is done, and how long it took says nothing. What goes
// over a connection cannot be recorded, so under a key there is none to take over.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	x := h.exchange
	if x.key != nil {
		return nil, nil, http.ErrNotSupported
	}
	conn, rw, err := http.NewResponseController(x.out).Hijack()
	if err == nil {
		x.status = http.StatusSwitchingProtocols
		x.settle(x.class())
	}
	return conn, rw, err
}

// ReadFrom writes all of src, by sendfile if it can be done below.
func (h hijacker) ReadFrom(src io.Reader) (int64, error) {
	x := h.exchange
	from, ok := x.out.(io.ReaderFrom)
	if !ok || x.key != nil {
		return io.Copy(struct{ io.Writer }{x}, src)
	}
	x.beginImplicitly()
	return x.sendFrom(from, src)
}
