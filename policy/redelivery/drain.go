package redelivery

import "time"

// Drain bounds the load that a backlog puts on a service that has just come back.
type Drain struct {
	// Disabled lets a backlog drain as fast as the other limits allow.
	Disabled bool `yaml:"disabled"`
	// Factor bounds the attempts during the drain, live messages included, as a multiple of what the service handled in
	// its busiest 10 s of the 10 min before the trouble. Range 1 to 100. Zero means the default, 1.2.
	Factor float64 `yaml:"factor" range:"1..100" example:"1.2"`
	// RampUp is how long the drain takes to grow from a tenth of its limit to all of it. Range 1ms to 1h. Zero means
	// the default, 10s.
	RampUp time.Duration `yaml:"rampUp" range:"1ms..1h" example:"10s"`
	// MaxRate bounds the drain, in messages per second, even where nothing is known of the time before. Zero: only the
	// learnt limit counts. Range 0 to 1000000000.
	MaxRate float64 `yaml:"maxRate" range:"0..1000000000" example:"500"`
}

// WithDefaults returns d with defaults filled in and numbers outside their range moved to the nearest end. Calling it
// twice changes nothing.
func (d Drain) WithDefaults() Drain {
	d.Factor = within(d.Factor, 1.2, 1, 100)
	d.RampUp = within(d.RampUp, 10*time.Second, time.Millisecond, time.Hour)
	d.MaxRate = within(d.MaxRate, 0, 0, 1e9)
	return d
}
