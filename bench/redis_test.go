package bench_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	needsredis "github.com/abate-go/abate/internal/needs/redis"
	"github.com/abate-go/abate/policy/ratelimit"
)

// BenchmarkRedisLimit is one decision of a rate limit that is kept in Redis, by 64 goroutines at once (mode=par) or
// one. key=hot: all ask for one key, whose limit lets all pass; key=over: its limit is far below what is asked for, and
// over-% is how much more was admitted than burst + limit × time; key=cold: every request is for a key of its own, so
// that only a round trip can decide.
func BenchmarkRedisLimit(b *testing.B) {
	addr := needsredis.Start(b).Addr()
	fleet, err := abateredis.Open(abateredis.Config{Addresses: []string{addr}, Timeout: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer fleet.Close()
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64})
	defer client.Close()
	peer := redis_rate.NewLimiter(client)

	for _, row := range []struct {
		key   string
		limit int
	}{{"hot", 1_000_000_000}, {"over", 100_000}} {
		ours := fleet.Limiter(row.key, inbound.ArrivalLimit{Config: ratelimit.Config{
			Limit: ratelimit.Rate{Tokens: float64(row.limit), Per: time.Second}, Burst: row.limit}})
		name := "key=" + row.key + "/impl="
		limited(b, name+"abate", row.limit, func() bool { return fleetTake(ours, "tenant") })
		theirs := redis_rate.Limit{Rate: row.limit, Burst: row.limit, Period: time.Second}
		limited(b, name+"redis_rate", row.limit, func() bool { return peerTake(b, peer, "tenant "+row.key, theirs) })
	}

	cold := fleet.Limiter("cold", inbound.ArrivalLimit{
		Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 100, Per: time.Second}},
	})
	var next atomic.Int64
	seq(b, "key=cold/impl=abate", shared(func() error {
		fleetTake(cold, strconv.FormatInt(next.Add(1), 10))
		return nil
	}))
	seq(b, "key=cold/impl=redis_rate", shared(func() error {
		peerTake(b, peer, strconv.FormatInt(next.Add(1), 10), redis_rate.PerSecond(100))
		return nil
	}))
	seq(b, "key=cold/impl=floor", shared(func() error { return client.Ping(context.Background()).Err() }))
}

// fleetTake is what a gate does.
func fleetTake(l *abateredis.Limiter, key string) bool {
	d, ok := l.TryTake(core.Now(), key, 1)
	if !ok {
		d = l.Take(context.Background(), key, 1)
	}
	return d.Allowed
}

func peerTake(b *testing.B, l *redis_rate.Limiter, key string, limit redis_rate.Limit) bool {
	r, err := l.Allow(context.Background(), key, limit)
	if err != nil {
		b.Error(err)
		return false
	}
	return r.Allowed > 0
}

// limited runs decide from 64 goroutines and reports what was admitted above a full bucket and what came in meanwhile.
func limited(b *testing.B, name string, limit int, decide func() bool) {
	began := time.Now() // the bucket may have been full then, and never again
	var admitted atomic.Int64
	b.Run(name+"/mode=par", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			n := int64(0)
			for pb.Next() {
				if decide() {
					n++
				}
			}
			admitted.Add(n)
		})
		most := float64(limit) * (1 + time.Since(began).Seconds())
		b.ReportMetric(max(0, 100*(float64(admitted.Load())/most-1)), "over-%")
	})
}
