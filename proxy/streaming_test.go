package proxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// events is an upstream that sends the head of an event stream, and an event for each string that comes from its
// channel.
func events(w http.ResponseWriter, r *http.Request, from <-chan string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	flush(w)
	for {
		select {
		case e := <-from:
			if e == "" {
				return
			}
			fmt.Fprintln(w, e)
			flush(w)
		case <-r.Context().Done():
			return
		}
	}
}

// give has an upstream send an event, unless it has gone.
func give(t testing.TB, to chan<- string, e string) {
	select {
	case to <- e:
	case <-time.After(patience):
		t.Errorf("nobody is there to send %q", e)
	}
}

func TestEventsArriveWhenTheyAreSent(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	eachWay(t, func(t *testing.T, in, out wire) {
		send := make(chan string)
		r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
			events(w, r, send)
		})}, "attemptTimeout: "+long.String()))
		b := begin(t, in.client(t), newRequest(t, "GET", "http://"+r.addr+"/", nil))
		b.head() // before the first event
		tick := time.NewTicker(long + short)
		defer tick.Stop()
		for _, e := range []string{"one", "two"} {
			<-tick.C // longer than an attempt may take
			give(t, send, e)
			b.line(e)
		}
		give(t, send, "")
		b.rest("")
	})
}

// TestOtherAnswersHaveTheAttemptsTimeLimit: what does not end in time is broken off.
func TestOtherAnswersHaveTheAttemptsTimeLimit(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	eachWay(t, func(t *testing.T, in, out wire) {
		r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "half")
			flush(w)
			<-r.Context().Done()
		})}, "attemptTimeout: "+long.String()))
		b := begin(t, in.client(t), newRequest(t, "GET", "http://"+r.addr+"/", nil))
		b.line("half")
		within(t, "the end", func() {
			if rest, err := io.ReadAll(b.in); err == nil {
				t.Errorf("it ended well, with %q", rest)
			}
		})
	})
}

// TestAServiceIsReleasedWhenItsClientLeaves: also where it is silent, in a stream, or in the middle of a long answer.
func TestAServiceIsReleasedWhenItsClientLeaves(t *testing.T) {
	for name, answer := range map[string]string{
		"before the head": "",
		"in an event stream": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n5\r\nevent\r\n",
		"in a short answer": "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nevent",
		"in a long answer":  "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\nevent",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := make(chan error, 1)
			came := make(chan struct{})
			s := rawUpstream(t, func(c net.Conn, _ int) {
				in := bufio.NewReader(c)
				_, _ = readMessage(in)
				io.WriteString(c, answer)
				close(came)
				_, err := in.ReadByte()
				left <- err
			})
			r := start(t, single([]string{s.url}))
			c := r.dial()
			c.send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
			if wait(t, "the request", came); answer != "" {
				head, err := http.ReadResponse(c.in, nil)
				if err == nil {
					_, err = io.ReadFull(head.Body, make([]byte, len("event")))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			c.Close()
			if err := wait(t, "the service's connection ends", left); err == nil {
				t.Error("the service got more bytes")
			}
			eventually(t, "nothing pending", func() bool { return r.guard().Endpoints[0].Pending == 0 })
		})
	}
}

// TestAClientThatStallsNeverGetsAnAnswerWithAHole: it gets all of it, or sees that it was cut off.
func TestAClientThatStallsNeverGetsAnAnswerWithAHole(t *testing.T) {
	t.Parallel()          // it waits
	const size = 32 << 20 // more than the sockets between the two hold
	piece := numbered()
	s := upstream(t, func(c net.Conn, _ string) {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
		for range size / len(piece) {
			if _, err := c.Write(piece); err != nil {
				return
			}
		}
	})
	r := start(t, single([]string{s.url}), func(c *proxy.Config) { c.StallTimeout = 400 * time.Millisecond })
	c := r.dial()
	c.SetReadBuffer(64 << 10)
	c.send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(600 * time.Millisecond) // longer than a client may stall, and not twice as long
	defer tick.Stop()
	<-tick.C
	got, err := io.ReadAll(resp.Body)
	for i := 0; i < len(got); i += len(piece) {
		if rest := got[i:]; !bytes.Equal(rest[:min(len(piece), len(rest))], piece[:min(len(piece), len(rest))]) {
			t.Fatalf("after %d bytes come others than the service sent", i)
		}
	}
	if len(got) < size && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes of %d, and then %v", len(got), size, err)
	}
}

