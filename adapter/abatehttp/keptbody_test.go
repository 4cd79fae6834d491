package abatehttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
)

// A fleeting body ends with its attempt's context, as those of net/http do. One that drips says no more after its
// beginning until it is closed.
type fleeting struct {
	ctx    context.Context
	rest   io.Reader
	drips  bool
	over   chan struct{}
	closed *atomic.Int32
}

func (b *fleeting) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.rest.Read(p)
	if err == io.EOF && b.drips {
		<-b.over
		return 0, errors.New("closed under the reader")
	}
	return n, err
}

func (b *fleeting) Close() error {
	if b.closed.Add(1); b.drips {
		close(b.over)
	}
	return nil
}

func TestAnAnswerOutlastsTheWaitForASignOfLife(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for _, row := range []struct {
		name, body string
		length     int64
		drips      bool
		want       string
		err        error
	}{
		{"short", "out of order", 12, false, "out of order", nil},
		{"short, of a length that nobody has told", "out of order", -1, false, "out of order", nil},
		{"long", long, int64(len(long)), false, "", context.DeadlineExceeded},
		{"long, of a length that nobody has told", long, -1, false, long[:64<<10+1], context.DeadlineExceeded},
		{"dripping", "out of", -1, true, "out of", errClosedUnder},
	} {
		for _, comes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var down atomic.Bool
				var closed atomic.Int32
				base := roundTrip(func(r *http.Request) (*http.Response, error) {
					if !down.Load() {
						time.Sleep(20 * time.Millisecond)
						return answer(r, 200, nil, "well"), nil
					}
					resp := answer(r, 503, nil, "")
					if r.Method == "POST" {
						return resp, nil
					}
					resp.ContentLength = row.length
					resp.Body = &fleeting{r.Context(), strings.NewReader(row.body), row.drips, make(chan struct{}), &closed}
					return resp, nil
				})
				p := abate.DefaultPolicy()
				p.AttemptTimeout = time.Second
				client := &http.Client{Transport: abatehttp.NewTransport(base, guard(t, p))}
				get := func(method string) (int, string, error) {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					req, _ := http.NewRequestWithContext(ctx, method, "http://service/", nil)
					resp, err := client.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					body, err := io.ReadAll(resp.Body)
					return resp.StatusCode, string(body), err
				}
				for range 200 {
					get("GET")
				}
				down.Store(true)
				for range 4 { // not repeated, because they must not be
					get("POST")
				}
				closed.Store(0)
				if comes {
					go func() {
						time.Sleep(500 * time.Millisecond)
						down.Store(false)
						get("POST")
					}()
				}
				began := time.Now()
				status, body, err := get("GET")
				took := time.Since(began)
				switch {
				case comes:
					if status != 200 || body != "well" || err != nil || took > 700*time.Millisecond {
						t.Errorf("%s: a sign has come: %d %.20q, %v after %v", row.name, status, body, err, took)
					}
				case status != 503 || body != row.want || took < time.Second || took > 2*time.Second:
					t.Errorf("%s: no sign has come: %d %.20q of %d bytes after %v", row.name, status, body, len(body), took)
				case row.err == errClosedUnder && err == nil, row.err != errClosedUnder && !errors.Is(err, row.err):
					t.Errorf("%s: it ends with %v, want %v", row.name, err, row.err)
				}
				if n := closed.Load(); n < 1 || row.drips && n != 1 {
					t.Errorf("%s: the answer of the service was closed %d times", row.name, n)
				}
				synctest.Wait()
			})
		}
	}
}

var errClosedUnder = errors.New("any")
