package abatehttp_test

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
)

// draining counts the answers that are closed before their end, which they may only be for the time they take.
type draining struct {
	*http.Transport
	t   *testing.T
	cut atomic.Int64
}

func (d *draining) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.Transport.RoundTrip(req)
	if err == nil {
		resp.Body = &drained{ReadCloser: resp.Body, by: d, since: time.Now()}
	}
	return resp, err
}

type drained struct {
	io.ReadCloser
	by    *draining
	since time.Time
	ended atomic.Bool
}

func (d *drained) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if err == io.EOF {
		d.ended.Store(true)
	}
	return n, err
}

func (d *drained) Close() error {
	if !d.ended.Swap(true) {
		d.by.cut.Add(1)
		if took := time.Since(d.since); took < 100*time.Millisecond {
			d.by.t.Errorf("an answer was given up after %v", took)
		}
	}
	return d.ReadCloser.Close()
}

func TestTenThousandRetriedAnswersLeaveNothingBehind(t *testing.T) {
	const workers, size = 10, 100_000
	calls := 2500 // of four attempts each
	if raceDetector {
		calls = 250 // make rest makes all; what stays behind does so from the first on
	}
	for name, p := range map[string]abate.Policy{"no time limit": eager(), "time limit": patient()} {
		t.Run(name, func(t *testing.T) {
			content := make([]byte, size)
			b := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(503)
				w.Write(content)
			})
			client, transport := newClient(t, guard(t, p))
			base := &draining{Transport: transport.Base.(*http.Transport), t: t}
			transport.Base = base
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for range calls / workers {
						resp, err := client.Get(b.URL)
						if err != nil {
							t.Error(err)
							return
						}
						if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
							t.Errorf("%d bytes, error %v", n, err)
						}
						resp.Body.Close()
					}
				})
			}
			wg.Wait()
			// Net/http dials when the connection just used is not back in its pool yet, so that there may be a few
			// more. One whose answer took too long to be read away is not used again, which happens on a busy machine.
			if opened := b.opened.Load(); opened > 3*workers+base.cut.Load() {
				t.Errorf("%d connections for %d workers, and %d that were given up", opened, workers, base.cut.Load())
			}
			client.CloseIdleConnections()
			if !settles(func() bool { return b.open.Load() == 0 }) {
				t.Errorf("%d connections are still open", b.open.Load())
			}
		})
	}
}
