package postgrestest_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate"
)

// starting is the door of a PostgreSQL that starts: it says so to the first n who knock, and lets the others in.
func starting(t *testing.T, server string, n int32) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var left atomic.Int32
	left.Store(n)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if left.Add(-1) >= 0 {
				refuse(c)
				continue
			}
			go pass(c, server)
		}
	}()
	return l.Addr().String()
}

// refuse answers the startup message with a 57P03, in version 3 of the protocol.
func refuse(c net.Conn) {
	defer c.Close()
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(size[:]))-4); err != nil {
		return
	}
	const fields = "SFATAL\x00VFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00"
	_, _ = c.Write(append(binary.BigEndian.AppendUint32([]byte{'E'}, 4+uint32(len(fields))), fields...))
}

// pass joins c and the server until one of them ends.
func pass(c net.Conn, server string) {
	defer c.Close()
	to, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(to, c); to.Close() }()
	_, _ = io.Copy(c, to)
}

func TestAServerThatIsStartingIsWaitedFor(t *testing.T) {
	dsn := running(t).DSN()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	door := starting(t, u.Host, 2)
	db, d, g := guarded(t, strings.Replace(dsn, u.Host, door, 1), func(p *abate.Policy) { unpaced(p); p.Backoff = "none" })
	if err := db.PingContext(t.Context()); err != nil || d.n.Load() != 3 {
		t.Errorf("asked %d times, error %v", d.n.Load(), err)
	}
	if state := g.State().Breaker.State.String(); state != "closed" {
		t.Errorf("the circuit is %s", state)
	}
}
