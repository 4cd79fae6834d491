package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/population"
	"github.com/abate-go/abate/sim/scenario"
)

// sampledClients is how many clients the exact runs beside a cohort have.
const sampledClients = 100_000

// populationRuns prepares runs of a fleet too large for guards of its own. With the method cohort the first run is the
// cohort's, at full size; the others are exact runs of a part of the clients against the same part of the capacity, so
// that a verdict knows how much chance there is.
func populationRuns(s *scenario.Scenario, v *scenario.Variant) (run, error) {
	full, err := populationConfig(s, v)
	if err != nil {
		return nil, err
	}
	part, parts := full, 1
	if s.Clients[0].Method == scenario.Cohort && full.Clients > sampledClients {
		parts = (full.Clients + sampledClients - 1) / sampledClients
		part.Clients /= parts
		part.Capacity /= float64(parts)
		if part.QueueLimit > 0 {
			part.QueueLimit = max(1, part.QueueLimit/parts)
		}
	}
	return func(seed uint64, detail bool, stop func() bool) (*engine.Record, error) {
		if s.Clients[0].Method == scenario.Cohort && detail {
			curve, err := population.Cohort(full)
			if err != nil {
				return nil, err
			}
			return populationRecord(s, v, curve, seed, 1), nil
		}
		curve, err := population.Exact(part, seed, stop)
		if errors.Is(err, population.ErrStopped) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return populationRecord(s, v, curve, seed, parts), nil
	}, nil
}

// populationConfig says a scenario in the words of a population.
func populationConfig(s *scenario.Scenario, v *scenario.Variant) (population.Config, error) {
	f := &s.Clients[0]
	service := &s.ServicesOf(v)[0]
	p := v.PolicyOf(f.Name, service.Name)
	if err := population.Supported(p.Policy); err != nil {
		return population.Config{}, fmt.Errorf("variant %s: policy of %s: %w", v.Name, service.Name, err)
	}
	c := population.Config{
		Clients: f.Once + f.Users, Within: f.Within, Think: f.Think.Mean(),
		Retry: p.Retry, AttemptTimeout: p.AttemptTimeout, Patience: f.Patience,
		Capacity: service.Capacity(), ServiceTime: service.ServiceTime.Mean(), QueueLimit: -1, Duration: s.Duration,
	}
	if p.Timeout > 0 && (c.Patience == 0 || p.Timeout < c.Patience) {
		c.Patience = p.Timeout
	}
	switch q := service.Queue; {
	case q.None:
		c.QueueLimit = 0
	case q.Limit > 0:
		c.QueueLimit = q.Limit * max(service.Replicas, 1)
	case q.Work > 0:
		c.QueueLimit = int(q.Work.Seconds() * service.Capacity())
	}
	for i := range s.Faults {
		x := &s.Faults[i]
		c.Outages = append(c.Outages, population.Outage{
			From: x.At, To: x.At + x.For, Hang: x.Mode != scenario.Refuse && x.Mode != scenario.Fail,
		})
	}
	return c, c.Validate()
}

// populationRecord is a population's curve as an engine's record. A population does not know which answer belongs to
// which moment of asking, so goodput is by the time of the answer.
func populationRecord(s *scenario.Scenario, v *scenario.Variant, c *population.Curve, seed uint64,
	parts int) *engine.Record {
	r := engine.Empty(s, v, seed)
	r.Scale *= parts
	r.Events = c.Events
	f, service := &r.Fleets[0], &r.Services[0]
	for i := range c.Offered {
		b := min(int(time.Duration(i)*c.Slot/r.Bin), len(f.Offered)-1)
		f.Offered[b] += carry(&c.Offered[i], c.Offered, i)
		f.Answered[b] += carry(&c.Served[i], c.Served, i)
		f.Failed[b] += carry(&c.Failed[i], c.Failed, i)
		attempts := carry(&c.Attempts[i], c.Attempts, i)
		service.Arrived[b] += attempts
		r.Attempts += int64(attempts)
		w := r.WindowAt(time.Duration(i) * c.Slot)
		service.Peak[w] = max(service.Peak[w], uint32(float64(attempts)*(10*time.Millisecond).Seconds()/c.Slot.Seconds()))
	}
	for b := range f.Answered {
		f.Good[b], f.Bad[b], service.Served[b] = f.Answered[b], f.Failed[b], f.Answered[b]
		if service.Arrived[b] > f.Offered[b] {
			service.Retries[b] = service.Arrived[b] - f.Offered[b]
		}
	}
	return r
}

// carry rounds one member of a series down and moves the rest to the next, so that nothing is lost.
func carry(value *float64, series []float64, i int) uint32 {
	whole := uint32(*value)
	if i+1 < len(series) {
		series[i+1] += *value - float64(whole)
	}
	return whole
}

// cohortCheck compares the cohorts of a scenario with an exact run of fewer clients; nil where there are no cohorts.
func cohortCheck(s *scenario.Scenario, v *scenario.Variant, seed uint64) (*CohortCheck, error) {
	if !s.IsPopulation() || s.Clients[0].Method != scenario.Cohort {
		return nil, nil
	}
	c, err := populationConfig(s, v)
	if err != nil {
		return nil, err
	}
	agreement, err := population.Check(c, seed)
	if err != nil {
		return nil, err
	}
	return &CohortCheck{Error: agreement.Error, Clients: agreement.Clients}, nil
}
