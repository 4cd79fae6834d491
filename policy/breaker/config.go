package breaker

import (
	"cmp"
	"math"
	"time"
)

// Mode says what the breaker does with its decisions.
type Mode string

const (
	// Enforce rejects what the breaker decides to reject. The empty Mode means the same.
	Enforce Mode = "enforce"
	// Shadow decides and reports, but rejects nothing: for watching a new policy before it bites.
	Shadow Mode = "shadow"
	// ForcedOpen rejects every call until the breaker is configured otherwise. It lets no probe through.
	ForcedOpen Mode = "forcedOpen"
)

// Kind says how a breaker decides.
type Kind string

const (
	// Adaptive learns how the dependency answers, opens when it has stopped to, and comes back as fast as it does.
	Adaptive Kind = "adaptive"
	// Thresholds opens at numbers that somebody has chosen, and comes back by the clock.
	Thresholds Kind = "thresholds"
)

// WhileOpen says what becomes of a call that meets a circuit that is not closed.
type WhileOpen string

const (
	// Hold lets it wait, within its own time, for the dependency to come back.
	Hold WhileOpen = "hold"
	// Refuse refuses it at once.
	Refuse WhileOpen = "refuse"
)

// Config describes one circuit breaker. The zero Config is off and lets every call pass: set Kind to Adaptive, or at
// least one of FailureThreshold, FailureRateThreshold and SlowCallRateThreshold, which make it a breaker of the kind
// Thresholds. Several of them may be set; any of them opens.
type Config struct {
	// Disabled switches the breaker off: every call passes and nothing is counted.
	Disabled bool `yaml:"disabled"`

	// Kind is adaptive, which needs no numbers, or thresholds, which goes by the numbers below. A number makes it
	// thresholds, and a rampUp of 2s and a failureRateThreshold of 0.5 come with it, unless there are others.
	Kind Kind `yaml:"kind" enum:"adaptive|thresholds" example:"adaptive"`

	// WhileOpen says what becomes of calls while the circuit is not closed: hold lets them wait for the next probe that
	// succeeds, no longer than their attempt timeout and their deadline; refuse ends them at once. Kind adaptive only.
	// Empty means hold, but refuse where waiting would use up what the caller has little of: a permit of the bulkhead, or
	// a worker. Calls that have failed while nothing answers wait for a sign of life, or do not, by the same rule.
	WhileOpen WhileOpen `yaml:"whileOpen" enum:"hold|refuse" example:"refuse"`

	// Mode is enforce (the default), shadow (decide and report, reject nothing) or forcedOpen
	// (reject everything until reconfigured).
	Mode Mode `yaml:"mode" enum:"enforce|shadow|forcedOpen" example:"shadow"`

	// Fleet shares findings with the other instances, through the Redis of the policy file. When one instance opens its
	// breaker, so do those that have not themselves seen that the dependency works. Each instance closes by its own
	// probes.
	Fleet bool `yaml:"fleet"`

	// FailureThreshold opens the breaker after this many failures in a row. Range 0 to 1000000. Zero: not used.
	FailureThreshold int `yaml:"failureThreshold" range:"0..1000000" example:"5"`

	// FailureRateThreshold opens the breaker when this share of the calls in the sliding window failed.
	// A fraction, 0.5 is 50 %. Range 0 to 1. Zero: not used.
	FailureRateThreshold float64 `yaml:"failureRateThreshold" range:"0..1" example:"0.5"`

	// SlowCallRateThreshold opens the breaker when this share of the calls in the sliding window took
	// slowCallDurationThreshold or longer. Calls still running after that time count as slow while they hang.
	// A fraction, 0.5 is 50 %. Range 0 to 1. Zero: not used.
	SlowCallRateThreshold float64 `yaml:"slowCallRateThreshold" range:"0..1" example:"0.8"`

	// SlowCallDurationThreshold is how long a call takes at least to count as slow. It matters only together with
	// slowCallRateThreshold. Range 1ms to 24h. Zero means the default, 1s.
	SlowCallDurationThreshold time.Duration `yaml:"slowCallDurationThreshold" range:"1ms..24h" example:"1s"`

	// MinimumNumberOfCalls is how many calls the window must hold before a rate counts. The rate of a window with room
	// for fewer calls counts once the window is full. During ramp-up a quarter of it, rounded up, is enough. Range 1 to
	// 1000000. Zero means the default, 20.
	MinimumNumberOfCalls int `yaml:"minimumNumberOfCalls" range:"1..1000000" example:"20"`

	// SlidingWindow is what the rates are computed over: "100" is the last 100 calls, "10s" the calls of
	// the last ten seconds (in steps of a tenth). 1 to 1000000 calls or 10ms to 24h. Empty means the default, 10s.
	SlidingWindow Window `yaml:"slidingWindow" example:"10s"`

	// WaitDurationInOpenState is how long a breaker that has just opened rejects everything before it lets
	// probes through. Range 1ms to 1h. Zero means the default, 1s.
	WaitDurationInOpenState time.Duration `yaml:"waitDurationInOpenState" range:"1ms..1h" example:"1s"`

	// WaitDurationMultiplier makes the wait longer by this factor each time the breaker opens again without
	// having recovered fully in between. Range 1 to 10; 1 keeps the wait constant. Zero means the default, 2.
	WaitDurationMultiplier float64 `yaml:"waitDurationMultiplier" range:"1..10" example:"2"`

	// MaxWaitDurationInOpenState is the longest wait, jitter included. Below waitDurationInOpenState it has
	// no effect: that wait is then the longest. Range 1ms to 24h. Zero means the default, 10s.
	MaxWaitDurationInOpenState time.Duration `yaml:"maxWaitDurationInOpenState" range:"1ms..24h" example:"10s"`

	// WaitDurationJitter spreads the waits of many clients: each wait is drawn between the wait and
	// (1 + jitter) times the wait. Near the maximum the range moves down and ends there. Range 0.001
	// (practically none) to 1. Zero means the default, 0.25.
	WaitDurationJitter float64 `yaml:"waitDurationJitter" range:"0.001..1" example:"0.25"`

	// PermittedCallsInHalfOpen is how many probes may be out at once while the breaker is half-open.
	// Range 1 to 1000. Zero means the default, 3.
	PermittedCallsInHalfOpen int `yaml:"permittedCallsInHalfOpen" range:"1..1000" example:"3"`

	// SuccessThreshold is how many probes must succeed before the breaker leaves half-open. One failed (or,
	// with slow-call detection, slow) probe opens it again. Range 1 to 1000. Zero means the default, 3.
	SuccessThreshold int `yaml:"successThreshold" range:"1..1000" example:"3"`

	// HalfOpenPermitLease is how long a probe may take to report. After that its permit is free again, so
	// that a hung probe cannot keep the breaker half-open for ever; its late result still counts.
	// Range 1ms to 1h. Zero means the default: the attempt timeout where there is one, else 10s.
	HalfOpenPermitLease time.Duration `yaml:"halfOpenPermitLease" range:"1ms..1h" example:"10s"`

	// RampUp is how long the breaker takes to go from rampUpFrom to all calls after the probes succeeded; the
	// admitted share grows linearly. Range 0 to 1h. Zero: everything is admitted at once.
	RampUp time.Duration `yaml:"rampUp" range:"0s..1h" example:"5s"`

	// RampUpFrom is the share of calls admitted when the ramp-up begins. A fraction, 0.1 is 10 %. It matters
	// only together with rampUp. Range 0.001 to 1. Zero means the default, 0.1.
	RampUpFrom float64 `yaml:"rampUpFrom" range:"0.001..1" example:"0.1"`
}

