package abatehttp

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
)

// responseBody lets the context of the attempt live as long as its answer is read. To end it earlier would cut off
// every answer longer than what the connection has buffered.
type responseBody struct {
	io.ReadCloser
	call    *call
	release core.Release
	settled atomic.Bool        // the guard knows how the body ended
	end     context.CancelFunc // of the call's own context, if it has one
	refused bool               // the policy, and not only the server, ended the call: see refusedInside
}

// refusedInside reports whether an answer comes from a Transport below this one whose policy has ended the call. As
// with an *abate.Error, what it has repeated as often as it may must not be repeated again: 3 × 3 = 9.
func refusedInside(resp *http.Response) bool {
	b, ok := resp.Body.(*responseBody)
	return ok && b.refused
}

// attach takes over the response that the caller gets. HTTP/2 marks the answers without a body otherwise than HTTP/1,
// and nobody reads those to their end: bodiless says that this is one.
func (b *responseBody) attach(c *call, resp *http.Response, release core.Release, bodiless bool) {
	b.call = c
	switch {
	case !release.Needed() && b.end == nil && !b.refused:
	case resp.Body == http.NoBody || bodiless:
		b.over(release)
		if b.refused {
			b.ReadCloser, resp.Body = resp.Body, b
		}
	case resp.StatusCode == http.StatusSwitchingProtocols:
		// The caller owns the connection now and may ask its body for all that a connection can do. The attempt's
		// context ends by its deadline, which net/http no longer applies to it.
		b.over(core.Release{})
	default:
		b.ReadCloser, b.release = resp.Body, release
		resp.Body = b
	}
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.settle(err)
	}
	return n, err
}

func (b *responseBody) Close() error {
	last := b.settled.CompareAndSwap(false, true) // what a Read beside this one comes to is the caller's doing
	err := b.ReadCloser.Close()
	if last {
		b.over(b.release)
	}
	return err
}

// settle tells the guard how the body ended, once. One that broke off is a failure, unless the caller has left.
func (b *responseBody) settle(err error) {
	if !b.settled.CompareAndSwap(false, true) {
		return
	}
	if err != io.EOF && b.call.request.Context().Err() != context.Canceled && !b.call.cancelled() {
		b.release.Failed(err)
		b.release = core.Release{}
	}
	b.over(b.release)
}

// over ends the contexts of the attempt and of the call. It may be called more than once.
func (b *responseBody) over(release core.Release) {
	release.Done()
	if b.end != nil {
		b.end()
	}
}

const (
	// drainLimit is how much of an unwanted answer is read so that its connection can be used again. Reading so much
	// is cheaper than a new connection, more is not.
	drainLimit = 256 << 10
	// drainTime is how long the next attempt may be held up by that.
	drainTime = 100 * time.Millisecond
)

// drain reads what is left of an unwanted answer and closes it, within limits. A body that drips or hangs is closed
// under the reader.
func drain(resp *http.Response) {
	if resp == nil || resp.Body == http.NoBody {
		return
	}
	if resp.ContentLength <= drainLimit && resp.StatusCode != http.StatusSwitchingProtocols {
		hurry := time.AfterFunc(drainTime, func() { resp.Body.Close() })
		io.CopyN(io.Discard, resp.Body, drainLimit+1) // one more, to see the end of a body of just that size
		hurry.Stop()
	}
	resp.Body.Close()
}
