// Package clients asks the databases that "abate wait" waits for, with their own clients.
package clients

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/abate-go/abate/cmd/internal/address"
)

// Postgres logs in and asks SELECT 1.
func Postgres(a *address.Address) (func(context.Context) error, error) {
	if _, err := a.List("5432"); err != nil && a.Hosts != "" { // no host: a socket, or what the environment says
		return nil, err
	}
	config, err := pgconn.ParseConfig(a.Raw)
	if err != nil {
		return nil, err
	}
	for key := range config.RuntimeParams { // those of pools and of pgx, for which the server would turn us away
		if strings.HasPrefix(key, "pool_") || key == "default_query_exec_mode" || strings.HasSuffix(key, "_cache_capacity") {
			delete(config.RuntimeParams, key)
		}
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "abate wait"
	}
	return func(ctx context.Context) error {
		conn, err := pgconn.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "SELECT 1").ReadAll()
		_ = conn.Close(ctx) // the answer is there
		return err
	}, nil
}

// quietRedis keeps go-redis from writing to standard error by itself.
type quietRedis struct{}

func (quietRedis) Printf(context.Context, string, ...any) {}

// quiet sets the logger once: go-redis reads it without a lock, also after the client that reads it was closed.
var quiet = sync.OnceFunc(func() { redis.SetLogger(quietRedis{}) })

// Redis logs in and sends PING.
func Redis(a *address.Address) (func(context.Context) error, error) {
	hosts, err := a.List("6379")
	if err != nil {
		return nil, err
	}
	if len(hosts) > 1 {
		return nil, errors.New("several hosts: write a target for each")
	}
	options, err := redis.ParseURL(a.Raw)
	if err != nil {
		return nil, address.WithoutAddress(err)
	}
	// What is tried again, and when, is decided above.
	options.MaxRetries, options.DialerRetries, options.PoolSize, options.MinIdleConns = -1, 1, 1, 0
	options.Protocol, options.DisableIdentity, options.ContextTimeoutEnabled = 2, true, true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	quiet()
	return func(ctx context.Context) error {
		client := redis.NewClient(options)
		return address.Until(ctx, func() { client.Close() }, func() error { return client.Ping(ctx).Err() })
	}, nil
}

// Probers are those of this package, by scheme.
func Probers() map[string]address.Prober {
	return map[string]address.Prober{"postgres": Postgres, "postgresql": Postgres, "redis": Redis, "rediss": Redis}
}