// Enabled reports whether the breaker does anything: it is not disabled, and has a threshold or is forced open.
func (c Config) Enabled() bool {
	return !c.Disabled && (c.Kind != "" || c.Mode == ForcedOpen ||
		c.FailureThreshold > 0 || c.FailureRateThreshold > 0 || c.SlowCallRateThreshold > 0)
}

// WithDefaults returns c as New uses it: defaults filled in, values outside their range moved to its nearest
// end, the minimum number of calls cut to a count window's size, the longest wait raised to the first one.
// The thresholds stay zero when they are zero, so a Config that is off stays off. Calling it twice changes nothing.
func (c Config) WithDefaults() Config {
	if c.Mode != Shadow && c.Mode != ForcedOpen {
		c.Mode = Enforce
	}
	if c = c.WithKind(); c.Kind == Adaptive {
		return c
	}
	c.WhileOpen = ""
	c.FailureThreshold = within(c.FailureThreshold, 0, 0, 1_000_000)
	c.FailureRateThreshold = within(c.FailureRateThreshold, 0, 0, 1)
	c.SlowCallRateThreshold = within(c.SlowCallRateThreshold, 0, 0, 1)
	if c.SlowCallRateThreshold > 0 {
		c.SlowCallDurationThreshold = within(c.SlowCallDurationThreshold, time.Second, time.Millisecond, 24*time.Hour)
	}
	c.SlidingWindow = c.SlidingWindow.withDefault()
	c.MinimumNumberOfCalls = within(c.MinimumNumberOfCalls, 20, 1, 1_000_000)
	if n := c.SlidingWindow.Calls; n > 0 {
		c.MinimumNumberOfCalls = min(c.MinimumNumberOfCalls, n)
	}
	c.WaitDurationInOpenState = within(c.WaitDurationInOpenState, time.Second, time.Millisecond, time.Hour)
	c.WaitDurationMultiplier = within(c.WaitDurationMultiplier, 2, 1, 10)
	c.MaxWaitDurationInOpenState = within(c.MaxWaitDurationInOpenState, 10*time.Second, time.Millisecond, 24*time.Hour)
	c.MaxWaitDurationInOpenState = max(c.MaxWaitDurationInOpenState, c.WaitDurationInOpenState)
	c.WaitDurationJitter = within(c.WaitDurationJitter, 0.25, 0.001, 1)
	c.PermittedCallsInHalfOpen = within(c.PermittedCallsInHalfOpen, 3, 1, 1000)
	c.SuccessThreshold = within(c.SuccessThreshold, 3, 1, 1000)
	c.HalfOpenPermitLease = within(c.HalfOpenPermitLease, 10*time.Second, time.Millisecond, time.Hour)
	c.RampUp = within(c.RampUp, 0, 0, time.Hour)
	if c.RampUp > 0 {
		c.RampUpFrom = within(c.RampUpFrom, 0.1, 0.001, 1)
	}
	return c
}