// TestALongAnswerMayPause: a service that sends nothing for a while is not given up before its time.
func TestALongAnswerMayPause(t *testing.T) {
	t.Parallel()
	piece := numbered()
	s := upstream(t, func(c net.Conn, _ string) {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", 2*len(piece))
		_, _ = c.Write(piece)
		tick := time.NewTicker(600 * time.Millisecond) // the proxy looks after its client meanwhile, twice
		defer tick.Stop()
		<-tick.C
		_, _ = c.Write(piece)
	})
	if a := start(t, single([]string{s.url})).get("/"); a.content != string(piece)+string(piece) {
		t.Errorf("%d bytes came of %d", len(a.content), 2*len(piece))
	}
}

// numbered is 1 MiB that repeats nowhere.
func numbered() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "%015d\n", i)
	}
	return b.Bytes()
}

func TestEarlyHintsPass(t *testing.T) {
	const hint = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
	goOn := make(chan struct{})
	s := upstream(t, func(c net.Conn, _ string) {
		io.WriteString(c, hint+hint)
		hold(t, goOn)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 4\r\n\r\ndone")
	})
	r := start(t, single([]string{s.url}))
	for _, in := range []wire{http1, h2c} {
		t.Run(in.name, func(t *testing.T) {
			hints := make(chan string, 10)
			req := newRequest(t, "GET", "http://"+r.addr+"/", nil)
			trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				hints <- fmt.Sprint(code, h)
				return nil
			}}
			b := begin(t, in.client(t), req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
			for range 2 {
				if got, want := wait(t, "a hint", hints), "103 map[Link:[</a.css>; rel=preload]]"; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			goOn <- struct{}{} // the upstream waits for it
			b.head()
			b.rest("done")
			if h := b.resp.Header; h.Get("Link") != "" || h.Get("X-A") != "b" || len(hints) > 0 {
				t.Errorf("the answer has %v, and %d more hints came", h, len(hints))
			}
		})
	}
	t.Run("not to HTTP/1.0", func(t *testing.T) {
		c := r.dial()
		c.send("GET / HTTP/1.0\r\nHost: s.test\r\n\r\n")
		goOn <- struct{}{}
		if a := c.answer(); a.status != 200 || a.content != "done" {
			t.Errorf("got %+v", a)
		}
	})
}

// large is the size of a body that is not held in memory.
const large = 100_000

// expecting is the head of a request that wants to be told to go on.
func expecting(size int) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: s.test\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", size)
}

// told reads a 100.
func (c *client) told() {
	c.t.Helper()
	c.expect("HTTP/1.1 100 Continue\r\n\r\n")
}

// expected is an upstream that is given the head of a request, and reads the body when it wants to.
func expected(t *testing.T, serve func(c net.Conn, head string, in *bufio.Reader)) *server {
	return rawUpstream(t, func(c net.Conn, _ int) {
		in := bufio.NewReader(c)
		for {
			var head strings.Builder
			for {
				l, err := in.ReadString('\n')
				if err != nil {
					return
				}
				head.WriteString(l)
				if l == "\r\n" {
					break
				}
			}
			serve(c, head.String(), in)
		}
	})
}

// take reads a body of that size and answers.
func take(c net.Conn, in *bufio.Reader, size int) {
	n, _ := io.CopyN(io.Discard, in, int64(size))
	io.WriteString(c, ok(fmt.Sprint(n)))
}

func TestAServiceThatIsAskedSaysWhenTheBodyMayCome(t *testing.T) {
	asked, agree := make(chan string, 1), make(chan struct{})
	s := expected(t, func(c net.Conn, head string, in *bufio.Reader) {
		asked <- field(head, "Expect")
		hold(t, agree)
		if in.Buffered() > 0 {
			t.Error("the body came before it was asked for")
		}
		io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		take(c, in, large)
	})
	r := start(t, single([]string{s.url}))
	c := r.dial()
	c.send(expecting(large))
	if e := wait(t, "the head", asked); e != "100-continue" {
		t.Errorf("Expect: %q", e)
	}
	close(agree)
	c.told()
	if a := c.send(strings.Repeat("x", large)).answer(); a.content != fmt.Sprint(large) || a.close {
		t.Errorf("got %+v", a)
	}
}

// TestWhatAServiceSaysFirstComesFirst: its 100 is passed on, even if its answer follows at once.
func TestWhatAServiceSaysFirstComesFirst(t *testing.T) {
	s := expected(t, func(c net.Conn, _ string, in *bufio.Reader) {
		io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n"+ok("enough"))
		_, _ = io.Copy(io.Discard, in)
	})
	c := start(t, single([]string{s.url})).dial()
	c.send(expecting(large)).told()
	if a := c.answer(); a.content != "enough" {
		t.Errorf("got %+v", a)
	}
}

