package idempotency

import "time"

// Config describes how repeats of requests are recognised. The zero Config is off: set methods.
type Config struct {
	// Disabled switches it off: keys are not looked at.
	Disabled bool `yaml:"disabled"`
	// Methods lists the HTTP methods whose requests are done once for each key, for example POST and PATCH. None: off.
	Methods []string `yaml:"methods" example:"[POST, PATCH]"`
	// Required refuses requests of these methods that have no key, with 400.
	Required bool `yaml:"required"`
	// Retention is how long a finished request is remembered. Range 1s to 720h. Zero means the default, 24h.
	Retention time.Duration `yaml:"retention" range:"1s..720h" example:"24h"`
	// Lease is how long a running request keeps others with its key away without a sign of life; after that it is taken for crashed, and the next one takes over. Running requests renew it. Range 100ms to 1h. Zero means the default, 30s.
	Lease time.Duration `yaml:"lease" range:"100ms..1h" example:"30s"`
	// MaxBody is the largest answer that is stored, in bytes, and the largest request body that is compared. The repeat of a request with a larger answer gets 409, never a second run. Range 1 to 16777216. Zero means the default, 65536.
	MaxBody int `yaml:"maxBody" range:"1..16777216" example:"65536"`
	// MaxMemory bounds the memory store, in bytes; a key takes about 320 besides its answer. When it is full, the oldest answers go, whose repeats get 409 from then on; when it is full of keys, which must not be forgotten, further requests are refused with 503. Range 65536 to 1099511627776. Zero means the default, 67108864.
	MaxMemory int64 `yaml:"maxMemory" range:"65536..1099511627776" example:"67108864"`
	// Fleet keeps the keys where all instances see them, in the Redis of the policy file, instead of in the memory of each.
	Fleet bool `yaml:"fleet"`
	// WhenAway says what happens to a request with a key while that Redis cannot be reached: closed refuses it with 503, open handles it without looking at its key. Empty means closed.
	WhenAway string `yaml:"whenAway" enum:"closed|open" example:"closed"`
}

// Enabled tells whether keys are looked at.
func (c Config) Enabled() bool { return !c.Disabled && len(c.Methods) > 0 }

// WithDefaults returns c with defaults filled in. A Config that is off stays off.
func (c Config) WithDefaults() Config {
	if c.Retention == 0 {
		c.Retention = 24 * time.Hour
	}
	if c.Lease == 0 {
		c.Lease = 30 * time.Second
	}
	if c.MaxBody == 0 {
		c.MaxBody = 64 << 10
	}
	if c.MaxMemory == 0 {
		c.MaxMemory = 64 << 20
	}
	if c.WhenAway == "" {
		c.WhenAway = "closed"
	}
	return c
}

// Keeps tells whether the answer with this HTTP status is stored for the repeats of its request. If not, the key is let go
// with Fail, and the next try runs.
//
// Statuses from 200 to 499 are kept: the request was done, or refused for good. Not kept are 401 and 407, since a repeat
// may come with better credentials, and 408, 425 and 429, which ask to come again. Neither are those of 500 and above,
// although some service may have done half of the work before it answered so: a client that is told "503, later" would
// otherwise get the same 503 as long as the key lives. A service that cannot undo its half keeps a record of its own, or
// answers with 4xx.
func Keeps(status int) bool {
	switch status {
	case 401, 407, 408, 425, 429:
		return false
	}
	return status >= 200 && status <= 499
}

// KeepsCode is Keeps for the status code of a gRPC answer. OK and the codes for calls that were refused for good are kept:
// INVALID_ARGUMENT (3), NOT_FOUND (5), ALREADY_EXISTS (6), PERMISSION_DENIED (7), FAILED_PRECONDITION (9) and OUT_OF_RANGE (11).
// The others say that the next try may find better, or that something is broken that will be mended.
func KeepsCode(code uint32) bool {
	switch code {
	case 0, 3, 5, 6, 7, 9, 11:
		return true
	}
	return false
}
