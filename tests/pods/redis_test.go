//go:build unix

package pods_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatenet"
	needsredis "github.com/abate-go/abate/internal/needs/redis"
)

// openRedis is a pod's pool of connections to Redis.
func openRedis(o order, seen *tally) (query, error) {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		seen.dialled()
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			seen.refused(err)
			return nil, err
		}
		return &heard{TCPConn: conn.(*net.TCPConn), seen: seen}, nil
	}
	options := &redis.Options{Addr: o.Address, PoolSize: pool, Protocol: 2, DisableIdentity: true, Dialer: dial}
	if o.Guarded {
		guard, err := abate.New("redis", abate.ConnectionPolicy())
		if err != nil {
			return nil, err
		}
		options.Dialer = (&abatenet.Dialer{Guard: guard, Dial: dial, Greet: abatenet.PingRedis}).DialContext
		options.MaxRetries, options.DialerRetries = -1, 1 // the guard decides what is tried again
	}
	redis.SetLogger(silence{})
	client := redis.NewClient(options)
	return func(ctx context.Context) error {
		if err := client.Get(ctx, "greeting").Err(); err != redis.Nil { // that there is none is an answer
			return err
		}
		return nil
	}, nil
}

// heard is a connection that counts as refused when what comes first is an error: a Redis without a connection to spare
// accepts one more, says so and closes it. All else is the driver's: it also looks at the socket itself.
type heard struct {
	*net.TCPConn
	seen *tally
	any  bool
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.TCPConn.Read(p)
	if !h.any && (n > 0 || err != nil) {
		h.any = true
		switch {
		case n > 0 && p[0] == '-':
			said, _, _ := strings.Cut(string(p[1:n]), "\r")
			h.seen.refused(errors.New(said))
		case n == 0:
			h.seen.refused(err)
		}
	}
	return n, err
}

// silence is a logger: that connections cannot be opened is what is counted here.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// redisServer is a Redis that fleets are deployed on.
type redisServer struct {
	t *testing.T
	*needsredis.Server
}

func (s redisServer) crash() { s.Crash() }

func (s redisServer) start() time.Time {
	s.t.Helper()
	if err := s.Start(); err != nil {
		s.t.Fatal(err)
	}
	return time.Now()
}

func TestPodsComeBackGentlyToRedis(t *testing.T) {
	plan := thePlan(t)
	s := redisServer{t, needsredis.Start(t)}
	plan.compare(t, s, order{Kind: "redis", Address: s.Addr()})
}
