package idempotency

import (
	"cmp"
	"math"
	"time"
)

// Config says which requests have idempotency keys and how their answers are kept. The zero Config is off: set methods.
type Config struct {
	// Disabled turns idempotency off: keys are not looked at.
	Disabled bool `yaml:"disabled"`
	// Methods lists the HTTP methods whose requests are done once for each key, for example POST and PATCH. None: off.
	Methods []string `yaml:"methods" example:"[POST, PATCH]"`
	// Required refuses requests of these methods that have no key, with 400.
	Required bool `yaml:"required"`
	// Retention is how long a finished request is remembered. Range 1s to 720h. Zero means the default, 24h.
	Retention time.Duration `yaml:"retention" range:"1s..720h" example:"24h"`
	// Lease is how long a running request blocks others with its key without renewing the lease; after that it counts
	// as crashed, and the next one takes over. Running requests renew it. Range 100ms to 1h. Zero means the default,
	// 30s.
	Lease time.Duration `yaml:"lease" range:"100ms..1h" example:"30s"`
	// Scope says to whom a key belongs. Two senders that chose the same key never get each other's answers. Empty: the
	// gate's caller, if that is more than an address (mtls, token, header:NAME of a trusted peer), else the credential
	// that the request shows (Authorization, X-Api-Key, Api-Key, X-Auth-Token), else its client certificate. Senders
	// with none of these count as one, and their repeats must bring the same cookies. "credential" looks at the
	// credential first whatever caller is; "header:NAME" and "cookie:NAME" name what distinguishes users (a header of
	// an untrusted peer counts together with the credential); "everybody" makes all senders one, for callers whose
	// credentials change between attempts and who may see each other's answers. An address is never a scope: several
	// users share one, and one user has several.
	Scope string `yaml:"scope" example:"cookie:session"`
	// MaxBody is the largest request body that is compared, in bytes. A request with a key and a larger one is refused
	// with 413. Range 1 to 16777216. Zero means the default, 65536.
	MaxBody int `yaml:"maxBody" range:"1..16777216" example:"65536"`
	// MaxAnswer is the largest answer that is stored, header and trailer included, in bytes. The repeat of a request
	// with a larger answer gets 409, never a second run. Range 1 to 67108864. Zero means the default, 4194304, or
	// maxMemory if that is less.
	MaxAnswer int `yaml:"maxAnswer" range:"1..67108864" example:"4194304"`
	// KeepServerErrors stores answers of 500 and above too (for gRPC: CANCELLED, UNKNOWN, DEADLINE_EXCEEDED,
	// UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS), for services that may have done half of the work before they
	// fail. An attempt that reached the service and brought no answer is then not run again either: its repeats get
	// 409.
	KeepServerErrors bool `yaml:"keepServerErrors"`
	// MaxMemory bounds the memory store, in bytes; a key takes about 320 besides its answer. When it is full, the
	// oldest answers are forgotten, and their repeats get 409. When it is full of keys, whenFull says what happens.
	// Range 65536 to 1099511627776. Zero means the default, 67108864.
	MaxMemory int64 `yaml:"maxMemory" range:"65536..1099511627776" example:"67108864"`
	// File keeps the keys in a file on disk instead of in memory. It is the path of a file that nothing else uses. The
	// keys survive restarts, and there is room for many more. Entries with the same path share the file.
	File string `yaml:"file" example:"/var/lib/abate/keys.db"`
	// MaxFile bounds what the keys and answers in the file take up, in bytes; the file itself grows to about twice
	// that. When it is full, what holds for maxMemory holds here too. Range 1048576 to 1099511627776. Zero means the
	// default, 1073741824.
	MaxFile int64 `yaml:"maxFile" range:"1048576..1099511627776" example:"1073741824"`
	// WhenFull says what happens when there is no room for another key. shorten forgets the oldest finished ones,
	// though not before minRetention, and reports that in metrics, events and alerts. refuse forgets none early and
	// refuses further requests with 503. Empty means shorten.
	WhenFull string `yaml:"whenFull" enum:"shorten|refuse" example:"shorten"`
	// MinRetention is how long a finished request is remembered in any case. When all keys are younger than this,
	// further requests are refused with 503. Range 1s to 720h. Zero means the default, 15m, or retention if that is
	// less.
	MinRetention time.Duration `yaml:"minRetention" range:"1s..720h" example:"15m"`
	// Fleet keeps the keys where all instances see them, in the Redis of the policy file, instead of in the memory of
	// each.
	Fleet bool `yaml:"fleet"`
	// WhenAway says what happens to a request with a key while that Redis cannot be reached: closed refuses it with
	// 503, open handles it without looking at its key. A request whose answer cannot be recorded waits for up to a
	// lease and then gets 503 too. With open it gets the answer after a tenth of that time, and its repeat may be done
	// again. Empty means closed.
	WhenAway string `yaml:"whenAway" enum:"closed|open" example:"closed"`
}

