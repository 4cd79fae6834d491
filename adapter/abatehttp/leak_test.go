package abatehttp_test

import (
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/abate-go/abate"
)

func TestTenThousandRetriedAnswersLeaveNothingBehind(t *testing.T) {
	const workers, calls, size = 10, 2500, 100_000 // of four attempts each
	for name, p := range map[string]abate.Policy{"no time limit": eager(), "time limit": patient()} {
		t.Run(name, func(t *testing.T) {
			content := make([]byte, size)
			b := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(503)
				w.Write(content)
			})
			client, _ := newClient(t, guard(t, p))
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
			// Net/http dials when the connection just used is not back in its pool yet, so that there may be a few more.
			if opened := b.opened.Load(); opened > 3*workers {
				t.Errorf("%d connections for %d workers", opened, workers)
			}
			client.CloseIdleConnections()
			if !settles(func() bool { return b.open.Load() == 0 }) {
				t.Errorf("%d connections are still open", b.open.Load())
			}
		})
	}
}