func TestAServiceMayRefuseABodyBeforeItComes(t *testing.T) {
	for _, status := range []int{417, 413, 401} {
		s := expected(t, func(c net.Conn, head string, in *bufio.Reader) {
			fmt.Fprintf(c, "HTTP/1.1 %d No\r\nContent-Length: 2\r\n\r\nno", status)
			if n, _ := io.Copy(io.Discard, in); n > 0 {
				t.Errorf("%d bytes of the body came", n)
			}
		})
		c := start(t, single([]string{s.url})).dial()
		if a := c.send(expecting(large)).answer(); a.status != status || a.content != "no" || !a.close {
			t.Errorf("%d: got %+v", status, a)
		}
		c.closed()
	}
}

// TestAServiceThatDoesNotKnowTheExpectationGetsTheBody: after a second, as RFC 9110 has it.
func TestAServiceThatDoesNotKnowTheExpectationGetsTheBody(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel() // it waits
	s := expected(t, func(c net.Conn, head string, in *bufio.Reader) { take(c, in, large) })
	c := start(t, single([]string{s.url})).dial()
	c.send(expecting(large)).told()
	if a := c.send(strings.Repeat("x", large)).answer(); a.content != fmt.Sprint(large) {
		t.Errorf("got %+v", a)
	}
}

func TestABodyThatIsHeldIsAskedForAtOnce(t *testing.T) {
	s := upstream(t, func(c net.Conn, req string) { io.WriteString(c, ok(field(req, "Expect")+content(req))) })
	c := start(t, single([]string{s.url})).dial()
	for range 2 {
		c.send(expecting(4)).told()
		if a := c.send("body").answer(); a.content != "body" || a.close {
			t.Errorf("got %+v", a)
		}
	}
	if a := c.send(expecting(4) + "body").answer(); a.content != "body" { // it did not wait: nobody needs to tell it
		t.Errorf("got %+v", a)
	}
}

func TestABodyForHTTP2IsAskedForByTheProxy(t *testing.T) {
	r := start(t, single([]string{h2c.serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintln(w, n, err)
	})}))
	c := r.dial()
	c.send(expecting(large)).told()
	if a := c.send(strings.Repeat("x", large)).answer(); a.content != fmt.Sprintln(large, nil) {
		t.Errorf("got %+v", a)
	}
}

// TestACallThatIsRefusedDoesNotAskForItsBody: there is nothing to send it to.
func TestACallThatIsRefusedDoesNotAskForItsBody(t *testing.T) {
	s := upstream(t, func(c net.Conn, req string) { io.WriteString(c, ok("")) })
	c := start(t, single([]string{s.url}, "circuitBreaker: {mode: forcedOpen}")).dial()
	if a := c.send(expecting(large)).answer(); a.status != 503 || !a.close {
		t.Errorf("got %+v", a)
	}
	c.closed()
}

// TestLongBodiesNeedNoMemory: what is allocated while 64 MiB pass does not grow with them.
func TestLongBodiesNeedNoMemory(t *testing.T) {
	const size, most = 64 << 20, 8 << 20
	piece := numbered()
	fill := func(w io.Writer, begin, end string) {
		for range size / len(piece) {
			io.WriteString(w, begin)
			w.Write(piece)
			io.WriteString(w, end)
		}
	}
	const known, chunked, unknown = "Content-Length: 67108864\r\n", "Transfer-Encoding: chunked\r\n", ""
	s := rawUpstream(t, func(c net.Conn, _ int) {
		in := bufio.NewReader(c)
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		n, _ := io.Copy(io.Discard, req.Body)
		switch req.URL.Path {
		case "/up":
			io.WriteString(c, strings.Replace(ok(fmt.Sprint(n)), "\r\n", "\r\nConnection: close\r\n", 1))
		case "/known":
			io.WriteString(c, "HTTP/1.1 200 OK\r\n"+known+"\r\n")
			fill(c, "", "")
		case "/chunked":
			io.WriteString(c, "HTTP/1.1 200 OK\r\n"+chunked+"\r\n")
			fill(c, "100000\r\n", "\r\n")
			io.WriteString(c, "0\r\n\r\n")
		case "/unknown":
			io.WriteString(c, "HTTP/1.1 200 OK\r\n"+unknown+"\r\n")
			fill(c, "", "")
		}
	})
	r := start(t, single([]string{s.url}))
	flat := func(name string, f func() int64) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := f()
		runtime.ReadMemStats(&after)
		if n != size {
			t.Errorf("%s: %d bytes of %d", name, n, size)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > most {
			t.Errorf("%s: %d MiB were allocated", name, used>>20)
		}
	}
	for _, path := range []string{"/known", "/chunked", "/unknown"} {
		flat("down"+path, func() int64 {
			c := r.dial()
			resp, err := http.ReadResponse(bufio.NewReader(c.send("GET "+path+" HTTP/1.1\r\nHost: s.test\r\n\r\n")), nil)
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return n
		})
	}
	for framing, end := range map[string]string{known: "", chunked: "0\r\n\r\n"} {
		flat("up "+framing, func() (n int64) {
			c := r.dial().send("POST /up HTTP/1.1\r\nHost: s.test\r\n" + framing + "\r\n")
			if end == "" {
				fill(c, "", "")
			} else {
				fill(c, "100000\r\n", "\r\n")
			}
			fmt.Sscan(c.send(end).answer().content, &n)
			return n
		})
	}
}

