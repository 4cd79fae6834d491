// A service with a pool of connections to Redis or Valkey, which comes back gently when the server does.
//
//	REDIS_URL=redis://127.0.0.1:6379 go run ./examples/redis
//
// Start it before the server, or restart the server while it runs: it waits for the server at its start, and says "ok"
// once a second. While the server is away it says why it cannot ask, and hardly knocks; when the server is back, one
// connection goes first, and "ok" follows within seconds. The others come at a pace. Ctrl-C ends it.
package main

import (
	"cmp"
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatenet"
	"github.com/abate-go/abate/startup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	options := must(redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379")))
	guard := must(abate.New("redis", abate.ConnectionPolicy()))
	// For TLS, rediss://, set Dial to the DialContext of a tls.Dialer.
	dialer := abatenet.Dialer{Guard: guard, Greet: abatenet.PingRedis}
	// The guard decides what is retried.
	options.Dialer, options.MaxRetries, options.DialerRetries = dialer.DialContext, -1, 1
	client := redis.NewClient(options)
	defer client.Close()

	policy := startup.Policy()
	policy.Classify = abatenet.Classify // a wrong password ends the start at once
	must(startup.Connect(ctx, "redis", policy, func(c context.Context) (any, error) { return nil, client.Ping(c).Err() }))
	for ctx.Err() == nil {
		if err := client.Ping(ctx).Err(); err != nil {
			slog.Warn("failed", "error", err)
		} else {
			slog.Info("ok")
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
