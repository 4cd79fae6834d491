package redelivery

import "time"

// Flood says when dead letters are so many that the service is to blame and not the messages: then they wait in the
// last retry topic instead.
type Flood struct {
	// Disabled lets every message that is given up become a dead letter at once. An operator sets it to let those that
	// are held go: it holds from the next reload.
	Disabled bool `yaml:"disabled"`
	// Share is the part of the messages that end in a window, handled or given up, that may be given up; more, beyond
	// chance, is a flood. Range 0.0001 to 1. Zero means the default, 0.02.
	Share float64 `yaml:"share" range:"0.0001..1" example:"0.02"`
	// Letters is how many messages of a window must be given up for a flood: fewer are dead letters at once, whatever
	// their share. Range 1 to 1000000. Zero means the default, 10.
	Letters int `yaml:"letters" range:"1..1000000" example:"10"`
	// Window is what is looked at. Range 1s to 1h. Zero means the default, 1m.
	Window time.Duration `yaml:"window" range:"1s..1h" example:"1m"`
	// MaxHold is how long after its first failure a message is held at most; then it is a dead letter, flood or not. It
	// is not above outage: the broker would delete what is held. Range 1s to 720h. Zero means the default, 24h or
	// outage.
	MaxHold time.Duration `yaml:"maxHold" range:"1s..720h" example:"24h"`
}

// WithDefaults returns f with defaults filled in and numbers outside their range moved to the nearest end. Calling it
// twice changes nothing.
func (f Flood) WithDefaults() Flood {
	f.Share = within(f.Share, 0.02, 0.0001, 1)
	f.Letters = within(f.Letters, 10, 1, 1_000_000)
	f.Window = within(f.Window, time.Minute, time.Second, time.Hour)
	f.MaxHold = within(f.MaxHold, 24*time.Hour, time.Second, 720*time.Hour)
	return f
}
