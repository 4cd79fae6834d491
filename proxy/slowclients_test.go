package proxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// loiterer begins a request that it does not go on with: it sends no more than a part, or takes nothing of the answer.
type loiterer func(t *testing.T, addr, request string)

// overHTTP1 has a connection for each request.
func overHTTP1(t *testing.T, addr, request string) { loiter(t, dial(t, addr), request) }

// overTLS is the same over TLS.
func overTLS(t *testing.T, addr, request string) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	nc.(*net.TCPConn).SetReadBuffer(8 << 10)
	loiter(t, tls.Client(nc, &tls.Config{InsecureSkipVerify: true}), request)
}

func loiter(t *testing.T, nc net.Conn, request string) {
	t.Cleanup(func() { nc.Close() })
	if tcp, ok := nc.(interface{ SetReadBuffer(int) error }); ok {
		tcp.SetReadBuffer(8 << 10)
	}
	if _, err := io.WriteString(nc, map[string]string{
		"read": "GET /large HTTP/1.1\r\nHost: s\r\n\r\n",
		"send": "POST /upload HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	}[request]); err != nil {
		t.Fatal(err)
	}
}

// overHTTP2 has one connection for all requests, whose answers nobody reads.
func overHTTP2() loiterer {
	var conn *h2.Conn
	return func(t *testing.T, addr, request string) {
		if conn == nil {
			nc, err := net.Dial("tcp", addr)
			if err == nil {
				conn, err = h2.NewClient(nc, &h2.Config{ConnWindow: 64 << 20, MaxStreamWindow: 65535})
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(conn.Close)
		}
		head := &h2.Head{Method: []byte("GET"), Scheme: []byte("http"), Authority: []byte("s"), Path: []byte("/large"),
			Length: -1}
		body := ""
		if request == "send" {
			head.Method, head.Path, body = []byte("POST"), []byte("/upload"), "hello"
		}
		if _, _, err := conn.Open(head, []byte(body), request == "read", core.NoDeadline); err != nil {
			t.Fatal(err)
		}
	}
}

// loitered is a service that counts who came for something large, and that has one quick answer.
func loitered(came *atomic.Int32) http.HandlerFunc {
	piece := make([]byte, 64<<10)
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			came.Add(1)
			for err := error(nil); err == nil; {
				_, err = w.Write(piece)
			}
		case "/upload":
			came.Add(1)
			io.Copy(io.Discard, r.Body)
		default:
			io.WriteString(w, "done")
		}
	}
}

// A slot of the gate is for the time in which the service works: clients that are slow hold none.
func TestSlowClientsHoldNoSlots(t *testing.T) {
	for _, c := range []struct {
		name string
		by   func() loiterer
		out  wire
		n    int
		tls  bool
	}{
		{"HTTP1 to HTTP1", func() loiterer { return overHTTP1 }, http1, 25, false},
		{"HTTP1 to h2c", func() loiterer { return overHTTP1 }, h2c, 25, false},
		{"TLS to HTTP1", func() loiterer { return overTLS }, http1, 25, true},
		{"h2c to HTTP1", overHTTP2, http1, 25, false},
		{"h2c to h2c", overHTTP2, h2c, 25, false},
		{"many HTTP1 to HTTP1", func() loiterer { return overHTTP1 }, http1, 500, false},
		{"many h2c to h2c", overHTTP2, h2c, 500, false},
	} {
		for _, request := range []string{"read", "send"} {
			t.Run(c.name+" "+request, func(t *testing.T) {
				if testing.Short() && c.n > 25 {
					return
				}
				var came atomic.Int32
				url := c.out.serve(t, loitered(&came))
				keys := []string{"shed: {concurrency: fixed, maxConcurrency: 20, noQueue: true}"}
				if c.tls {
					keys = append(keys, newFiles(t, trusted.issue(t), trusted).tls())
				}
				r, slow := protect(t, guardOf(url, keys...)), c.by()
				for i := range c.n {
					slow(t, r.addr, request)
					if i%10 < 9 && i < c.n-1 {
						continue
					}
					eventually(t, fmt.Sprintf("%d are in, and none holds a slot", i+1), func() bool {
						return int(came.Load()) == i+1 && r.gate().Shed.InFlight == 0
					})
				}
				a := reply{}
				if c.tls {
					nc, err := r.secure()
					if err == nil {
						a, err = askTLS(nc, "/fast")
					}
					if err != nil {
						t.Fatal(err)
					}
				} else {
					a = r.get("/fast")
				}
				if a.status != 200 || a.content != "done" {
					t.Errorf("the fast one gets %d %s", a.status, a.content)
				}
			})
		}
	}
}
