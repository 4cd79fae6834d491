package proxy

import (
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/policyfile"
)

// instances is what this proxy shares with others through the Redis of the policy file: nothing while the file has
// none.
type instances struct {
	plane   *plane
	metrics *metrics.Metrics
	fleet   atomic.Pointer[Sharing] // nil while nothing is shared
	section policyfile.Redis        // that it was opened or reconfigured with; of follow
}

// adjust has a protection use what instances share. It is a hook of the policy file.
func (s *instances) adjust(name string, p *inbound.Protection) {
	if f := s.fleet.Load(); f != nil {
		(*f).AdjustProtection(name, p)
	}
}

// follow goes over to the Redis that the file names now. It is called by one goroutine at a time.
func (s *instances) follow() error {
	p := s.plane
	c := p.policies.Redis()
	fleet := s.fleet.Load()
	changed := !reflect.DeepEqual(c, s.section)
	switch {
	case !c.Enabled():
		s.close()
		return nil
	case p.config.Sharing == nil:
		return fmt.Errorf("redis: %w", ErrNoRedis)
	case fleet != nil:
		if err := (*fleet).Reconfigure(c); err != nil {
			return fmt.Errorf("redis: %w", err)
		}
	default:
		opened, err := p.config.Sharing(c, s.metrics)
		if err != nil {
			return fmt.Errorf("redis: %w", err)
		}
		fleet = &opened
		s.fleet.Store(fleet)
		changed = true
	}
	if changed {
		if err := p.policies.Reload(); err != nil { // so that adjust sees every protection
			return fmt.Errorf("redis: %w", err)
		}
		s.section = c
	}
	for _, name := range p.policies.Names() {
		if g, ok := p.policies.Lookup(name); ok {
			(*fleet).Share(g)
		}
	}
	s.warnOfFailovers(&c)
	return nil
}

// warnOfFailovers says so if keys are where a failover can forget them.
func (s *instances) warnOfFailovers(c *policyfile.Redis) {
	p := s.plane
	for _, name := range p.policies.GateNames() {
		g, ok := p.policies.Gate(name)
		if !ok || !c.CanForgetKeys() {
			continue
		}
		if k := g.Describe().Idempotency; k.Fleet && k.Enabled() {
			p.config.Log.Warn("redis.replicas is 0: a failover can forget idempotency keys, "+
				"and what was done under them is done again; "+
				"set it to the number of replicas of each master", "gate", name)
			return
		}
	}
}

func (s *instances) close() {
	if f := s.fleet.Swap(nil); f != nil {
		(*f).Close()
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
	n, away, err := (*f).State()
	r := &redisReport{Instances: n, Away: away}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}
