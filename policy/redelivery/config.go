package redelivery

import (
	"slices"
	"time"
)

// Config says how messages that fail are delivered again: the key kafka of a service in the policy file. The zero
// Config is off: set tiers, or delay and attempts.
type Config struct {
	// Disabled switches redelivery off.
	Disabled bool `yaml:"disabled"`

	// Tiers are the delays of the retry topics, in their order. A message that fails is delivered again after each of
	// them, then it is a dead letter. Each 100ms to 24h, ascending, at most 20.
	Tiers []time.Duration `yaml:"tiers" range:"100ms..24h" example:"[30s, 5m, 30m]"`
	// Delay is, instead of tiers, the delay before the second delivery; multiplier and maxDelay make the others from
	// it. Range 100ms to 24h.
	Delay time.Duration `yaml:"delay" range:"100ms..24h" example:"30s"`
	// Multiplier is what each delay is longer than the one before. Range 1 to 100. Zero means the default, 10.
	Multiplier float64 `yaml:"multiplier" range:"1..100" example:"10"`
	// MaxDelay is the longest delay. Deliveries with the same delay share one retry topic. Range 100ms to 24h. Zero
	// means the default, 30m or delay if that is longer.
	MaxDelay time.Duration `yaml:"maxDelay" range:"100ms..24h" example:"30m"`
	// Attempts is how often a message is delivered at most, the first time included. Range 2 to 100. Zero means the
	// default, 4. Only with delay.
	Attempts int `yaml:"attempts" range:"2..100" example:"4"`
	// Timeout is how old a message may get, counted from its own timestamp: a failure after that makes it a dead letter
	// whatever tiers are left. Zero: no limit.
	Timeout time.Duration `yaml:"timeout" range:"0s..720h" example:"24h"`

	// DLTStrategy says what becomes of a message after its last delivery: dead-letter puts it into the dead-letter
	// topic, retry-last delivers it from the last retry topic until it succeeds, drop forgets it (it is counted and
	// logged). Empty means dead-letter.
	DLTStrategy DLTStrategy `yaml:"dltStrategy" enum:"dead-letter|retry-last|drop" example:"dead-letter"`
	// RetryErrors lists the classes of errors that are worth another delivery, * stands for anything; all others go
	// straight to the dead-letter topic. Empty: all.
	RetryErrors []string `yaml:"retryErrors" example:"[\"*TimeoutError\", unavailable]"`
	// NeverRetryErrors lists the classes of errors that go straight to the dead-letter topic, whatever retryErrors says.
	NeverRetryErrors []string `yaml:"neverRetryErrors" example:"[\"*json.SyntaxError\", card-declined]"`

	// Naming says how topics are called: abate (payments-retry-30s, payments-dlq) or spring (payments-retry-30000,
	// payments-dlt). Empty means abate.
	Naming Naming `yaml:"naming" enum:"abate|spring" example:"spring"`
	// RetrySuffix stands between the topic and the delay. Empty means "-retry".
	RetrySuffix string `yaml:"retrySuffix" example:"-retry"`
	// DLTSuffix ends the name of the dead-letter topic. Empty means "-dlq", with the naming spring "-dlt".
	DLTSuffix string `yaml:"dltSuffix" example:"-dlq"`
	// GroupInNames puts the consumer group into the names of the retry topics and the dead-letter topic:
	// payments-billing-retry-30s. Needed when several groups read one topic, else each gets what the others failed at.
	GroupInNames bool `yaml:"groupInNames"`

	// Concurrency is how many messages of one partition are handled at once. Range 1 to 1000. Zero means the default, 1.
	Concurrency int `yaml:"concurrency" range:"1..1000" example:"16"`
	// Window is how far, in messages, a partition may get ahead of its oldest unfinished one. 32 MiB of messages end
	// it, too. Range 1 to 100000. Zero means the default, 10000 (for retry topics, too).
	Window int `yaml:"window" range:"1..100000" example:"10000"`
	// Order says what order is kept: unordered, key (messages with the same key one after the other, as long as none is
	// retried) or park-key (the same, and while a message is being retried those with its key wait behind it). Empty
	// means unordered, or with a concurrency of 1 the order of the partition as long as none is retried.
	Order Order `yaml:"order" enum:"unordered|key|park-key" example:"park-key"`
	// HandlerTimeout is how long one delivery may take, in-process retries included. Range 1ms to 24h. Zero means the
	// default, 5m.
	HandlerTimeout time.Duration `yaml:"handlerTimeout" range:"1ms..24h" example:"30s"`
	// ExactlyOnce forwards a message and commits its offset in one transaction. Readers of the topics need
	// isolation.level=read_committed.
	ExactlyOnce bool `yaml:"exactlyOnce"`
	// PoisonBatch says what becomes of a batch that cannot be decoded at all: stop keeps the partition there and says
	// so, dead-letter writes its place into the dead-letter topic and goes on behind it. Empty means stop.
	PoisonBatch PoisonBatch `yaml:"poisonBatch" enum:"stop|dead-letter" example:"stop"`

	// Outage is how long an outage of the consumers the retry topics must survive: their retention is their delay and
	// this. Range 1h to 8760h. Zero means the default, 168h.
	Outage time.Duration `yaml:"outage" range:"1h..8760h" example:"168h"`
	// DLTRetention is how long dead letters are kept. Range 1h to 87600h. Zero means the default, 720h.
	DLTRetention time.Duration `yaml:"dltRetention" range:"1h..87600h" example:"720h"`
	// MaxTrace bounds the stack trace in a message's headers, in bytes. Range 1 to 65536. Zero means the default, 4096.
	MaxTrace int `yaml:"maxTrace" range:"1..65536" example:"4096"`

	// Flood says when dead letters are so many that they are held.
	Flood Flood `yaml:"flood"`

	// Drain bounds how fast the backlog of an outage is worked off.
	Drain Drain `yaml:"drain"`
}

