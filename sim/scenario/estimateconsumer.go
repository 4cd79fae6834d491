package scenario

import (
	"math"

	"github.com/abate-go/abate/policy/redelivery"
)

// What a consumer takes.
const (
	messageBytes   = 130 // a message that is not done
	laneBytes      = 600 // a partition, and per place of its window
	placeBytes     = 70
	laneEvents     = 4    // to begin one delivery: wake-ups that find the lane stopped, and those of the drain
	shortestHold   = 0.1  // seconds that a message is held when nobody says how long
	holdsPerTier   = 4    // deliveries from one retry topic that do not count while a circuit is open
	refusedAtFirst = 6    // deliveries that are refused until they come only every
	refusedEvery   = 5.0  // seconds
	laneLooks      = 10.0 // per second, while a circuit is half-open
)

// consumer turns the messages of a fleet that consumes into deliveries, and adds what it has in memory.
func (e *estimator) consumer(f *Fleet, load *traffic) {
	if !f.Consumes() || len(f.Calls) != 1 {
		return
	}
	policy := e.v.PolicyOf(f.Name, f.Calls[0].To)
	c := policy.Kafka.WithDefaults()
	lanes, window, each := float64(f.Topic.Partitions), 1.0, 0.0
	if c.Enabled() {
		hops := redelivery.NewPlan(c).Hops()
		each = 1 + refusedAtFirst + e.whole/refusedEvery
		for _, h := range hops {
			each += float64(h.Deliveries)
		}
		if n := len(hops); n > 0 {
			each += holdsPerTier * (1 + e.whole/hops[n-1].Delay.Seconds() + float64(n))
		}
		lanes *= float64(1 + len(hops))
		window = float64(c.Window)
	} else { // in place, one at a time
		each = 1 + math.Min(lanes*e.whole/f.Topic.Again().Seconds()/math.Max(load.total, 1),
			e.whole/f.Topic.Again().Seconds())
	}
	e.events += load.total + lanes*laneLooks*e.whole + float64(load.total*each*laneEvents) + e.whole + 1
	e.bytes += float64(load.total*messageBytes) + lanes*(laneBytes+float64(math.Min(window, load.total)*placeBytes))
	load.total *= each
	load.peak *= each
}
