package proxy_test

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// repeated is content that belongs to the request with that id and no other. Most of it is short, some long.
func repeated(kind, id string) string {
	h := fnv.New32a()
	io.WriteString(h, kind+id)
	sizes := [...]int{0, 1, 1, 3, 10, 100, 3000, 20000}
	return strings.Repeat(kind+"-"+id+"\n", sizes[h.Sum32()%uint32(len(sizes))])
}

// faithless is a service that knows what belongs to a request, and often does wrong all the same.
type faithless struct {
	mixed atomic.Pointer[string] // a request that held something of another
}

// serve answers requests whose path is their id.
func (f *faithless) serve(c net.Conn, n int) {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	for in := bufio.NewReader(c); ; {
		req, err := readMessage(in)
		if err != nil {
			return
		}
		id := strings.TrimPrefix(strings.Fields(req)[1], "/")
		data, _ := plainContent(req)
		if want := repeated("ask", id); field(req, "X-Id") != id || data != want && (data != "" || line(req)[0] == 'P') {
			f.mixed.Store(&req)
		}
		if !f.answer(c, rng, id) {
			return
		}
	}
}

// answer writes an answer with the content that belongs to id, and reports whether the connection goes on.
func (f *faithless) answer(c net.Conn, rng *rand.Rand, id string) bool {
	content := repeated("answer", id)
	head := "HTTP/1.1 200 OK\r\nX-Id: " + id + "\r\n"
	good := head + "Content-Length: " + strconv.Itoa(len(content)) + "\r\n\r\n" + content
	switch rng.IntN(16) {
	case 0:
		return false
	case 1:
		io.WriteString(c, good[:rng.IntN(len(good))])
		return false
	case 2:
		io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nX-Id: "+id+"\r\nContent-Length: "+strconv.Itoa(
			len(id))+"\r\n\r\n"+id)
	case 3: // chunks, some of them short
		var b strings.Builder
		fmt.Fprint(&b, head+"Transfer-Encoding: chunked\r\n\r\n")
		for len(content) > 0 {
			n := min(1+rng.IntN(9000), len(content))
			fmt.Fprintf(&b, "%x;x\r\n%s\r\n", n, content[:n])
			content = content[n:]
		}
		io.WriteString(c, b.String()+"0\r\nX-Sum: 1\r\n\r\n")
	case 4: // content that ends with the connection
		io.WriteString(c, head+"\r\n"+content)
		return false
	case 5: // another answer behind it
		io.WriteString(c, good+"HTTP/1.1 200 OK\r\nX-Id: stolen\r\nContent-Length: 6\r\n\r\nstolen")
	case 6:
		io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nX-Id: "+id+"\r\n\r\n"+good)
	case 7:
		io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 2OO\r\n\r\n")
	case 8: // in two pieces
		n := rng.IntN(len(good))
		io.WriteString(c, good[:n])
		io.WriteString(c, good[n:])
	case 9: // slower than a hedge waits
		tick := time.NewTimer(time.Duration(rng.IntN(5)) * time.Millisecond)
		<-tick.C
		io.WriteString(c, good)
	case 10:
		io.WriteString(c, strings.Replace(good, "\r\n", "\r\nConnection: close\r\n", 1))
		return false
	default:
		io.WriteString(c, good)
	}
	return true
}

// plainContent is the content of a message without its chunks.
func plainContent(message string) (string, error) {
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(message)))
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(req.Body)
	return string(b), err
}

// ask is a request with that id.
func ask(rng *rand.Rand, id string) (method, request string) {
	content := repeated("ask", id)
	tail := " /" + id + " HTTP/1.1\r\nHost: s.test\r\nX-Id: " + id + "\r\n"
	switch rng.IntN(5) {
	case 0:
		return "HEAD", "HEAD" + tail + "\r\n"
	case 1, 2:
		return "GET", "GET" + tail + "\r\n"
	case 3:
		if rng.IntN(2) == 0 {
			tail += "Idempotency-Key: " + id + "\r\n"
		}
		return "POST", "POST" + tail + "Content-Length: " + strconv.Itoa(len(content)) + "\r\n\r\n" + content
	default:
		if content == "" {
			return "PUT", "PUT" + tail + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
		}
		n := rng.IntN(len(content)) + 1
		chunks := fmt.Sprintf("%x\r\n%s\r\n", n, content[:n])
		if n < len(content) {
			chunks += fmt.Sprintf("%x\r\n%s\r\n", len(content)-n, content[n:])
		}
		return "PUT", "PUT" + tail + "Transfer-Encoding: chunked\r\n\r\n" + chunks + "0\r\n\r\n"
	}
}

