package proxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

var (
	statusLine = regexp.MustCompile(`^HTTP/1\.1 [1-5][0-9][0-9] [^\x00-\x08\x0a-\x1f\x7f]*\r\n$`)
	fieldLine  = regexp.MustCompile("^[0-9A-Za-z!#$%&'*+.^_`|~-]+: [^\\x00-\\x08\\x0a-\\x1f\\x7f]*\r\n$")
	chunkLine  = regexp.MustCompile(`^[0-9a-f]+\r\n$`)
)

// errForm is an answer that is not well-formed. The parser here is none of the proxy's.
var errForm = errors.New("not well-formed")

// wellFormed reads one final answer to a request with that method, and the interim ones before it. io.EOF means that
// none came, io.ErrUnexpectedEOF that it was broken off.
func wellFormed(in *bufio.Reader, method string) (head, content string, err error) {
	for head == "" || head[9] == '1' && head[9:12] != "101" {
		if head, err = wellFormedHead(in); err != nil {
			return head, "", err
		}
	}
	length := field(head, "Content-Length")
	chunked := field(head, "Transfer-Encoding") == "chunked"
	switch n, _ := strconv.ParseInt(length, 10, 64); {
	case length != "" && (chunked || strconv.FormatInt(n, 10) != length):
		return head, "", fmt.Errorf("%w: length %q, chunked %v", errForm, length, chunked)
	case method == "HEAD", head[9:12] == "101", head[9:12] == "204", head[9:12] == "304":
		return head, "", nil
	case chunked:
		content, err = wellFormedChunks(in)
	case length != "":
		b, short := io.ReadAll(io.LimitReader(in, n))
		if content, err = string(b), short; err == nil && int64(len(b)) < n {
			err = io.ErrUnexpectedEOF
		}
	default:
		err = fmt.Errorf("%w: nothing tells where the content ends", errForm)
	}
	return head, content, err
}

// wellFormedHead reads the head of an answer.
func wellFormedHead(in *bufio.Reader) (head string, err error) {
	for form := statusLine; ; form = fieldLine {
		l, err := in.ReadString('\n')
		if err == io.EOF && head+l != "" {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return head + l, err
		}
		if head += l; l == "\r\n" && form == fieldLine {
			return head, nil
		}
		if !form.MatchString(l) {
			return head, fmt.Errorf("%w: %q", errForm, l)
		}
	}
}

func wellFormedChunks(in *bufio.Reader) (content string, err error) {
	form := chunkLine
	for {
		l, err := in.ReadString('\n')
		switch {
		case err == io.EOF:
			return content, io.ErrUnexpectedEOF
		case err != nil:
			return content, err
		case form == fieldLine && l == "\r\n":
			return content, nil
		case !form.MatchString(l):
			return content, fmt.Errorf("%w: %q", errForm, l)
		case form == fieldLine:
			continue
		}
		size, _ := strconv.ParseInt(strings.TrimSpace(l), 16, 64)
		if size == 0 {
			form = fieldLine
			continue
		}
		b, _ := io.ReadAll(io.LimitReader(in, size+2))
		if content += strings.TrimSuffix(string(b), "\r\n"); int64(len(b)) < size+2 {
			return content, io.ErrUnexpectedEOF
		}
	}
}

// fuzzed is a connection that waits for what should come at once.
func fuzzed(t testing.TB, r *running) *client {
	conn := dial(t, r.addr)
	conn.SetDeadline(time.Now().Add(patience / 3))
	return conn
}

// vanish closes the connection without a trace, so that thousands leave no ports behind that wait.
func (c *client) vanish() {
	c.SetLinger(0)
	c.Close()
}

// FuzzClientBytes sends bytes to the proxy as a client would. The service must get well-formed requests only, the
// client well-formed answers, and the next client its own.
func FuzzClientBytes(f *testing.F) {
	for _, c := range requestsFixed {
		f.Add([]byte(c.send))
	}
	for _, c := range requestsRefused {
		if len(c.send) < 1000 {
			f.Add([]byte(c.send + smuggled))
		}
	}
	for _, c := range brokenChunks {
		if len(c.send) < 1000 {
			f.Add([]byte("POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n" + c.send))
		}
	}
	f.Add([]byte("GET /a HTTP/1.1\r\nHost: s.test\r\n\r\nHEAD /b HTTP/1.1\r\nHost: s.test\r\n\r\n" + smuggled))
	var malformed atomic.Pointer[string]
	s := upstream(f, func(c net.Conn, req string) {
		parsed, err := http.ReadRequest(bufio.NewReader(strings.NewReader(req)))
		if err == nil {
			_, err = io.Copy(io.Discard, parsed.Body)
		}
		if err != nil {
			problem := fmt.Sprintf("%v: %q", err, req)
			malformed.Store(&problem)
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX-Method: %s\r\nContent-Length: %d\r\n\r\n", strings.Fields(req)[0],
			len(line(req)))
		if !strings.HasPrefix(req, "HEAD ") {
			io.WriteString(c, line(req))
		}
	})
	fuzzClient(f, start(f, single([]string{s.url}, noRetries, noBreaker, noEjection), headerTimeout(time.Second),
		stallTimeout(time.Second)), &malformed)
}

