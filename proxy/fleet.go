package proxy

import (
	"fmt"
	"sync/atomic"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/adapter/abateredis/trial"
	"github.com/abate-go/abate/policyfile"
)

// instances is what this proxy shares with others through the Redis of the policy file: nothing while the file has none.
type instances struct {
	fleet    atomic.Pointer[abateredis.Fleet]
	embedded string // address of the Redis in this process, "" without one
	stop     func() // ends it
}

// adjust has a protection use what instances share. It is a hook of the policy file.
func (s *instances) adjust(name string, p *abate.Protection) {
	if f := s.fleet.Load(); f != nil {
		f.AdjustProtection(name, p)
	}
}

// followRedis goes over to the Redis that the file names now. mu of the entrances is held.
func (p *Proxy) followRedis() error {
	s, c := &p.instances, p.policies.Redis()
	fleet := s.fleet.Load()
	if !c.Enabled() {
		s.close()
		return nil
	}
	config, err := p.redisConfig(c)
	if err == nil && fleet != nil {
		err = fleet.Reconfigure(config)
	}
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	if fleet == nil {
		if fleet, err = abateredis.Open(config); err != nil {
			return fmt.Errorf("redis: %w", err)
		}
		s.fleet.Store(fleet)
		if err := p.policies.Reload(); err != nil { // so that adjust sees every protection
			return fmt.Errorf("redis: %w", err)
		}
	}
	for _, name := range p.policies.Names() {
		if g, ok := p.policies.Lookup(name); ok {
			fleet.Share(g)
		}
	}
	return nil
}

// redisConfig is the file's section as abateredis knows it. It starts the embedded Redis, and ends it.
func (p *Proxy) redisConfig(c policyfile.Redis) (config abateredis.Config, err error) {
	s := &p.instances
	config = abateredis.Config{
		Addresses: c.Addresses, Master: c.Master, Cluster: c.Cluster, Username: c.Username, PasswordFile: c.PasswordFile, Database: c.Database,
		Prefix: c.Prefix, Timeout: c.Timeout, TLS: c.TLS, Observe: p.metrics.ObserveRedis, OnFallback: p.metrics.RedisFallback,
	}
	switch {
	case !c.Embedded:
		s.endEmbedded()
		return config, nil
	case s.embedded == "":
		if s.embedded, s.stop, err = trial.Start(); err != nil {
			return config, err
		}
	}
	config.Addresses = []string{s.embedded}
	return config, nil
}

// close ends the sharing.
func (s *instances) close() {
	if f := s.fleet.Swap(nil); f != nil {
		f.Close()
	}
	s.endEmbedded()
}

func (s *instances) endEmbedded() {
	if s.embedded != "" {
		s.stop()
		s.embedded = ""
	}
}

// redisReport is the Redis in /gates.
type redisReport struct {
	Instances int    `json:"instances"`
	Away      bool   `json:"away"`
	Error     string `json:"error,omitempty"`
}

// report is nil while nothing is shared.
func (s *instances) report() *redisReport {
	f := s.fleet.Load()
	if f == nil {
		return nil
	}
	state := f.State()
	r := &redisReport{Instances: state.Instances, Away: state.Away()}
	if state.Err != nil {
		r.Error = state.Err.Error()
	}
	return r
}
