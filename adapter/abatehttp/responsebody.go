package abatehttp

import (
	"io"
	"net/http"
	"time"

	"github.com/abate-go/abate"
)

// responseBody lets the context of the attempt live as long as its answer is read. To end it earlier would cut off
// every answer longer than what the connection has buffered.
type responseBody struct {
	io.ReadCloser
	release abate.Release
}

// attach takes over the response that the caller gets.
func (b *responseBody) attach(resp *http.Response, release abate.Release) {
	switch {
	case !release.Needed():
	case resp.Body == http.NoBody:
		release.Done()
	case resp.StatusCode == http.StatusSwitchingProtocols:
		// The caller owns the connection now and may ask its body for all that a connection can do. The attempt's
		// context ends by its deadline, which net/http no longer applies to it.
	default:
		b.ReadCloser, b.release = resp.Body, release
		resp.Body = b
	}
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.release.Done()
	}
	return n, err
}

func (b *responseBody) Close() error {
	err := b.ReadCloser.Close()
	b.release.Done()
	return err
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