// FuzzIngressBytes is FuzzClientBytes at the gate of a protected service, which must not get what only trusted peers
// may send: it gets what the proxy knows instead.
func FuzzIngressBytes(f *testing.F) {
	for _, fields := range []string{"X-Forwarded-For: 192.0.2.1\r\nx-envoy-attempt-count: 9\r\nABATE-PRIORITY: " +
		"SHEDDABLE\r\n", "X-Envoy-Expected-Rq-Timeout-Ms: 1\r\nGrpc-Timeout: 1H\r\n",
		"Idempotency-Key: a\r\nContent-Length: 3\r\n", "Idempotency-Key: \"b\"\r\nTransfer-Encoding: chunked\r\n",
		"Expect: 100-continue\r\nIdempotency-Key: c\r\nContent-Length: 100\r\n",
		"Connection: Upgrade\r\nUpgrade: websocket\r\nIdempotency-Key: d\r\n",
		"Idempotency-Key: e\r\nX-Idempotency-Key: f\r\nAbate-Idempotency-Token: x\r\nContent-Length: 3\r\n",
		"Authorization: Bearer x\r\nForwarded: for=x\r\nX-Real-Ip: y\r\nx-forwarded-client-cert: z\r\n"} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			f.Add([]byte(method + " /a HTTP/1.1\r\nHost: s.test\r\n" + fields + "\r\nabc" + smuggled))
		}
	}
	var malformed atomic.Pointer[string]
	s := upstream(f, func(c net.Conn, req string) {
		parsed, err := http.ReadRequest(bufio.NewReader(strings.NewReader(req)))
		if err != nil {
			malformed.Store(&req)
			return
		}
		for name, values := range parsed.Header {
			want := map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http",
				"X-Forwarded-Host": parsed.Host, "X-Envoy-Attempt-Count": "1", "Abate-Priority": "CRITICAL",
				"X-Envoy-Expected-Rq-Timeout-Ms": values[0]}[name]
			if keyed := parsed.Header["Idempotency-Key"] != nil ||
				parsed.Header["X-Idempotency-Key"] != nil; name == "Abate-Idempotency-Token" && keyed {
				if _, err := strconv.ParseUint(values[0], 10, 64); err == nil {
					want = values[0]
				}
			}
			privileged := strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Envoy-") ||
				strings.HasPrefix(name, "Abate-") || name == "Forwarded" || name == "X-Real-Ip"
			if privileged && (len(values) != 1 || values[0] != want) {
				malformed.Store(&req)
			}
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX-Method: %s\r\nContent-Length: %d\r\n\r\n", parsed.Method, len(line(req)))
		if parsed.Method != "HEAD" {
			io.WriteString(c, line(req))
		}
	})
	fuzzClient(
		f, protect(f, guardOf(s.url, "timeout: 15s", "idempotency: {methods: [POST, HEAD], maxBody: 64}",
			"rateLimit: {limit: 1000000/s, burst: 1000000, key: caller}"),
			headerTimeout(time.Second), stallTimeout(time.Second)), &malformed)
}

// fuzzClient sends bytes to a proxy as a client would.
func fuzzClient(f *testing.F, r *running, malformed *atomic.Pointer[string]) {
	var number int
	f.Fuzz(func(t *testing.T, data []byte) {
		conn := fuzzed(t, r)
		defer conn.vanish()
		go func() {
			conn.Write(data)
			conn.CloseWrite()
		}()
		got, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("no end after %q", got)
		}
		if problem := malformed.Swap(nil); problem != nil {
			t.Errorf("the service got a malformed request: %s", *problem)
		}
		if !bytes.HasPrefix(data, []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) {
			checkAnswers(t, string(got))
		}
		number++
		next := fuzzed(t, r)
		defer next.vanish()
		want := fmt.Sprintf("GET /next/%d HTTP/1.1", number)
		if a := next.get(fmt.Sprintf("/next/%d", number)); a.status != 200 || a.content != want {
			t.Errorf("the next client got %d %q", a.status, a.content)
		}
	})
}

