package kafkadrill

import (
	"fmt"
	"time"
)

// Config is what is run. Take Default and change it.
type Config struct {
	// Brokers are addresses of a Kafka to run on, host:port; the topics that the drill makes there are deleted at its
	// end. Empty: a fake inside this program.
	Brokers []string
	// Rate is how many messages a second are written to each act's topic, 10 to 2000.
	Rate float64
	// Partitions of the topics, 1 to 100.
	Partitions int
	// Workers of each service, and ServiceTime, what one request takes a worker. Together they are its capacity.
	Workers     int
	ServiceTime time.Duration
	// Places is how many requests may wait in the service; more are refused.
	Places int
	// Before, Outage and After are how long the service works, fails, and works again: 2s, 1s and 2s at least.
	Before, Outage, After time.Duration
	// Within is how long after the outage the guarded act may take until nothing is left.
	Within time.Duration
	// MostLoad is what the guarded act may ask of the service after the outage, in its busiest second, as a multiple of
	// the busiest before.
	MostLoad float64
	// Seed of the moments at which messages are written.
	Seed uint64
	// Progress, if not nil, is told each second how it goes.
	Progress func(Progress)
}

// Default is the drill that nobody has changed. It takes about a minute.
func Default() Config {
	return Config{
		Rate: 100, Partitions: 5, Workers: 15, ServiceTime: 100 * time.Millisecond, Places: 900,
		Before: 6 * time.Second, Outage: 6 * time.Second, After: 46 * time.Second, Within: 46 * time.Second,
		MostLoad: 1.5, Seed: 1,
	}
}

// Capacity is how many requests per second a service can answer.
func (c Config) Capacity() float64 { return float64(c.Workers) / c.ServiceTime.Seconds() }

// length is how long messages are written.
func (c Config) length() time.Duration { return c.Before + c.Outage + c.After }

// most of the capacity that may be used while all is well.
const mostUsed = 0.85

// Problems returns everything about c that cannot be run, one sentence each; none is fine.
func (c Config) Problems() []string {
	var list []string
	refuse := func(ok bool, format string, args ...any) {
		if !ok {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	refuse(c.Rate >= 10 && c.Rate <= 2000, "rate: %v is out of range; allowed: 10 to 2000 messages per second", c.Rate)
	refuse(c.Partitions >= 1 && c.Partitions <= 100, "partitions: %d is out of range; allowed: 1 to 100", c.Partitions)
	refuse(c.Workers >= 1 && c.ServiceTime > 0, "workers: %d of %v are no capacity; allowed: 1 or more, of more than 0s",
		c.Workers, c.ServiceTime)
	refuse(c.Before >= 2*time.Second, "before: %v is too short to know what is normal; allowed: 2s or more", c.Before)
	refuse(c.Outage >= time.Second, "outage: %v is too short; allowed: 1s or more", c.Outage)
	refuse(c.After >= 2*time.Second, "after: %v is too short to see what comes back; allowed: 2s or more", c.After)
	refuse(c.Within <= c.After, "within: %v is longer than what is run after the outage, %v", c.Within, c.After)
	if len(list) == 0 {
		refuse(c.Rate <= mostUsed*c.Capacity(), "rate: %v/s is more than %v of what the service can do, %.4g/s: it would "+
			"be in trouble without any outage; lower it or add workers",
			c.Rate, mostUsed, c.Capacity())
	}
	return list
}
