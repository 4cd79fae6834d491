//go:build unix

package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/abate-go/abate/proxy"
)

// quickAndSlow is a policy with a service for quick.test and one for everybody else.
func quickAndSlow(quick, slow string) string {
	return fmt.Sprintf("services:\n  quick: {upstreams: [%q], routes: [{host: quick.test}]}\n  slow: {upstreams: [%q], "+
		"routes: [{path: /}], attemptTimeout: 10m, timeout: 10m, maxRetries: 0}\n", quick, slow)
}

// getQuick asks for quick.test, on a connection of its own.
func (s *small) getQuick() reply {
	s.t.Helper()
	c := s.dial()
	defer c.Close()
	return c.send("GET / HTTP/1.1\r\nHost: quick.test\r\n\r\n").answer()
}

// TestOneClientOfHTTP2DoesNotTakeTheDescriptorsOfOthers: each of its streams wants a connection to a service that
// speaks HTTP/1.1. Those that there is no room for wait, and are answered in the end.
func TestOneClientOfHTTP2DoesNotTakeTheDescriptorsOfOthers(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	release := make(chan struct{})
	var once sync.Once
	free := func() { once.Do(func() { close(release) }) }
	defer free()
	slow := upstream(t, func(c net.Conn, req string) { <-release; io.WriteString(c, ok("slow")) })
	quick := inTurn(t, ok("good"))
	r := startSmall(t, quickAndSlow(quick.url, slow.url), 0)
	c, answers := h2c.client(t), make(chan error, 200)
	for range 200 {
		go func() {
			resp, err := c.Get("http://" + r.addr + "/")
			// On a machine that stands still a new connection may make room for others before it is used.
			for n := 0; n < 20 && err != nil && strings.Contains(err.Error(), "could not be established"); n++ {
				resp, err = c.Get("http://" + r.addr + "/")
			}
			if err == nil {
				if resp.Body.Close(); resp.StatusCode != 200 {
					err = fmt.Errorf("got %s", resp.Status)
				}
			}
			answers <- err
		}()
	}
	eventually(t, "they come to the service", func() bool { return len(slow.seen()) > 10 })
	r.idlers(100)
	for i := range 40 {
		if a := r.getQuick(); a.status != 200 || a.content != "good" {
			t.Errorf("beside %d slow streams request %d got %d %s", len(slow.seen()), i, a.status, a.content)
		}
	}
	free()
	for range 200 {
		if err := <-answers; err != nil {
			t.Errorf("a slow stream: %v", err)
		}
	}
	if g := r.end(); g.Breaker.Openings != 0 {
		t.Errorf("the circuit is %+v", g.Breaker)
	}
}

// TestClientsOfHTTP2AndGRPCAreServedBesideIdleOnes: 300 idle clients where 120 files may be open, of either protocol.
func TestClientsOfHTTP2AndGRPCAreServedBesideIdleOnes(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	s := serveGRPC(t, repeatAll)
	web := h2c.serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "good") })
	r := startSmall(t, strings.Replace(quickAndSlow(web, s.url), "slow:", "rpc:", 1), 0)
	conn := dialGRPC(t, r.addr)
	say := func() error {
		in, out := []byte("hello"), []byte(nil)
		return conn.Invoke(context.Background(), "/shop.Payment/Charge", &in, &out, grpc.WaitForReady(true))
	}
	client := h2c.client(t)
	get := func() error {
		req := newRequest(t, "GET", "http://"+r.addr+"/", nil)
		req.Host = "quick.test"
		resp, err := client.Do(req)
		if err == nil {
			if resp.Body.Close(); resp.StatusCode != 200 {
				err = fmt.Errorf("got %s", resp.Status)
			}
		}
		return err
	}
	for round := range 3 {
		r.idlers(100)
		for range 20 {
			if err := say(); err != nil {
				t.Errorf("round %d, gRPC: %v", round, err)
			}
			if err := get(); err != nil {
				t.Errorf("round %d, HTTP/2: %v", round, err)
			}
		}
	}
	if g := r.end(); g.Breaker.Openings != 0 {
		t.Errorf("the circuit is %+v", g.Breaker)
	}
}

// TestIdleConnectionsToServicesKeepNoClientOut: those of many services, each of which was busy for a moment.
func TestIdleConnectionsToServicesKeepNoClientOut(t *testing.T) {
	var policy strings.Builder
	policy.WriteString("services:\n")
	release := make(chan struct{})
	var servers []*server
	for i := range 3 {
		s := upstream(t, func(c net.Conn, req string) { <-release; io.WriteString(c, ok("good")) })
		servers = append(servers, s)
		fmt.Fprintf(&policy, "  s%d: {upstreams: [%q], routes: [{host: s%[1]d.test}], attemptTimeout: 10m, timeout: 10m}\n",
			i, s.url)
	}
	r := startSmall(t, policy.String(), 0)
	for i, s := range servers {
		var busy []*client
		for range 25 {
			busy = append(busy, r.dial().send(fmt.Sprintf("GET / HTTP/1.1\r\nHost: s%d.test\r\n\r\n", i)))
		}
		eventually(t, "all are asked", func() bool { return len(s.seen()) == 25 })
		for range 25 {
			release <- struct{}{}
		}
		for _, c := range busy {
			if a := c.answer(); a.status != 200 {
				t.Errorf("got %+v", a)
			}
			c.Close()
		}
	}
	close(release)
	for range 42 {
		c := r.dial().send("GET / HTTP/1.1\r\nHost: s2.test\r\n\r\n") // and stays
		if a := c.answer(); a.status != 200 {
			t.Errorf("got %+v", a)
		}
	}
}

// TestThoseWhoNeverEndAHeadMakeRoomForOthers: all places are taken by clients that have begun a request and send no
// more of it.
func TestThoseWhoNeverEndAHeadMakeRoomForOthers(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	s := inTurn(t, ok("good"))
	for name, begin := range map[string]string{
		"half a line": "GET / HT", "half a head": "GET / HTTP/1.1\r\nHost: s.test\r\nX-A: ",
		"half a preface": "PRI * HTTP/2.0\r\n\r\nS", "half a frame": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, single([]string{s.url}), func(c *proxy.Config) { c.MaxConnections, c.HeaderTimeout = 3, time.Hour })
			var slow []*client
			for range 3 {
				slow = append(slow, r.dial().send(begin))
			}
			for range 4 {
				if a := r.get("/"); a.status != 200 {
					t.Errorf("got %d %s", a.status, a.content)
				}
			}
			for _, c := range slow {
				c.Close()
			}
		})
	}
}
