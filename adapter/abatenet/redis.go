package abatenet

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/connfail"
)

// longestReply is how many bytes an answer to PING may have. The longest that Redis sends is DENIED, which has 1,067.
const longestReply = 4096

// longestRefusal is how many bytes of it are kept in an error.
const longestRefusal = 200

// PingRedis is a Greet for Redis and Valkey: it sends PING on the new connection and reads the answer, which is one
// round trip. A server that does nothing for anybody is an error, which has a method RedisError as those of go-redis
// have: it is loading its data (LOADING), held up by a script (BUSY), a replica that has lost its primary and may not
// answer (MASTERDOWN), has no connection left (ERR max number of clients reached) or talks to nobody from elsewhere
// (DENIED). All else that it may say instead of PONG is the driver's business, and the server is up: it asks for a
// password first (NOAUTH), lets nobody ask PING before the login (NOPERM), takes no writes (MISCONF), knows no PING.
func PingRedis(ctx context.Context, conn net.Conn) error {
	interrupted := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	err := pingRedis(conn)
	if !interrupted() {
		return ctx.Err()
	}
	return err
}

func pingRedis(conn net.Conn) error {
	// A server without a connection to spare has said so and closed by now: then it is the answer that counts, not the
	// write.
	_, unsent := conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
	line, err := readLine(conn)
	switch {
	case err != nil && unsent != nil:
		return unsent
	case err != nil:
		return err
	case string(line) == "+PONG":
		return nil
	case len(line) == 0 || line[0] != '-':
		return fmt.Errorf("no Redis there: the answer to PING begins with %q", line[:min(len(line), 40)])
	}
	refusal := refused(line[1:])
	switch _, sign := connfail.Find(refusal); sign {
	case "LOADING", "BUSY", "MASTERDOWN", "ERR max number of clients", "DENIED":
		return refusal
	}
	return nil
}

// readLine reads as far as the end of a line, and returns it without.
func readLine(conn net.Conn) ([]byte, error) {
	var space [longestReply]byte
	for n := 0; n < len(space); {
		more, err := conn.Read(space[n:])
		if at := bytes.IndexByte(space[n:n+more], '\n'); at >= 0 {
			return bytes.TrimSuffix(space[:n+at], []byte{'\r'}), nil
		}
		if n += more; err != nil {
			return nil, fmt.Errorf("no answer to PING: %w", err)
		}
	}
	return nil, fmt.Errorf("no Redis there: the answer to PING is longer than %d bytes and begins with %q", longestReply,
		space[:40])
}

// redisRefusal is what a Redis said instead of an answer.
type redisRefusal string

// refused makes an error of what a server said, whoever it is: not too long, and printable.
func refused(said []byte) redisRefusal {
	said = said[:min(len(said), longestRefusal)]
	return redisRefusal(strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(said), "?")))
}

func (r redisRefusal) Error() string { return string(r) }

// RedisError marks what a Redis said, as it does in go-redis.
func (redisRefusal) RedisError() {}
