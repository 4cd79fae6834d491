package discovery

import (
	"context"
	"encoding/json"
	"time"
)

// Look looks once.
func (c *Config) Look() ([]Endpoint, time.Duration, error) {
	if c.Type == "srv" {
		return c.lookSRV(context.Background())
	}
	return c.lookDNS(context.Background())
}

// Pace is a pace: waits after answers that are good for so long, after none for -1.
func Pace(rnd uint64, ttls ...time.Duration) (waits []time.Duration) {
	p := pace{shortest: shortest}
	for _, ttl := range ttls {
		if ttl < 0 {
			waits = append(waits, p.afterFailure(rnd))
		} else {
			waits = append(waits, p.after(ttl, rnd))
		}
	}
	return waits
}

// OfSlices reads slices in JSON and makes the list.
func OfSlices(data []byte, port, zone string) ([]Endpoint, error) {
	var all []*endpointSlice
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	named := map[string]*endpointSlice{}
	for _, s := range all {
		if s != nil {
			named[s.Metadata.Name] = s
		}
	}
	return endpointsOf(named, port, zone)
}

// TTL reads messages of a name server, and says what the least TTL is.
func TTL(messages ...[]byte) time.Duration {
	var l lifetime
	for _, m := range messages {
		l.read(m)
	}
	return l.get()
}