// Enabled reports whether keys are looked at.
func (c Config) Enabled() bool { return !c.Disabled && len(c.Methods) > 0 }

// WithDefaults returns c with defaults filled in. A Config that is off stays off.
func (c Config) WithDefaults() Config {
	c.Retention = cmp.Or(c.Retention, 24*time.Hour)
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.MaxBody = cmp.Or(c.MaxBody, 64<<10)
	c.MaxMemory = cmp.Or(c.MaxMemory, 64<<20)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, int(min(4<<20, c.MaxMemory)))
	c.MaxFile = cmp.Or(c.MaxFile, 1<<30)
	c.WhenFull = cmp.Or(c.WhenFull, "shorten")
	c.MinRetention = cmp.Or(c.MinRetention, min(15*time.Minute, c.Retention))
	c.WhenAway = cmp.Or(c.WhenAway, "closed")
	return c
}

// Floor returns how long a finished key is remembered at least, even if the store is full: its whole retention, unless
// WhenFull may shorten it.
func (c *Config) Floor() time.Duration {
	if c.WhenFull == "shorten" {
		return c.MinRetention
	}
	return math.MaxInt64
}

// Keeps reports whether the answer with this HTTP status is stored: see the function Keeps, and KeepServerErrors.
func (c *Config) Keeps(status int) bool {
	return Keeps(status) || c.KeepServerErrors && status >= 500 && status <= 599
}

// KeepsCode is Keeps for the status code of a gRPC answer. KeepServerErrors adds the codes with which a call may end in
// the middle of its work; RESOURCE_EXHAUSTED, ABORTED and UNAUTHENTICATED say that nothing was done.
func (c *Config) KeepsCode(code uint32) bool {
	switch code {
	case 1, 2, 4, 12, 13, 14, 15:
		return c.KeepServerErrors
	}
	return KeepsCode(code)
}

// Unknown returns the answer that is stored for an attempt that reached the service and ended without one, if it must
// not be run again because its effect is unknown. Its repeats get that answer; see Response.EffectUnknown.
func Unknown() Response { return Response{Status: 500, Truncated: true} }

// Keeps reports whether the answer with this HTTP status is stored for the repeats of its request. If not, the key is
// released with Fail, and the next attempt runs.
//
// Statuses from 200 to 499 are kept: the request was done, or refused with a final answer. Not kept are 401 and 407,
// since a repeat may come with better credentials, and 408, 425 and 429, which ask to retry later. Neither are those of
// 500 and above, although some service may have done half of the work before it answered so: a client that gets "503,
// later" would otherwise get the same 503 as long as the key lives. A service that cannot undo half of its work keeps
// its own record, or answers with 4xx.
func Keeps(status int) bool {
	switch status {
	case 401, 407, 408, 425, 429:
		return false
	}
	return status >= 200 && status <= 499
}

// KeepsCode is Keeps for the status code of a gRPC answer. OK and the codes of final refusals are kept:
// INVALID_ARGUMENT (3), NOT_FOUND (5), ALREADY_EXISTS (6), PERMISSION_DENIED (7), FAILED_PRECONDITION (9) and
// OUT_OF_RANGE (11). The others mean that the next attempt may succeed, or that something is broken and will be fixed.
func KeepsCode(code uint32) bool {
	switch code {
	case 0, 3, 5, 6, 7, 9, 11:
		return true
	}
	return false
}