// Numbers is where the kind Thresholds starts from where Adaptive is the default: half of the calls failed, and two
// seconds of ramp-up.
func Numbers() Config {
	return Config{Kind: Thresholds, FailureRateThreshold: 0.5, RampUp: 2 * time.Second}
}

// WithKind returns c with the kind that its numbers say: an Adaptive one with a number is what Numbers is with that
// number, as it was when Numbers were the default. Thresholds without a threshold opens at the failure rate of Numbers.
// Calling it twice changes nothing.
func (c Config) WithKind() Config {
	switch {
	case c.Kind == Adaptive && c != c.WithoutNumbers():
		c.Kind = Thresholds
		c.FailureRateThreshold = cmp.Or(c.FailureRateThreshold, Numbers().FailureRateThreshold)
		c.RampUp = cmp.Or(c.RampUp, Numbers().RampUp)
	case c.Kind == Thresholds && c.FailureThreshold == 0 && c.FailureRateThreshold == 0 && c.SlowCallRateThreshold == 0:
		c.FailureRateThreshold = Numbers().FailureRateThreshold
	}
	return c
}

// NumberKeys returns the keys of the settings of the kind Thresholds.
func NumberKeys() []string {
	return []string{"failureThreshold", "failureRateThreshold", "slowCallRateThreshold", "slowCallDurationThreshold",
		"minimumNumberOfCalls", "slidingWindow", "waitDurationInOpenState", "waitDurationMultiplier",
		"maxWaitDurationInOpenState", "waitDurationJitter", "permittedCallsInHalfOpen", "successThreshold",
		"halfOpenPermitLease", "rampUp", "rampUpFrom"}
}

// WithoutNumbers returns c without the settings of the kind Thresholds.
func (c Config) WithoutNumbers() Config {
	return Config{Disabled: c.Disabled, Kind: c.Kind, WhileOpen: c.WhileOpen, Mode: c.Mode, Fleet: c.Fleet}
}

// Ineffective calls idle with each setting that has no effect beside Kind, whether it is set, and what to do about it.
func (c Config) Ineffective(idle func(key string, set bool, fix string)) {
	idle("whileOpen", c.WhileOpen != "" && c.WithKind().Kind != Adaptive, "write kind: adaptive, or remove it")
}

// effective is c as the breaker follows it: a disabled breaker has no thresholds, so it counts nothing.
func (c Config) effective() Config {
	if c.Disabled {
		c.FailureThreshold, c.FailureRateThreshold, c.SlowCallRateThreshold = 0, 0, 0
	}
	return c.WithDefaults()
}

func (c *Config) forced() bool { return c.Mode == ForcedOpen && !c.Disabled }

func (c *Config) watchesRates() bool {
	return c.FailureRateThreshold > 0 || c.SlowCallRateThreshold > 0
}

// sameHanging reports whether calls in flight are tracked alike under both configurations.
func (c *Config) sameHanging(was *Config) bool {
	on, wasOn := c.SlowCallRateThreshold > 0, was.SlowCallRateThreshold > 0
	return on == wasOn && (!on || c.SlowCallDurationThreshold == was.SlowCallDurationThreshold)
}

// within returns def for zero, else v moved into lo..hi. NaN becomes lo.
func within[T cmp.Ordered](v, def, lo, hi T) T {
	var zero T
	switch {
	case v == zero:
		return def
	case !(v >= lo): // also true for NaN
		return lo
	}
	return min(v, hi)
}

// wait is how long the breaker stays open after reopens openings without a full recovery:
//
//	base = min(wait * multiplier^reopens, longest / (1 + jitter))
//	wait = base * (1 + jitter * u), u uniform in [0, 1)
//
// The cap is applied before the draw, so waits at the cap still differ from each other.
func (c *Config) wait(reopens int, draw uint64) time.Duration {
	base := float64(c.WaitDurationInOpenState) * math.Pow(c.WaitDurationMultiplier, float64(reopens))
	base = min(base, float64(c.MaxWaitDurationInOpenState)/(1+c.WaitDurationJitter))
	return min(time.Duration(base*(1+c.WaitDurationJitter*unit(draw))), c.MaxWaitDurationInOpenState)
}

// unit turns 64 random bits into a number in [0, 1).
func unit(draw uint64) float64 { return float64(draw>>11) / (1 << 53) }
