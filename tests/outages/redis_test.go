//go:build unix

package outages_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatenet"
	"github.com/abate-go/abate/internal/needs"
	needsredis "github.com/abate-go/abate/internal/needs/redis"
)

// redisSides are a client of go-redis with its defaults, and one wired as docs/connections.md says.
func redisSides(t *testing.T, address string) (plain, guarded *side) {
	t.Helper()
	client := func(name string, change func(*redis.Options)) *side {
		dials := new(atomic.Int64)
		options := &redis.Options{Addr: address, Dialer: counted(dials)}
		change(options)
		c := redis.NewClient(options)
		t.Cleanup(func() { c.Close() })
		return newSide(name, func(ctx context.Context) error {
			if err := c.Get(ctx, "greeting").Err(); err != redis.Nil { // that there is none is an answer
				return err
			}
			return nil
		}, dials)
	}
	guard, err := abate.New("redis", abate.ConnectionPolicy())
	if err != nil {
		t.Fatal(err)
	}
	redis.SetLogger(silence{})
	return client("plain", func(*redis.Options) {}), client("guarded", func(o *redis.Options) {
		o.Dialer = (&abatenet.Dialer{Guard: guard, Dial: o.Dialer, Greet: abatenet.PingRedis}).DialContext
		o.MaxRetries, o.DialerRetries = -1, 1
	})
}

// silence is a logger: that connections cannot be opened is what is counted.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// away crashes a Redis under load for so long, and returns what both sides lost.
func redisAway(t *testing.T, d time.Duration) (plain, guarded *side) {
	needs.Alone(t)
	server := needsredis.Start(t)
	plain, guarded = redisSides(t, server.Addr())
	var up atomic.Int64
	stop := make(chan struct{})
	wait := load(stop, "queries", queriesPerSecond, &up, plain, guarded)
	pass(t, time.Second)
	plain.dials.Store(0)
	guarded.dials.Store(0)
	server.Crash()
	pass(t, d)
	p, g := plain.dials.Load(), guarded.dials.Load()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	up.Store(time.Now().UnixNano())
	pass(t, 4*time.Second)
	close(stop)
	wait()
	plain.dials.Store(p)
	guarded.dials.Store(g)
	return plain, guarded
}

func TestARedisThatIsAwayForASecondCostsNoMoreThanWithoutAGuard(t *testing.T) {
	plain, guarded := redisAway(t, time.Second)
	compare(t, plain, guarded, "queries", 15)
}

// When as many dials have failed as its pool has places, go-redis fails all queries and dials once a second by itself,
// on both sides: which of them notices first that the server is up is chance, up to a second of queries.
func TestARedisThatIsAwayIsSeldomDialled(t *testing.T) {
	plain, guarded := redisAway(t, 5*time.Second)
	compare(t, plain, guarded, "queries", 15+queriesPerSecond)
	if p, g := plain.dials.Load(), guarded.dials.Load(); g*10 > p {
		t.Errorf("%d dials in an outage of 5 s, without us %d", g, p)
	}
}
