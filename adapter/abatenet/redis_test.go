package abatenet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatenet"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/connfail"
)

// asked is what a server hears.
const asked = "*1\r\n$4\r\nPING\r\n"

// speaker is a server on the other end of a connection: it waits for the question, unless it is hasty, says some
// pieces, and closes the connection unless it is silent then.
type speaker struct {
	hasty, silent bool
	says          []string
	written       error // what becomes of the question at a hasty one: it lies in a buffer, or the connection has gone

	heard  string
	closed bool // by the client
}

// dial returns a connection to a speaker. It ends when the client closes.
func (s *speaker) dial() net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		if !s.hasty {
			question := make([]byte, len(asked))
			n, _ := io.ReadFull(server, question)
			s.heard = string(question[:n])
		}
		for _, piece := range s.says {
			if _, err := io.WriteString(server, piece); err != nil {
				s.closed = true
				return
			}
		}
		if s.silent {
			_, err := server.Read(make([]byte, 1))
			s.closed = err == io.EOF
		}
	}()
	if s.hasty {
		return &unheard{client, s.written}
	}
	return client
}

// unheard is a connection to which nobody listens any more. A pipe has no buffer.
type unheard struct {
	net.Conn
	err error
}

func (u *unheard) Write(p []byte) (int, error) { return len(p), u.err }

func says(pieces ...string) *speaker { return &speaker{says: pieces, silent: true} }

const (
	loading = "LOADING Redis is loading the dataset in memory"
	full    = "ERR max number of clients reached"
)

// more than a thousand bytes, as the real one
var denial = "DENIED this Redis is in protected mode" + strings.Repeat(", see the manual", 64)

var greetings = []struct {
	name    string
	server  *speaker
	err     string // how it begins; empty: a success
	opening connfail.Decision
}{
	{"PONG", says("+PONG\r\n"), "", ""},
	{"PONG in pieces", says("+", "PO", "NG\r", "\n"), "", ""},
	{"PONG with a bare end of line", says("+PONG\n"), "", ""},
	{"asks for a password", says("-NOAUTH Authentication required.\r\n"), "", ""},
	{"no PING before the login", says("-NOPERM this user has no permissions to run the 'ping' command\r\n"), "", ""},
	{"takes no writes, but reads",
		says("-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n"), "",
		""},
	{"knows no PING", says("-ERR unknown command 'PING', with args beginning with: \r\n"), "", ""},
	{"loading", says("-" + loading + "\r\n"), loading, connfail.Again},
	{"loading, in pieces", says("-LOAD", "ING Redis is loading the dataset in memory\r", "\n"), loading, connfail.Again},
	{"held up by a script", says("-BUSY Redis is busy running a script.\r\n"), "BUSY Redis", connfail.Again},
	{"a replica without its primary", says("-MASTERDOWN Link with MASTER is down\r\n"), "MASTERDOWN Link", connfail.Again},
	{"full, said before it is asked", &speaker{hasty: true, says: []string{"-" + full + "\r\n"}}, full, connfail.Slower},
	{"full, and gone when it is asked", &speaker{hasty: true, says: []string{"-" + full + "\r\n"}, written: syscall.EPIPE},
		full, connfail.Slower},
	{"full of nodes of a cluster", says("-ERR max number of clients + cluster connections reached\r\n"),
		"ERR max number of clients + cl", connfail.Slower},
	{"protected mode", &speaker{hasty: true, says: []string{"-" + denial + "\r\n"}}, "DENIED this Redis", connfail.Final},
	{"a word of control characters", says("-LOADING \x1b[2J\xff\x00\r\n"), "LOADING ?[2J??", connfail.Again},
	{"a web server", says("HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"),
		`no Redis there: the answer to PING begins with "HTTP/1.1 400 Bad Request"`, connfail.Again},
	{"another answer", says("+OK\r\n"), `no Redis there: the answer to PING begins with "+OK"`, connfail.Again},
	{"an empty line", says("\r\n"), `no Redis there: the answer to PING begins with ""`, connfail.Again},
	{"no end of the line", says(strings.Repeat("\x1bx", 5000)),
		`no Redis there: the answer to PING is longer than 4096 bytes and begins with "\x1bx`, connfail.Again},
	{"closed at once", &speaker{}, "no answer to PING: EOF", connfail.Again},
	{"closed in the middle", &speaker{says: []string{"+PON"}}, "no answer to PING: EOF", connfail.Again},
	{"gone without a word", &speaker{hasty: true, written: syscall.EPIPE}, "broken pipe", connfail.Again},
}

func TestARedisIsGreetedAsAnOperatorWould(t *testing.T) {
	for _, test := range greetings {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := *test.server
				conn := server.dial()
				err := abatenet.PingRedis(t.Context(), conn)
				conn.Close()
				synctest.Wait()
				if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.HasPrefix(err.Error(), test.err)) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				if rule, _ := connfail.Find(err); err != nil && rule.Opening != test.opening {
					t.Errorf("%v: %s, want %s", err, rule.Opening, test.opening)
				}
				if !server.hasty && server.heard != asked {
					t.Errorf("it was asked %q", server.heard)
				}
			})
		})
	}
}

