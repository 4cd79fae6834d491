// Package sharing is what instances of a proxy share through a Redis.
package sharing

import (
	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy"
)

// Embedded starts a Redis in this process, and returns its address and what ends it: trial.Start is one.
type Embedded func() (addr string, stop func(), err error)

// Redis is for Config.Sharing of a proxy. embedded starts what embedded: true in the policy file asks for; nil refuses
// that.
func Redis(embedded Embedded) proxy.OpenSharing {
	return func(c policyfile.Redis, m proxy.SharingMetrics) (proxy.Sharing, error) {
		s := &shared{metrics: m, embedded: embedded}
		config, err := s.config(c)
		if err == nil {
			s.Fleet, err = abateredis.Open(config)
		}
		if err != nil {
			s.endEmbedded()
			return nil, err
		}
		return s, nil
	}
}

// shared is a fleet, and the Redis in this process if there is one.
type shared struct {
	*abateredis.Fleet
	metrics  proxy.SharingMetrics
	embedded Embedded
	addr     string // of the Redis in this process, "" without one
	stop     func() // ends it
}

// Reconfigure goes over to the Redis of this section.
func (s *shared) Reconfigure(c policyfile.Redis) error {
	config, err := s.config(c)
	if err != nil {
		return err
	}
	return s.Fleet.Reconfigure(config)
}

// State returns how many instances there are, whether Redis is away, and its last error.
func (s *shared) State() (instances int, away bool, err error) {
	state := s.Fleet.State()
	return state.Instances, state.Away(), state.Err
}

// Close ends the sharing.
func (s *shared) Close() {
	s.Fleet.Close()
	s.endEmbedded()
}

// config is the file's section as abateredis knows it. It starts the embedded Redis, and ends it.
func (s *shared) config(c policyfile.Redis) (config abateredis.Config, err error) {
	config = abateredis.Config{
		Addresses: c.Addresses, Master: c.Master, Cluster: c.Cluster, Username: c.Username, PasswordFile: c.PasswordFile,
		Database: c.Database, Prefix: c.Prefix, Timeout: c.Timeout, Replicas: c.Replicas, TLS: c.TLS,
		Observe: s.metrics.ObserveRedis, OnFallback: s.metrics.RedisFallback,
	}
	switch {
	case !c.Embedded:
		s.endEmbedded()
		return config, nil
	case s.embedded == nil:
		return config, proxy.ErrNoEmbeddedRedis
	case s.addr == "":
		if s.addr, s.stop, err = s.embedded(); err != nil {
			return config, err
		}
	}
	config.Addresses = []string{s.addr}
	return config, nil
}

func (s *shared) endEmbedded() {
	if s.addr != "" {
		s.stop()
		s.addr = ""
	}
}
