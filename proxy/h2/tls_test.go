package h2_test

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/abate-go/abate/proxy/h2"
)

// Over TLS nobody knows what the socket has room for: another goroutine writes.
func TestStreamsFlowOverTLS(t *testing.T) {
	t.Parallel()
	hs := httptest.NewUnstartedServer(nil)
	hs.StartTLS() // for its certificate
	defer hs.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: hs.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		served <- h2.NewServer(nc, nil, echo).Serve(nil)
	}()
	nc, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := h2.NewClient(nc, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			body := random(i * 20_000)
			if _, got, _, err := ask(t, c, post("/"), body); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes of %d, %v", len(got), len(body), err)
			}
		})
	}
	all.Wait()
	c.Drain()
	<-c.Done()
	if err := <-served; err != nil {
		t.Errorf("the server's side ended with %v", err)
	}
}

// bare hides that a connection is a socket.
type bare struct{ net.Conn }

// A plain net.Conn works like a socket.
func TestStreamsFlowOverAnyConn(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- h2.NewServer(bare{b}, nil, echo).Serve(nil) }()
	c, err := h2.NewClient(a, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 10, 1 << 20} {
		body := random(n)
		if _, got, _, err := ask(t, c, post("/"), body); err != nil || !bytes.Equal(got, body) {
			t.Fatalf("%d bytes of %d, %v", len(got), n, err)
		}
	}
	c.Drain()
	<-c.Done()
	if err := <-served; err != nil {
		t.Errorf("the server's side ended with %v", err)
	}
}
