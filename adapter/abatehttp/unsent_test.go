package abatehttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/adapter/abatehttp"
)

// upload is a body of unknown kind: it can be read once.
type upload struct {
	io.Reader
	closed atomic.Int32
}

func (u *upload) Close() error { u.closed.Add(1); return nil }

func (u *upload) Read(p []byte) (int, error) {
	if u.closed.Load() > 0 {
		return 0, errors.New("read after close")
	}
	return u.Reader.Read(p)
}

// failingDialer cannot connect for the first few times: refused, unknown host, or no TLS.
func failingDialer(times int32, err error) *http.Transport {
	var n atomic.Int32
	return &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if n.Add(1) <= times {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
}

func TestAPostThatNeverLeftIsTriedAgain(t *testing.T) {
	var got atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s := string(b)
		got.Store(&s)
	}))
	defer server.Close()
	for name, err := range map[string]error{
		"refused":      &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")},
		"unknown host": &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "x"}},
		"no handshake": errors.New("remote error: tls: internal error"), // no connection was handed out
	} {
		t.Run(name, func(t *testing.T) {
			base := failingDialer(2, err)
			defer base.CloseIdleConnections()
			for what, body := range map[string]io.Reader{
				"stream": &upload{Reader: strings.NewReader("order")}, "string": strings.NewReader("order"), "none": nil,
			} {
				want := "order"
				if body == nil {
					want = ""
				}
				got.Store(nil)
				client := &http.Client{Transport: abatehttp.NewTransport(base, guard(t, eager()))}
				resp, err := client.Post(server.URL, "text/plain", body)
				if err != nil {
					t.Fatal(what, err)
				}
				resp.Body.Close()
				if s := got.Load(); s == nil || *s != want {
					t.Errorf("%s: the server got %v, want %q", what, s, want)
				}
				if u, ok := body.(*upload); ok && u.closed.Load() == 0 {
					t.Error("the body is open still")
				}
				base.CloseIdleConnections()
				base = failingDialer(2, err)
			}
		})
	}
}

func TestThePostsBodyIsClosedWhenNoAttemptCouldLeave(t *testing.T) {
	base := failingDialer(100, &net.OpError{Op: "dial", Err: errors.New("connection refused")})
	u := &upload{Reader: strings.NewReader("order")}
	client := &http.Client{Transport: abatehttp.NewTransport(base, guard(t, eager()))}
	if _, err := client.Post("http://payments.test/", "text/plain", u); err == nil {
		t.Fatal("sent")
	}
	if n := u.closed.Load(); n == 0 {
		t.Error("the body is open still")
	}
}

// A connection that was there may have carried the request, whatever became of it.
func TestAPostThatMayHaveLeftIsSentOnce(t *testing.T) {
	var seen atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	client := &http.Client{Transport: abatehttp.NewTransport(nil, guard(t, eager()))}
	for _, body := range []io.Reader{&upload{Reader: strings.NewReader("order")}, strings.NewReader("order"), nil} {
		seen.Store(0)
		if _, err := client.Post(server.URL, "text/plain", body); err == nil {
			t.Fatal("answered")
		}
		if n := seen.Load(); n != 1 {
			t.Errorf("the server saw %d requests, want 1", n)
		}
	}
}
