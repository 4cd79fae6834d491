package abatehttp

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// errSentOnce is what an attempt comes to whose connection ended with the request on it, where net/http would have sent
// it again. For retryOn it is a reset.
var errSentOnce = fmt.Errorf("abatehttp: the connection ended without an answer: %w", io.ErrUnexpectedEOF)

// sentOnce is the body of a request that has none. It is there to be asked for again: net/http sends a request without
// a body again whenever it likes, and one with a body only if GetBody lets it.
type sentOnce struct{ begun atomic.Bool }

// Read is called when the head of the request has been written to the connection.
func (b *sentOnce) Read([]byte) (int, error) {
	b.begun.Store(true)
	return 0, io.EOF
}

// WriteTo is Read for net/http over HTTP/1, which else takes a large buffer to copy nothing.
func (b *sentOnce) WriteTo(io.Writer) (int64, error) {
	b.begun.Store(true)
	return 0, nil
}

func (b *sentOnce) Close() error { return nil }

// again is the request's GetBody.
func (b *sentOnce) again() (io.ReadCloser, error) {
	if b.begun.Load() {
		return nil, errSentOnce
	}
	return b, nil
}

// identity says that the request has no body, as far as the wire is concerned.
var identity = []string{"identity"}

// sendOnce makes net/http send an attempt again only if nothing of it has been written yet; one with a body not at all.
func sendOnce(r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		r.GetBody = nil
		return
	}
	if !repeatedByItself(r.Method) || r.Header["Upgrade"] != nil {
		return
	}
	once := new(sentOnce)
	r.Body, r.GetBody, r.ContentLength, r.TransferEncoding = once, once.again, 0, identity
}

// repeatedByItself are the methods that net/http takes for safe. Others without a body need a Content-Length of 0,
// which only net/http can write.
func repeatedByItself(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
