package abateredis

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// Config says which Redis a fleet shares. Everything but Addresses may be left out.
type Config struct {
	// Addresses are host:port of the Redis; with Master, of the Sentinels; with Cluster, of some of its nodes.
	Addresses []string
	// Master is the name under which Sentinels know the master. Set, Addresses are those of the Sentinels.
	Master string
	// Cluster says that Addresses are nodes of a Redis Cluster.
	Cluster bool
	// Username and PasswordFile are the credentials, also for Sentinels. The file is read again for each connection to
	// Redis, so that a password can be changed while the program runs, but only once for the Sentinels; spaces and
	// newlines around it do not count.
	Username, PasswordFile string
	// Database is the number of the database, 0 to 15 usually. A Cluster has only 0.
	Database int
	// Prefix begins all keys and the channel's name. Instances with one prefix on one Redis are one fleet. Empty means
	// "abate:".
	Prefix string
	// Timeout is how long a request may be held up by Redis at most, connecting included. 1ms to 10s; 0 means the
	// default, 20ms. The end of a request with an idempotency key may take longer: see Store.
	Timeout time.Duration
	// Replicas is how many replicas must have a step of an idempotency key before it counts: see Store. 0 to 100; 0,
	// the default, waits for none, and a failover can lose keys.
	Replicas int
	// TLS connects with TLS, by the machine's certificate authorities.
	TLS bool
	// TLSConfig says how, if there is more to say. It implies TLS.
	TLSConfig *tls.Config

	// Observe is called after each round trip: what it was for (take, refill, heartbeat, budget, publish, idempotency),
	// how long, and the error if there was one. It is not called for what was not sent because Redis is away. It must
	// not block.
	Observe func(op string, took time.Duration, err error)
	// OnFallback is called for each decision made without Redis: rateLimit, retryBudget or idempotency. It must not block.
	OnFallback func(what string)
}

const defaultTimeout = 20 * time.Millisecond

// withDefaults returns c with what was left out filled in.
func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, "abate:")
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	return c
}

// patience is how long somebody waits who holds an idempotency key.
func (c Config) patience() time.Duration { return max(c.Timeout, time.Second) }

// secure is how to connect with TLS, nil for without.
func (c Config) secure() *tls.Config {
	if c.TLS && c.TLSConfig == nil {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return c.TLSConfig
}

// check joins an error for each mistake.
func (c Config) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("abateredis: "+format, args...)) }
	if len(c.Addresses) == 0 {
		wrong("no addresses; name the Redis as host:port, for example 127.0.0.1:6379")
	}
	for _, a := range c.Addresses {
		if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
			wrong("address %q is not host:port; write for example 127.0.0.1:6379", a)
		}
	}
	switch {
	case c.Master != "" && c.Cluster:
		wrong("both master and cluster are set; Sentinels look after one master, a Cluster looks after itself: choose one")
	case len(c.Addresses) > 1 && c.Master == "" && !c.Cluster:
		wrong("%d addresses without master or cluster; name one Redis, or set master (Sentinel) or cluster", len(c.Addresses))
	case c.Cluster && c.Database != 0:
		wrong("database %d of a cluster; a cluster has only database 0", c.Database)
	}
	if c.Database < 0 {
		wrong("database %d; it is a number from 0", c.Database)
	}
	if c.Replicas < 0 || c.Replicas > 100 {
		wrong("%d replicas is out of range; allowed: 0 to 100", c.Replicas)
	}
	if c.Timeout < 0 || c.Timeout > 0 && c.Timeout < time.Millisecond || c.Timeout > 10*time.Second {
		wrong("timeout %v is out of range; allowed: 1ms to 10s", c.Timeout)
	}
	if strings.ContainsAny(c.Prefix, "{}") || len(c.Prefix) > 100 {
		wrong("prefix %.100q has braces, which choose the node of a cluster, or more than 100 bytes", c.Prefix)
	}
	if c.Username != "" && c.PasswordFile == "" {
		wrong("username %q without passwordFile: nobody logs in without a password", c.Username)
	}
	if _, err := c.password(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c Config) password() (string, error) {
	if c.PasswordFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("abateredis: the password file: %w", err)
	}
	password := strings.TrimSpace(string(text))
	if password == "" {
		return "", fmt.Errorf("abateredis: the password file %s is empty; leave it out if Redis asks for no password",
			c.PasswordFile)
	}
	return password, nil
}
