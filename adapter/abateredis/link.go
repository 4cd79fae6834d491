package abateredis

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
)

// link is the way to one Redis: connections, the guard in front of them, and what the last round trip came to.
type link struct {
	config  Config
	client  client // for what goes through the guard
	holders client // for those who hold idempotency keys: see Store.end
	guard   *abate.Guard
	lastErr atomic.Pointer[error] // not the fleet's: what was under way to another Redis may end later
}

// client is what is asked of a client. With redis.UniversalClient in its place, the linker keeps every method of each
// kind of client, and what they answer with.
type client interface {
	redis.Scripter
	Pipeline() redis.Pipeliner
	Pipelined(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error)
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
	Close() error
}

// dialTimeout is for connecting, which goes on beside the request that asked for it and whose timeout is
// Config.Timeout.
const dialTimeout = time.Second

// connect makes the clients. They connect when they are used first.
func connect(c Config) (*link, error) {
	guard, err := abate.New("redis", inbound.FleetPolicy())
	if err != nil {
		return nil, err
	}
	o, err := options(c)
	if err != nil {
		return nil, err
	}
	l := &link{config: c, guard: guard, client: dial(o)}
	// Holders wait longer than others. With connections of their own they keep nobody waiting, and nobody them.
	o.PoolTimeout = c.patience()
	l.holders = dial(o)
	return l, nil
}

// options say how to reach c's Redis. Retries are off, and so are a second dial and the announcements of managed
// services: nothing is sent that no budget knows of. A cluster follows one redirection, which is one round trip more
// after a slot has moved.
func options(c Config) (*redis.UniversalOptions, error) {
	credentials := func(context.Context) (string, string, error) {
		password, err := c.password()
		return c.Username, password, err
	}
	sentinelPassword := ""
	if c.Master != "" {
		var err error
		if sentinelPassword, err = c.password(); err != nil {
			return nil, err
		}
	}
	return &redis.UniversalOptions{
		Addrs: c.Addresses, MasterName: c.Master, IsClusterMode: c.Cluster, DB: c.Database,
		CredentialsProviderContext: credentials, SentinelUsername: c.Username, SentinelPassword: sentinelPassword,
		TLSConfig: c.secure(), Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaxRetries: -1, MaxRedirects: 1, DialerRetries: 1, DialTimeout: max(dialTimeout, c.Timeout),
		ReadTimeout: backstop, WriteTimeout: backstop, PoolTimeout: c.Timeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}, nil
}

func dial(options *redis.UniversalOptions) client {
	switch {
	case options.IsClusterMode:
	case options.MasterName != "":
		return redis.NewFailoverClient(options.Failover())
	default:
		return redis.NewClient(options.Simple())
	}
	o := options.Cluster()
	// else it asks for the list of all commands before the first one, for up to five seconds
	o.DisableRoutingPolicies = true
	return redis.NewClusterClient(o)
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.holders.Close()
}

// backstop is for what goes-on without a request's context. All that is asked has one, with a shorter time.
const backstop = 5 * time.Second

// key is the name of something in Redis. Whatever its parts are made of, it has a fixed length, and the braces make one
// hash tag of it.
func (l *link) key(id [16]byte, suffix string) string {
	text := make([]byte, 0, len(l.config.Prefix)+2+22+len(suffix))
	text = append(append(text, l.config.Prefix...), '{')
	text = base64.RawURLEncoding.AppendEncode(text, id[:])
	return string(append(append(text, '}'), suffix...))
}

// digest is the same for the same parts, and for no others: each is hashed behind its length.
func digest(parts ...string) (id [16]byte) {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	var sum [sha256.Size]byte
	copy(id[:], h.Sum(sum[:0]))
	return id
}