func TestClientsOfHTTP10AreServed(t *testing.T) {
	s := upstream(t, func(c net.Conn, req string) {
		if strings.HasPrefix(req, "GET /chunked ") {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\nX-T: u\r\n\r\n")
			return
		}
		io.WriteString(c, ok(line(req)+content(req)))
	})
	r := start(t, single([]string{s.url}))
	t.Run("without keep-alive", func(t *testing.T) {
		c := r.dial()
		if a := c.send("GET /a HTTP/1.0\r\n\r\n").answer(); a.content != "GET /a HTTP/1.1" {
			t.Errorf("got %+v", a)
		}
		c.closed()
	})
	t.Run("with keep-alive", func(t *testing.T) {
		c := r.dial()
		for range 2 {
			a := c.send("POST /a HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi").answer()
			if a.content != "POST /a HTTP/1.1hi" || a.header.Get("Connection") != "keep-alive" {
				t.Errorf("got %+v", a)
			}
		}
	})
	t.Run("no chunks for it", func(t *testing.T) {
		c := r.dial()
		c.send("GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
		whole, err := io.ReadAll(c.in)
		if got := string(whole); err != nil || content(got) != "abcdef" || field(got, "Transfer-Encoding") != "" ||
			field(got, "Connection") != "close" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// TestAnAnswerThatEndsWithItsConnection becomes one with chunks, and the client's connection goes on.
func TestAnAnswerThatEndsWithItsConnection(t *testing.T) {
	s := rawUpstream(t, func(c net.Conn, n int) {
		_, _ = readMessage(bufio.NewReader(c))
		fmt.Fprintf(c, "HTTP/1.%d 200 OK\r\nConnection: close\r\n\r\nuntil the end", n%2)
	})
	c := start(t, single([]string{s.url})).dial()
	for range 3 {
		if a := c.get("/"); a.status != 200 || a.content != "until the end" || a.close {
			t.Errorf("got %+v", a)
		}
	}
}

// TestAnAnswerMayOvertakeItsRequest: the service has heard enough; the client sees it, though it is still sending.
func TestAnAnswerMayOvertakeItsRequest(t *testing.T) {
	s := rawUpstream(t, func(c net.Conn, _ int) {
		in := bufio.NewReader(c)
		_, _ = in.ReadString('\n')
		io.WriteString(c, "HTTP/1.1 413 Too Much\r\nConnection: close\r\nContent-Length: 6\r\n\r\nenough")
		_, _ = io.Copy(io.Discard, in)
	})
	c := start(t, single([]string{s.url})).dial()
	var sending sync.WaitGroup
	sending.Go(func() {
		_, _ = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: %d\r\n\r\n", 1<<30)
		for piece := make([]byte, 1<<16); ; {
			if _, err := c.Write(piece); err != nil {
				return
			}
		}
	})
	if a := c.answer(); a.status != 413 || a.content != "enough" || !a.close {
		t.Errorf("got %+v", a)
	}
	c.Close()
	sending.Wait()
}

// TestAConnectionIsUsedAgainAfterALongBody: the time that was set for sending it does not hold for the next request.
func TestAConnectionIsUsedAgainAfterALongBody(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel() // it waits
	s := upstream(t, func(c net.Conn, req string) { io.WriteString(c, ok(fmt.Sprint(len(content(req))))) })
	const limit = long // the long body has to pass within it
	r := start(t, single([]string{s.url}, "attemptTimeout: "+limit.String(), noRetries), stallTimeout(limit))
	c := r.dial()
	for _, size := range []int{50_000, large} { // held, and streamed
		if a := c.send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: %d\r\n\r\n", size) +
			strings.Repeat("x", size)).answer(); a.content != fmt.Sprint(size) {
			t.Fatalf("got %+v", a)
		}
		tick := time.NewTicker(limit + short)
		<-tick.C
		tick.Stop()
		if a := c.get("/"); a.content != "0" {
			t.Errorf("after %d bytes: got %+v", size, a)
		}
	}
	if n := s.connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
