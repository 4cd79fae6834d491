package proxy

import (
	"errors"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policyfile"
)

// Sharing is what instances of a proxy share through a Redis. Package sharing has it. It is an interface so that a
// program whose policy file names no Redis need not contain a Redis client.
type Sharing interface {
	// AdjustProtection has a protection use what instances share.
	AdjustProtection(name string, p *inbound.Protection)
	// Share has a guard share what its policy says that instances share.
	Share(g *abate.Guard)
	// Reconfigure goes over to the Redis of this section of the policy file.
	Reconfigure(c policyfile.Redis) error
	// State returns how many instances there are, whether Redis is away, and its last error.
	State() (instances int, away bool, err error)
	// Close ends the sharing.
	Close()
}

// SharingMetrics count what becomes of what is shared: they are those of the proxy. abateprom.Metrics are some too.
type SharingMetrics interface {
	// ObserveRedis counts one command to Redis. op names its kind, one of a few.
	ObserveRedis(op string, took time.Duration, err error)
	// RedisFallback counts a decision that was made without Redis. what names what was decided, one of a few.
	RedisFallback(what string)
}

// OpenSharing begins to share through the Redis of a policy file, which it counts in the metrics.
type OpenSharing func(c policyfile.Redis, m SharingMetrics) (Sharing, error)

// ErrNoRedis is in the error of New and Reload if the policy file names a Redis and Config.Sharing is nil.
var ErrNoRedis = errors.New("this program has no Redis client")

// ErrNoEmbeddedRedis is in their error if it says embedded: true, and Config.Sharing has no Redis to embed.
var ErrNoEmbeddedRedis = errors.New("this program has no Redis to embed: name one with addresses")
