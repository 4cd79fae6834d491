package redis

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// Loading starts a server that loads its data for d or a little longer, and says LOADING meanwhile.
func Loading(t testing.TB, d time.Duration) *Server {
	t.Helper()
	const each = 2 * time.Millisecond // for a key; it looks for questions every 1,024 bytes, which are a few keys
	s := Start(t, fmt.Sprint("key-load-delay ", each.Microseconds()), "loading-process-events-interval-bytes 1024",
		"rdbcompression no")
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const fill, answer = "EVAL \"for i = 1, %d do redis.call('set', i, string.rep('x', 200)) end\" 0\r\nSAVE\r\n",
		"$-1\r\n+OK\r\n"
	if _, err := fmt.Fprintf(conn, fill, d/each); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(answer))
	if n, err := io.ReadFull(conn, got); string(got) != answer {
		t.Fatalf("filling the Redis at %s: %q, %v", s.Addr(), got[:n], err)
	}
	s.Crash()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}
