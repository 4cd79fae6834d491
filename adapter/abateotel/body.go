package abateotel

import (
	"io"
	"net/http"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
)

// body lets a span last as long as the answer is read. Calls on a span that has ended are ignored: a body may be
// closed more than once, and while another goroutine reads it.
type body struct {
	io.ReadCloser
	span   trace.Span
	closed atomic.Bool // or about to be: what Read says from then on is no error of the answer's
}

// lastUntilRead ends the span with the body of resp, or now if there is nothing to read. The connection that a 101
// hands over is left alone: whoever owns it may ask it for all that a connection can do.
func lastUntilRead(resp *http.Response, method string, span trace.Span) {
	switch {
	case resp.Body == nil, resp.Body == http.NoBody, method == http.MethodHead,
		resp.StatusCode == http.StatusSwitchingProtocols,
		resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusNotModified:
		span.End()
	default:
		resp.Body = &body{ReadCloser: resp.Body, span: span}
	}
}

// Read reads the answer. Its end, or an error, is the end of the span.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		if err != io.EOF && !b.closed.Load() {
			failed(b.span, err)
		}
		b.span.End()
	}
	return n, err
}

// Close closes the answer, and ends the span if it has not ended.
func (b *body) Close() error {
	b.closed.Store(true)
	err := b.ReadCloser.Close()
	b.span.End()
	return err
}