// DLTStrategy says what becomes of a message after its last delivery.
type DLTStrategy string

// The strategies.
const (
	DeadLetters DLTStrategy = "dead-letter"
	RetryLast   DLTStrategy = "retry-last"
	DropLast    DLTStrategy = "drop"
)

// Naming is a way to name retry topics.
type Naming string

// The namings.
const (
	NamingAbate  Naming = "abate"
	NamingSpring Naming = "spring"
)

// Order is the order that a consumer keeps.
type Order string

// The orders.
const (
	Unordered Order = "unordered"
	ByKey     Order = "key"
	ParkKey   Order = "park-key"
)

// PoisonBatch says what becomes of a batch that nobody can decode.
type PoisonBatch string

// What becomes of it.
const (
	PoisonStop       PoisonBatch = "stop"
	PoisonDeadLetter PoisonBatch = "dead-letter"
)

// Enabled reports whether there is anything to do.
func (c Config) Enabled() bool { return !c.Disabled && (len(c.Tiers) > 0 || c.Delay > 0) }

// Clone is c with lists of its own.
func (c Config) Clone() Config {
	c.Tiers, c.RetryErrors, c.NeverRetryErrors = slices.Clone(c.Tiers), slices.Clone(c.RetryErrors),
		slices.Clone(c.NeverRetryErrors)
	return c
}

// Always returns a function that returns a copy of c, always the same one: for a consumer whose configuration does not
// change while it runs.
func (c Config) Always() func() *Config {
	c = c.Clone()
	return func() *Config { return &c }
}

// WithDefaults returns c with defaults filled in and numbers outside their range moved to the nearest end. A Config
// without tiers and without a delay stays as it is. Calling it twice changes nothing.
func (c Config) WithDefaults() Config {
	if len(c.Tiers) == 0 && c.Delay <= 0 {
		return c
	}
	if len(c.Tiers) == 0 {
		c.Multiplier = within(c.Multiplier, 10, 1, 100)
		c.MaxDelay = max(within(c.MaxDelay, 30*time.Minute, shortest, longest), c.Delay)
		c.Attempts = within(c.Attempts, 4, 2, 100)
	}
	c.DLTStrategy = word(c.DLTStrategy, DeadLetters)
	c.Naming = word(c.Naming, NamingAbate)
	c.RetrySuffix = word(c.RetrySuffix, "-retry")
	if c.DLTSuffix == "" {
		c.DLTSuffix = "-dlq"
		if c.Naming == NamingSpring {
			c.DLTSuffix = "-dlt"
		}
	}
	c.Concurrency = within(c.Concurrency, 1, 1, 1000)
	c.Window = within(c.Window, 10_000, 1, 100_000)
	c.Order = word(c.Order, Unordered)
	c.HandlerTimeout = within(c.HandlerTimeout, 5*time.Minute, time.Millisecond, 24*time.Hour)
	c.PoisonBatch = word(c.PoisonBatch, PoisonStop)
	c.Outage = within(c.Outage, 168*time.Hour, time.Hour, 8760*time.Hour)
	c.DLTRetention = within(c.DLTRetention, 720*time.Hour, time.Hour, 87600*time.Hour)
	c.MaxTrace = within(c.MaxTrace, 4096, 1, 64<<10)
	c.Drain = c.Drain.WithDefaults()
	c.Flood = c.Flood.WithDefaults()
	c.Flood.MaxHold = min(c.Flood.MaxHold, c.Outage) // the last retry topic keeps nothing for longer
	return c
}
