//go:build unix

package rollout_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// beat is the time from one request of a client to its next.
const beat = 10 * time.Millisecond

// load is what clients do and see.
type load struct {
	t      *testing.T
	number atomic.Int64 // of the last request
	made   sync.Map     // kind to *atomic.Int64: requests that were answered well
	posted sync.Map     // the numbers of POSTs that were answered well
	failed atomic.Int64
}

// crowd is clients of one address.
type crowd struct {
	load *load
	name string
	stop chan struct{}
	end  func() // closes it
	done sync.WaitGroup
	made []*atomic.Int64
}

// kind is how a client asks: once, over connections of its own. The answer is what came back.
type kind struct {
	name    string
	http2   bool
	request func(base, id string) *http.Request
	want    func(id string) string
}

// body has no GetBody, so that net/http repeats nothing.
type body struct{ io.Reader }

func post(path string) func(base, id string) *http.Request {
	return func(base, id string) *http.Request {
		r, _ := http.NewRequest(http.MethodPost, base+path, body{strings.NewReader(id)})
		r.ContentLength = int64(len(id))
		r.Header.Set("X-Id", id)
		return r
	}
}

// over2 is post over HTTP/2: it may be sent again where the protocol says that nobody has seen it, as all clients of
// gRPC do. net/http needs it even for a request of which it has sent nothing.
func over2(path string) func(base, id string) *http.Request {
	return func(base, id string) *http.Request {
		r := post(path)(base, id)
		return anew(r, func() io.Reader { return strings.NewReader(id) })
	}
}

// anew gives a request a body that can be made again.
func anew(r *http.Request, make func() io.Reader) *http.Request {
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(make()), nil }
	r.Body, _ = r.GetBody()
	return r
}

// call is a call of gRPC with one message.
func call(base, id string) *http.Request { return grpc(base+"/rollout/Call", id, strings.NewReader) }

// stream is a call of gRPC that sends message after message, and has each come back.
func stream(base, id string) *http.Request {
	return grpc(base+"/rollout/Stream", id, func(message string) *paced { return &paced{message: message} })
}

func grpc[R io.Reader](url, id string, messages func(message string) R) *http.Request {
	r, _ := http.NewRequest(http.MethodPost, url, http.NoBody)
	r.ContentLength = -1
	r.Header.Set("X-Id", id)
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	return anew(r, func() io.Reader { return messages(frame(id)) })
}

// paced is the same message again and again, with pauses.
type paced struct {
	message string
	sent    int
	tick    *time.Ticker
}

func (p *paced) Read(b []byte) (int, error) {
	if p.sent == pieces {
		return 0, io.EOF
	}
	if p.tick == nil {
		p.tick = time.NewTicker(pause)
	}
	if p.sent++; p.sent == pieces {
		p.tick.Stop()
	} else {
		<-p.tick.C
	}
	return copy(b, p.message), nil // net/http has room for more
}

func long(base, _ string) *http.Request {
	r, _ := http.NewRequest(http.MethodGet, base+"/long", http.NoBody)
	return r
}

// frame is a message of gRPC.
func frame(message string) string {
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))) + message
}

func same(id string) string { return id }

func lines(string) string {
	var b strings.Builder
	for i := range pieces {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// kinds are how all of them ask, as many clients of each as there are lines.
var kinds = []kind{
	{"HTTP/1.1 POST", false, post("/post"), same},
	{"HTTP/1.1 POST", false, post("/post"), same},
	{"HTTP/1.1 POST", false, post("/post"), same},
	{"HTTP/1.1 long answer", false, long, lines},
	{"HTTP/2 POST", true, over2("/post"), same},
	{"HTTP/2 long answer", true, long, lines},
	{"gRPC call", true, call, frame},
	{"gRPC call", true, call, frame},
	{"gRPC stream", true, stream, func(id string) string { return strings.Repeat(frame(id), pieces) }},
}

// come has clients of all kinds ask at an address, until leave.
func (l *load) come(name, addr string) *crowd {
	c := &crowd{load: l, name: name, stop: make(chan struct{})}
	c.end = sync.OnceFunc(func() { close(c.stop) })
	l.t.Cleanup(c.leave)
	for _, k := range kinds {
		any, _ := l.made.LoadOrStore(name+", "+k.name, new(atomic.Int64))
		own := new(atomic.Int64)
		c.made = append(c.made, own)
		c.done.Go(func() { c.ask(k, "http://"+addr, any.(*atomic.Int64), own) })
	}
	return c
}

// ask is the life of a client: one request after the other, on a connection that is kept.
func (c *crowd) ask(k kind, base string, counts ...*atomic.Int64) {
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	transport.Protocols.SetHTTP1(!k.http2)
	transport.Protocols.SetUnencryptedHTTP2(k.http2)
	defer transport.CloseIdleConnections()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		id := fmt.Sprint(c.load.number.Add(1))
		if err := k.once(transport, base, id); err != nil {
			if c.load.failed.Add(1) <= 20 { // the others say the same
				c.load.t.Errorf("%s, %s, number %s: %v", c.name, k.name, id, err)
			}
			continue
		}
		if strings.HasSuffix(k.name, "POST") || k.name == "gRPC call" {
			c.load.posted.Store(id, nil)
		}
		for _, n := range counts {
			n.Add(1)
		}
	}
}

// once makes one request, and holds the answer against what it has to be.
func (k *kind) once(transport http.RoundTripper, base, id string) error {
	r := k.request(base, id)
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute) // a hanging test says where
	defer cancel()
	resp, err := transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("after %d bytes of the answer: %w", len(got), err)
	}
	if resp.StatusCode != http.StatusOK || string(got) != k.want(id) {
		return fmt.Errorf("%s, %d bytes: %.300q %v", resp.Status, len(got), got, resp.Header)
	}
	if status := resp.Trailer.Get("Grpc-Status"); r.Header.Get("Te") != "" && status != "0" {
		return errors.New("the status of the call is " + status)
	}
	return nil
}

// leave ends clients, each after its request.
func (c *crowd) leave() {
	c.end()
	c.done.Wait()
}

// goOn waits until each client of some crowds has had n more answers.
func goOn(n int64, crowds ...*crowd) (reached func() bool) {
	var all []*atomic.Int64
	var want []int64
	for _, c := range crowds {
		for i, made := range c.made {
			all = append(all, made)
			least := n
			if k := kinds[i].name; strings.Contains(k, "long") || strings.Contains(k, "stream") {
				least = 1 // that takes half a second
			}
			want = append(want, made.Load()+least)
		}
	}
	return func() bool {
		for i := range all {
			if all[i].Load() < want[i] {
				return false
			}
		}
		return true
	}
}

// settle holds what was done against what was answered: each POST once, and none that nobody asked for.
func (l *load) settle(journal []byte) {
	done := map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(journal)); lines.Scan(); {
		done[lines.Text()]++
	}
	for id, n := range done {
		if n > 1 {
			l.t.Errorf("POST %s was done %d times", id, n)
		}
	}
	l.posted.Range(func(id, _ any) bool {
		if done[id.(string)] == 0 {
			l.t.Errorf("POST %s was answered, and not done", id)
		}
		return true
	})
}
