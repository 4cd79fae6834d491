package abatehttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/abate-go/abate"
)

// A response that Do returns belongs to its caller: attemptTimeout is over when the function has returned.
func TestABodyThatDoReturnsIsReadToItsEnd(t *testing.T) {
	rest := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, 250_000))
		http.NewResponseController(w).Flush()
		<-rest
		w.Write(make([]byte, 750_000))
	}))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: base}
	over := make(chan struct{})
	resp, err := abate.Do(t.Context(), guard(t, abate.Policy{AttemptTimeout: 2 * time.Second}),
		func(ctx context.Context) (*http.Response, error) {
			deadline, _ := ctx.Deadline()
			time.AfterFunc(time.Until(deadline)+10*time.Millisecond, func() { close(over) })
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				return nil, err
			}
			return client.Do(req)
		})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.CopyN(io.Discard, resp.Body, 250_000)
	<-over // the time limit of the attempt
	runtime.GC()
	close(rest)
	more, err2 := io.Copy(io.Discard, resp.Body)
	if n+more != 1_000_000 || err != nil || err2 != nil {
		t.Errorf("%d of 1,000,000 bytes: %v, %v", n+more, err, err2)
	}
}
