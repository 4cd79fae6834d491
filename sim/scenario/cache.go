package scenario

import "github.com/abate-go/abate/sim/distribution"

// Cache makes a service one that answers from memory, as memcached does. Each request asks for one key. Where it is not
// there, the call has missed, and its caller asks the next service of its else; what that answers is put into the cache
// at once. Keys are dealt to the replicas; a replica that restarts, or is flushed, has lost its own.
type Cache struct {
	// Keys is how many different things callers ask for, all replicas together.
	Keys int `yaml:"keys" range:"1..5000000" example:"10000"`
	// Skew is how much more often some keys are asked for than others: the k-th in proportion to 1/k^skew (Zipf's law).
	// Default: 0, all alike; many caches see 0.7 to 1.
	Skew float64 `yaml:"skew" range:"0..3" example:"0.9"`
	// Capacity is how many keys one replica holds; the one that was not asked for longest makes room. Default: all.
	Capacity int `yaml:"capacity" range:"1..5000000" example:"2000"`
	// TTL is how long a key is held. Spread, such as "uniform 50s..70s", keys do not expire together. Default: for ever.
	TTL distribution.Distribution `yaml:"ttl" example:"60s"`
	// Cold caches begin empty. Others hold what is asked for most often when the run begins.
	Cold bool `yaml:"cold" example:"true"`
	// Coalesce lets one caller fetch a key that is missing; all others that miss it meanwhile wait for what it brings, as
	// with leases. If it fails, the next one tries.
	Coalesce bool `yaml:"coalesce" example:"true"`
	// ForgetsOnError takes a key out of the cache when a caller could not fetch it, though another one may just have put
	// it there.
	ForgetsOnError bool `yaml:"forgetsOnError" example:"true"`
}

// IsCache reports whether the service is a cache.
func (s *Service) IsCache() bool { return s.Cache.Keys > 0 }
