package remedy

import (
	"fmt"
	"math"
	"time"

	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/scenario"
)

// gateOptions are the changes of the gates in front of a service.
func gateOptions(p *place) []option {
	if !p.mayGate {
		return nil
	}
	var all []option
	now, was := p.gate.Shed.WithDefaults(), "no gate"
	if p.gated {
		was = said(p.gate.Shed, now.Enabled())
	} else {
		all = append(all, option{part: "gate", name: "default", was: was, step: 1.5, lines: []line{{}}})
	}
	shedding := func(name string, step float64, c shed.Config) {
		if p.gated && c.WithDefaults() == now {
			return
		}
		all = append(all, option{part: "gate", name: name, was: was, step: step,
			lines: []line{section("shed", c, p.gate.Shed.Disabled)}})
	}
	if p.gated {
		shedding("bbr", 1, shed.Config{Concurrency: shed.BBR})
	}
	for _, a := range []shed.Algorithm{shed.Gradient, shed.Vegas, shed.AIMD} {
		shedding(string(a), 1.9, shed.Config{Concurrency: a})
	}
	if n := p.service.Workers; n > 0 && n <= 1_000_000 {
		shedding("workers", 1.8, shed.Config{Concurrency: shed.Fixed, MaxConcurrency: n})
		shedding("workers, no queue", 1.9, shed.Config{Concurrency: shed.Fixed, MaxConcurrency: n, NoQueue: true})
	}
	if p.callers > 1 {
		shedding("a caller's share", 2, shed.Config{Concurrency: shed.BBR, MaxCallerShare: 0.5})
	}
	if p.gated && now.Enabled() {
		all = append(all, option{part: "gate", name: "off", was: was, step: 2, lines: []line{off("shed")}})
	}
	return append(append(all, arrivalLimits(p)...), arrivalTimes(p)...)
}

// arrivalLimits bound how many requests a gate lets in: by what its replica can do.
func arrivalLimits(p *place) []option {
	var all []option
	now := p.gate.RateLimit
	for _, share := range []float64{0.95, 0.8} {
		rate, ok := rateOf(share * p.capacity / float64(max(p.replicas, 1)))
		if !ok || now.Enabled() && now.Limit == rate {
			continue
		}
		c := now
		c.Disabled, c.Limit = false, rate
		c.Config = ratelimit.Config{Limit: rate, Burst: max(1, int(math.Ceil(rate.PerSecond()/5)))}
		all = append(all, option{part: "gate rateLimit", name: fmt.Sprintf("%v of the capacity", share),
			was: said(now, now.Enabled()), step: 2 - share/2,
			lines: []line{section[inbound.ArrivalLimit]("rateLimit", c, now.Disabled)}})
	}
	return all
}

// arrivalTimes bound how long an arriving request may take.
func arrivalTimes(p *place) []option {
	if p.gate.Timeout > 0 || p.patience == 0 {
		return nil
	}
	return []option{{part: "gate timeout", name: "patience", was: "off", step: 2,
		lines: []line{word("timeout", short(neat(p.patience)))}}}
}

// queueChange is a change of a service's queue, which no policy file has.
type queueChange struct {
	service string
	to      scenario.Queue
}

// queueOptions are changes of a service's queue.
func queueOptions(x *scenario.Service) []option {
	if x.Queue.None || x.Workers == 0 || x.ServiceTime.IsZero() {
		return nil
	}
	var all []option
	was, bound := "unbounded", time.Duration(0)
	switch q := x.Queue; {
	case q.Limit > 0:
		was = fmt.Sprintf("limit: %d", q.Limit)
		bound = time.Duration(float64(q.Limit) / (x.Capacity() / float64(max(x.Replicas, 1))) * float64(time.Second))
	case q.Work > 0:
		was, bound = "work: "+q.Work.String(), q.Work
	}
	add := func(part, name, was string, step float64, change func(*scenario.Queue)) {
		to := x.Queue
		change(&to)
		all = append(all, option{part: part, name: name, was: was, step: step,
			lines: []line{section("queue", to, false)}, queue: &queueChange{x.Name, to}})
	}
	for _, d := range []time.Duration{
		time.Second, 500 * time.Millisecond, 250 * time.Millisecond, 100 * time.Millisecond,
	} {
		if d > x.ServiceTime.Mean()/2 && (bound == 0 || d < bound) {
			step := 2 + away(float64(d), float64(time.Second))
			if bound > 0 {
				step = away(float64(d), float64(bound))
			}
			add("queue", d.String(), was, step, func(q *scenario.Queue) { q.Limit, q.Work = 0, d })
		}
	}
	if x.Queue.Order == "" || x.Queue.Order == scenario.FIFO {
		add("queue order", "codel", "fifo", 2, func(q *scenario.Queue) { q.Order = scenario.CoDel })
	}
	if !x.Queue.DropExpired {
		add("queue dropExpired", "true", "false", 1.5, func(q *scenario.Queue) { q.DropExpired = true })
	}
	return all
}
