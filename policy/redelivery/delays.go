package redelivery

import (
	"cmp"
	"math"
	"time"
)

// What the delay of a retry topic may be. Spring Kafka, uForwarder and NServiceBus all stop at 24 h: what waits longer
// is forgotten by people too.
const (
	shortest = 100 * time.Millisecond
	longest  = 24 * time.Hour
)

// Delays are the waits between the deliveries of one message: one less than it has deliveries. With the defaults of
// delay they are 30s, 5m, 30m. Whole milliseconds, as the names of topics are. It makes a new slice.
func (c Config) Delays() []time.Duration {
	c = c.WithDefaults()
	if len(c.Tiers) > 0 {
		delays := make([]time.Duration, len(c.Tiers))
		for i, d := range c.Tiers {
			delays[i] = whole(d)
		}
		return delays
	}
	if c.Delay <= 0 {
		return nil
	}
	delays := make([]time.Duration, c.Attempts-1)
	for i := range delays {
		d := float64(c.Delay) * math.Pow(c.Multiplier, float64(i))
		// min before the conversion: it may be too much for 64 bits
		delays[i] = whole(time.Duration(min(d, float64(c.MaxDelay))))
	}
	return delays
}

// Hops are the retry topics of c, in their order: its delays, those that follow each other and are equal taken
// together. It makes a new slice; a [Plan] keeps its own.
func (c Config) Hops() []Hop {
	var hops []Hop
	for _, d := range c.Delays() {
		if n := len(hops); n > 0 && hops[n-1].Delay == d {
			hops[n-1].Deliveries++
			continue
		}
		hops = append(hops, Hop{Delay: d, Deliveries: 1})
	}
	return hops
}

func whole(d time.Duration) time.Duration {
	return min(max(d.Round(time.Millisecond), shortest), longest)
}

// within is v, or the default if v is zero, moved into its range. What is not a number becomes the default.
func within[T cmp.Ordered](v, usual, low, high T) T {
	var zero T
	if v == zero || v != v {
		return usual
	}
	return min(max(v, low), high)
}

func word[T ~string](v, usual T) T {
	if v == "" {
		return usual
	}
	return v
}