// asker sends requests in pipelines of up to 4 on connections that it leaves when it likes, and checks that each gets
// its own answer. It returns how many got one.
func asker(t *testing.T, r *running, name string, rng *rand.Rand) (good int) {
	var conn *client
	for i := 0; i < 30; {
		if conn == nil {
			conn = dial(t, r.addr)
		}
		var ids, methods []string
		var batch string
		for range 1 + rng.IntN(4) {
			id := fmt.Sprintf("%s-%d", name, i)
			i++
			method, request := ask(rng, id)
			ids, methods, batch = append(ids, id), append(methods, method), batch+request
		}
		if rng.IntN(8) == 0 { // leaves in the middle
			io.WriteString(conn, batch[:rng.IntN(len(batch))])
			conn.Close()
			conn = nil
			continue
		}
		go io.WriteString(conn, batch)
		for k, id := range ids {
			if rng.IntN(16) == 0 {
				conn.Close()
			}
			a, err := conn.read(methods[k])
			for err == nil && a.status < 200 {
				a, err = conn.read(methods[k])
			}
			if ownAnswer(t, id, methods[k], a, err) {
				good++
			}
			if err != nil || a.close {
				conn.Close()
				conn = nil
				break
			}
		}
	}
	if conn != nil {
		conn.Close()
	}
	return good
}

// ownAnswer checks an answer to the request with that id, and reports whether it is a good one.
func ownAnswer(t *testing.T, id, method string, a reply, err error) bool {
	switch from := a.header.Get("X-Id"); {
	case a.status == 0: // nothing came
		return false
	case a.status == 200:
		want := repeated("answer", id)
		if method == "HEAD" {
			want = ""
		}
		if from != id || err == nil && a.content != want || err != nil && !strings.HasPrefix(want, a.content) {
			t.Errorf("%s %s got an answer to %q: %d bytes, %.60q; %v", method, id, from, len(a.content), a.content, err)
		}
		return err == nil
	case from != id && from != "" || a.status == 503 && from == id && method != "HEAD" && a.content != id:
		t.Errorf("%s %s got an answer to %q: %d %.60q", method, id, from, a.status, a.content)
	case from == "" && a.header.Get("Abate-Reason") == "":
		t.Errorf("%s %s got %d %.100q", method, id, a.status, a.content)
	}
	return false
}

func TestEveryAnswerBelongsToItsRequest(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for _, way := range []struct{ name, keys string }{
		{"no retries", noRetries},
		{"retries", "maxRetries: 3\n    initialDelay: 1ms"},
		{"hedging", "maxRetries: 3\n    initialDelay: 1ms\n    hedge: {delay: 1ms, maxHedges: 2}"},
	} {
		t.Run(way.name, func(t *testing.T) {
			var service faithless
			a, b := rawUpstream(t, service.serve), rawUpstream(t, service.serve)
			r := start(t, single([]string{a.url, b.url}, way.keys, noBreaker, "retryBudget: {ratio: 1, reserve: 1000}",
				"attemptTimeout: 5s",
				"retryMethods: [GET, HEAD, PUT]"), func(c *proxy.Config) { c.MaxBufferedBody = 50000 })
			var all sync.WaitGroup
			var good atomic.Int64
			for i := range 16 {
				all.Go(func() { good.Add(int64(asker(t, r, fmt.Sprintf("c%d", i), rand.New(rand.NewPCG(uint64(i), 4))))) })
			}
			all.Wait()
			if req := service.mixed.Load(); req != nil {
				t.Errorf("the service got a request with something of another: %.300q", *req)
			}
			if good.Load() < 100 {
				t.Errorf("only %d good answers", good.Load())
			}
			eventually(t, "everything is given back", func() bool { return calm(r) })
		})
	}
}

// The budget holds for all clients together: extra attempts at most ratio × first attempts + reserve.
func TestBudgetBoundsTheRetriesOfAnOutage(t *testing.T) {
	const clients, each, ratio, reserve = 64, 10, 0.1, 10
	for _, c := range []struct {
		name   string
		keys   string
		answer func(net.Conn)
	}{
		{"503", "maxRetries: 3", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
		}},
		{"closed", "maxRetries: 3", func(c net.Conn) { c.Close() }},
		{"garbage", "maxRetries: 3", func(c net.Conn) { io.WriteString(c, "x\r\n\r\n") }},
		{"slow, with hedges", "maxRetries: 3\n    hedge: {delay: 1ms, maxHedges: 3}", func(c net.Conn) {
			tick := time.NewTimer(3 * time.Millisecond)
			<-tick.C
			io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var first, extra atomic.Int64
			s := upstream(t, func(conn net.Conn, req string) {
				if field(req, "X-Envoy-Attempt-Count") == "1" {
					first.Add(1)
				} else {
					extra.Add(1)
				}
				c.answer(conn)
			})
			r := start(t, single([]string{s.url}, c.keys, quickRetry, noBreaker, noEjection,
				fmt.Sprintf("retryBudget: {ratio: %v, reserve: %d}", ratio, reserve)))
			var all sync.WaitGroup
			for range clients {
				all.Go(func() {
					conn := dial(t, r.addr)
					defer conn.Close()
					for range each {
						if a := conn.get("/"); a.status < 500 {
							t.Errorf("%d", a.status)
						}
					}
				})
			}
			all.Wait()
			if got := first.Load(); got != clients*each {
				t.Errorf("%d first attempts, want %d", got, clients*each)
			}
			most := int64(ratio*clients*each + reserve)
			if got := extra.Load(); got > most || got < reserve {
				t.Errorf("%d extra attempts, at most %d are allowed and at least %d expected", got, most, reserve)
			}
		})
	}
}