// What the guard sees is what is dialled, and how it judges each attempt.
func TestTheGuardSeesWhatTheServerSays(t *testing.T) {
	up := says("+PONG\r\n")
	for _, test := range []struct {
		name    string
		servers []*speaker // the last one stays
		dials   int
		classes []abate.Class
		err     string
		own     bool // the error is Greet's own, not wrapped
	}{
		{"up", []*speaker{up}, 1, []abate.Class{abate.Success}, "", false},
		{"loading, then up", []*speaker{says("-" + loading + "\r\n"), up}, 2, []abate.Class{abate.Failure, abate.Success},
			"", false},
		{"loading for long", []*speaker{says("-" + loading + "\r\n")}, 3, []abate.Class{
			abate.Failure, abate.Failure, abate.Failure,
		}, loading, false},
		{"full, then not", []*speaker{says("-" + full + "\r\n"), up}, 2, []abate.Class{abate.Overload, abate.Success},
			"", false},
		{"protected mode", []*speaker{says("-" + denial + "\r\n"), up}, 1, []abate.Class{abate.Failure},
			"DENIED this Redis", true},
		{"silent, then up", []*speaker{says(), up}, 2, []abate.Class{abate.Failure, abate.Success}, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dialled []*speaker
				d := &abatenet.Dialer{Guard: guard(t, nil), Greet: abatenet.PingRedis,
					Dial: func(context.Context, string, string) (net.Conn, error) {
						s := *test.servers[min(len(dialled), len(test.servers)-1)]
						dialled = append(dialled, &s)
						return s.dial(), nil
					}}
				conn, classes, err := watched(t, d, "cache:6379")
				if len(dialled) != test.dials || len(classes) != len(test.classes) {
					t.Fatalf("%d connections, judged %v; want %d, judged %v", len(dialled), classes, test.dials, test.classes)
				}
				for i, class := range test.classes {
					if classes[i] != class {
						t.Errorf("attempt %d was judged %v, want %v", i+1, classes[i], class)
					}
				}
				var refusal interface{ RedisError() }
				if (err == nil) != (test.err == "") || err != nil &&
					(!errors.As(err, &refusal) || !strings.Contains(err.Error(), test.err)) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				if _, direct := err.(interface{ RedisError() }); direct != test.own {
					t.Errorf("the error is a %T", err)
				}
				synctest.Wait()
				for i, s := range dialled {
					if kept := conn != nil && i == len(dialled)-1; s.closed == kept {
						t.Errorf("connection %d of %d: closed %v", i+1, len(dialled), s.closed)
					}
				}
				if conn != nil {
					conn.Close()
				}
			})
		})
	}
}

// watched dials, and tells how each attempt was judged.
func watched(t *testing.T, d *abatenet.Dialer, addr string) (conn net.Conn, classes []abate.Class, err error) {
	ctx := abate.WithObserver(t.Context(), abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.AttemptEnded {
			classes = append(classes, e.Class)
		}
	}))
	conn, err = d.DialContext(ctx, "tcp", addr)
	return conn, classes, err
}

func TestASilentServerIsAskedUntilTheContextEnds(t *testing.T) {
	// not even the question is taken: a pipe has no buffer
	nobody := func() net.Conn { client, _ := net.Pipe(); return client }
	for _, dial := range []func() net.Conn{says().dial, says("+PON").dial, nobody} {
		synctest.Test(t, func(t *testing.T) {
			conn := dial()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			began := time.Now()
			if err := abatenet.PingRedis(ctx, conn); err != context.DeadlineExceeded || time.Since(began) != 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			conn.Close() // or its server is what synctest finds left
		})
	}
	synctest.Test(t, func(t *testing.T) {
		conn := says().dial()
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if err := abatenet.PingRedis(ctx, conn); err != context.Canceled {
			t.Error(err)
		}
		conn.Close()
	})
}

// A driver gets the connection as it was dialled: what the greeting needed is gone.
func TestAfterAGreetingTheConnectionIsTheDrivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		client, server := net.Pipe()
		go func() {
			_, _ = io.ReadFull(server, make([]byte, len(asked)))
			_, _ = io.WriteString(server, "+PONG\r\n")
			time.Sleep(time.Minute)
			_, _ = io.WriteString(server, "+OK\r\n")
		}()
		if err := abatenet.PingRedis(ctx, client); err != nil {
			t.Error(err)
		}
		cancel()
		answer := make([]byte, len("+OK\r\n"))
		if _, err := io.ReadFull(client, answer); err != nil || string(answer) != "+OK\r\n" {
			t.Errorf("%q, %v", answer, err)
		}
	})
}

// canned is a connection whose other side has said everything, and closed it.
type canned struct {
	net.Conn
	left  string
	piece int
}

func (c *canned) Write(p []byte) (int, error)   { return len(p), nil }
func (c *canned) SetDeadline(t time.Time) error { return nil }
func (c *canned) Read(p []byte) (int, error) {
	if c.left == "" {
		return 0, io.EOF
	}
	n := copy(p, c.left[:min(len(c.left), c.piece)])
	c.left = c.left[n:]
	return n, nil
}

func FuzzPingRedis(f *testing.F) {
	for _, test := range greetings {
		f.Add(strings.Join(test.server.says, ""), byte(len(test.name)))
	}
	f.Add("-\n", byte(0))
	f.Add("-ERR \xff\xfe "+strings.Repeat("\u2028\x00", 3000)+"\n", byte(255))
	f.Fuzz(func(t *testing.T, said string, piece byte) {
		err := abatenet.PingRedis(t.Context(), &canned{left: said, piece: 1 + int(piece)})
		line, _, whole := strings.Cut(said, "\n")
		if err == nil {
			if line = strings.TrimSuffix(line, "\r"); !whole || line != "+PONG" && !strings.HasPrefix(line, "-") {
				t.Fatalf("%q is a success", said)
			}
			return
		}
		text := err.Error()
		if strings.HasPrefix(said, "+PONG\r\n") || len(text) > 500 || strings.ContainsFunc(text, func(r rune) bool {
			return !unicode.IsPrint(r) || r == unicode.ReplacementChar
		}) {
			t.Fatalf("%q is the error %q", said, text)
		}
	})
}
