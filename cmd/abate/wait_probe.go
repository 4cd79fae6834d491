package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/abate-go/abate"
)

// connectProbe opens a connection and says nothing on it. standard is the port of an address without one; empty: it needs one.
func connectProbe(standard string) func(*waitAddress) (func(context.Context) error, error) {
	return func(a *waitAddress) (func(context.Context) error, error) {
		hosts, err := a.list(standard)
		switch {
		case err != nil:
			return nil, err
		case len(hosts) > 1:
			return nil, errors.New("several hosts: write a target for each")
		case a.scheme == "tcp" && (a.user != "" || strings.Trim(a.path, "/") != ""):
			return nil, errors.New("tcp:// is a host and a port and nothing else")
		}
		return dialProbe("tcp", hosts[0]), nil
	}
}

func socketProbe(a *waitAddress) (func(context.Context) error, error) {
	if a.hosts != "" || a.path == "" || a.path == "/" {
		return nil, errors.New("write the path of the socket with three slashes, for example unix:///run/server.sock")
	}
	return dialProbe("unix", a.path), nil
}

func dialProbe(network, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// postgresProbe logs in and asks SELECT 1.
func postgresProbe(a *waitAddress) (func(context.Context) error, error) {
	if _, err := a.list("5432"); err != nil && a.hosts != "" { // no host: a socket, or what the environment says
		return nil, err
	}
	config, err := pgconn.ParseConfig(a.raw)
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

// redisProbe logs in and sends PING.
func redisProbe(a *waitAddress) (func(context.Context) error, error) {
	hosts, err := a.list("6379")
	if err != nil {
		return nil, err
	}
	if len(hosts) > 1 {
		return nil, errors.New("several hosts: write a target for each")
	}
	options, err := redis.ParseURL(a.raw)
	if err != nil {
		return nil, withoutAddress(err)
	}
	// What is tried again, and when, is decided above.
	options.MaxRetries, options.DialerRetries, options.PoolSize, options.MinIdleConns = -1, 1, 1, 0
	options.Protocol, options.DisableIdentity, options.ContextTimeoutEnabled = 2, true, true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	redis.SetLogger(quietRedis{})
	return func(ctx context.Context) error {
		client := redis.NewClient(options)
		return until(ctx, func() { client.Close() }, func() error { return client.Ping(ctx).Err() })
	}, nil
}

// until asks, and closes the client then, or as soon as ctx ends: go-redis and franz-go read from a silent server, or dial, until
// a time limit of their own, whatever becomes of ctx.
func until(ctx context.Context, end func(), ask func() error) error {
	end = sync.OnceFunc(end)
	defer end()
	stop := context.AfterFunc(ctx, end)
	defer stop()
	err := ask()
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // and not that the client is closed
	}
	return err
}

// withoutAddress takes off an error what net/url puts before it: the address is known, and may have a password.
func withoutAddress(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

// httpProbe sends GET. 2xx is there, and so is 3xx: who redirects is at work.
func httpProbe(a *waitAddress) (func(context.Context) error, error) {
	if _, err := a.list("80"); err != nil {
		return nil, err
	}
	at, err := url.Parse(a.raw)
	if err != nil {
		return nil, errors.New("it cannot be read: write " + escapes)
	}
	return func(ctx context.Context) error {
		// A new client for each attempt: no connection of the last one, no answer through somebody else's proxy.
		client := &http.Client{
			Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		if err != nil {
			return abate.Permanent(err)
		}
		req.Header.Set("User-Agent", "abate-wait")
		resp, err := client.Do(req)
		if err != nil {
			return withoutAddress(err)
		}
		defer resp.Body.Close()
		_, _ = io.CopyN(io.Discard, resp.Body, 4096) // only its status counts
		return judgeStatus(resp)
	}, nil
}

// judgeStatus is nil for a server that is at work.
func judgeStatus(resp *http.Response) error {
	if resp.StatusCode/100 == 2 || resp.StatusCode/100 == 3 {
		return nil
	}
	err := fmt.Errorf("it answered %s", strings.TrimSpace(resp.Status))
	if pause := askedPause(resp.Header.Get("Retry-After")); pause > 0 {
		return abate.RetryAfter(fmt.Errorf("%w and asked for a pause of %v", err, pause), pause)
	}
	return err
}

// askedPause reads Retry-After: seconds, at most a day, or a date. What cannot be read is none.
func askedPause(field string) time.Duration {
	if n, err := strconv.ParseUint(field, 10, 63); err == nil {
		return time.Duration(min(n, 86400)) * time.Second
	}
	if date, err := http.ParseTime(field); err == nil {
		return max(0, time.Until(date)).Round(time.Second)
	}
	return 0
}