// checkAnswers checks that all that a client got is answers, the last of which may be broken off.
func checkAnswers(t *testing.T, got string) {
	for rest := got; rest != ""; {
		in := bufio.NewReader(strings.NewReader(rest))
		head, _, err := wellFormed(in, field(rest, "X-Method"))
		if err == io.ErrUnexpectedEOF && field(head, "Abate-Reason") == "" ||
			err == io.EOF && strings.HasPrefix(rest, "HTTP/1.1 1") {
			return
		}
		after, _ := io.ReadAll(in)
		if field(head, "Abate-Reason") != "" { // the proxy's own may be one to HEAD
			if _, behind, _ := strings.Cut(rest, "\r\n\r\n"); behind == "" || strings.HasPrefix(behind, "HTTP/1.1 ") {
				after, err = []byte(behind), nil
			}
		}
		if err != nil {
			t.Fatalf("the client got %q: %v", got, err)
		}
		rest = string(after)
	}
}

// FuzzUpstreamBytes answers with bytes as a service would. The client must get one well-formed answer or a closed
// connection, and every other request its own answer.
func FuzzUpstreamBytes(f *testing.F) {
	for how, c := range answersRefused {
		if len(c.send) < 1000 {
			f.Add(byte(how), []byte(c.send))
		}
	}
	for how, c := range longer {
		f.Add(byte(how), []byte(c.answer+c.extra))
	}
	f.Add(byte(3), []byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello"))
	f.Add(byte(0), []byte(okHead+"\r\nto the end"))
	f.Add(byte(2), []byte("HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.0 404 \r\nTrailer: A\r\n\r\n"))
	answers := make(chan []byte, 1)
	s := upstream(f, func(c net.Conn, req string) {
		if path := strings.Fields(req)[1]; path != "/fuzz" || field(req, "X-Envoy-Attempt-Count") != "1" {
			fmt.Fprint(c, ok(path))
			return
		}
		c.Write(<-answers)
		c.Close()
	})
	change := func(c *proxy.Config) { c.StallTimeout, c.HeaderTimeout = time.Second, time.Second }
	proxies := []*running{
		start(f, single([]string{s.url}, noRetries, noBreaker, noEjection), change),
		start(f, single([]string{s.url}, quickRetry, noBreaker, noEjection, "retryBudget: {ratio: 1, reserve: 1000}"),
			change),
		start(f, single([]string{s.url}, quickRetry, noBreaker, noEjection, "hedge: {delay: 1h}",
			"retryBudget: {ratio: 1, reserve: 1000}"), change),
	}
	requests := []struct{ method, more string }{
		{"GET", "\r\n"}, {"HEAD", "\r\n"}, {"POST", "Content-Length: 4\r\n\r\nabcd"},
		{"GET", "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
	}
	var number int
	f.Fuzz(func(t *testing.T, how byte, data []byte) {
		r, ask := proxies[int(how/4)%len(proxies)], requests[how%4]
		answers <- data
		conn := fuzzed(t, r).send(ask.method + " /fuzz HTTP/1.1\r\nHost: s.test\r\n" + ask.more)
		defer func() { conn.vanish() }()
		head, content, err := wellFormed(conn.in, ask.method)
		switch {
		case errors.Is(err, errForm) || errors.Is(err, os.ErrDeadlineExceeded):
			t.Fatalf("the client got %q %q: %v", head, content, err)
		case err == nil && strings.HasPrefix(head, "HTTP/1.1 101 "):
			if _, err := io.Copy(io.Discard, conn.in); err != nil {
				t.Fatalf("the tunnel did not end: %v", err)
			}
			fallthrough
		case err != nil || field(head, "Connection") == "close":
			conn.closed()
			conn.vanish()
			conn = fuzzed(t, r)
		}
		number++
		path := fmt.Sprintf("/own/%d", number)
		a := conn.get(path)
		if a.status == 502 { // the service has closed the connection when the request was on its way
			a = conn.get(path)
		}
		if a.status != 200 || a.content != path || conn.in.Buffered() > 0 {
			t.Errorf("the next request got %d %q", a.status, a.content)
		}
	})
}
