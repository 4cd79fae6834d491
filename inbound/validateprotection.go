package inbound

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/internal/check"
	"github.com/abate-go/abate/policy/shed"
)

// protectionValidator collects what is wrong with a protection.
type protectionValidator struct{ check.Errors }

// Validate returns everything that is wrong with the protection, joined: each part is a *FieldError. A zero field is
// always valid: it means the default, or off.
func (p Protection) Validate() error {
	var v protectionValidator
	v.Walk("", reflect.ValueOf(p))
	v.arriving(p)
	v.limits(p, p.WithDefaults())
	return v.Join()
}

// limits checks the numbers that no single field can tell. p is the protection as written, full the same with its
// defaults.
func (v *protectionValidator) limits(p, full Protection) {
	v.Rate("rateLimit.limit", p.RateLimit.Limit)
	s := full.Shed
	if p.Shed.MinConcurrency > s.MaxConcurrency {
		v.Add("shed.minConcurrency", fmt.Sprintf("%d is above maxConcurrency %d", s.MinConcurrency, s.MaxConcurrency),
			"lower it or raise maxConcurrency")
	}
	if n := p.Shed.InitialConcurrency; n > s.MaxConcurrency || n > 0 && n < s.MinConcurrency {
		v.Add("shed.initialConcurrency", fmt.Sprintf("%d is not between minConcurrency %d and maxConcurrency %d", n,
			s.MinConcurrency, s.MaxConcurrency), "bring it between the two")
	}
	v.Below("shed.queueTarget", s.QueueTarget, "queueInterval", s.QueueInterval, "lower it or raise queueInterval")
	v.keyLimits(full.Idempotency)
	if r := full.RateLimit; r.Config.Enabled() && r.Limit.Tokens > 0 && r.Cost > float64(r.Burst) {
		v.Add("rateLimit.cost", fmt.Sprintf("%v is above burst %d: no request would ever pass", r.Cost, r.Burst),
			"lower it or raise burst")
	}
}

// arriving checks the words and names of a protection.
func (v *protectionValidator) arriving(p Protection) {
	for i, text := range p.TrustedPeers {
		if _, ok := parsePrefix(text); !ok && text != unixPeers {
			v.Add(fmt.Sprintf("trustedPeers[%d]", i), strconv.Quote(text)+" is not an address",
				"allowed: an IP address or a CIDR, for example 10.0.0.0/8")
		}
	}
	v.source("caller", p.Caller, "ip", "mtls", "token")
	v.source("rateLimit.key", p.RateLimit.Key, "caller", "ip")
	if h := p.Priority.Header; h != "" && !check.IsToken(h) {
		v.Add("priority.header", strconv.Quote(h)+" is not the name of a header", "for example Abate-Priority")
	}
	v.keys(p.Idempotency)
	if p.Caller == "token" && !p.Authentication.Enabled() {
		v.Add("caller", "token needs authentication", "set authentication.bearerTokens")
	}
}

// Ineffective returns the settings that do nothing because what they belong to is off, joined like Validate's mistakes.
func (p Protection) Ineffective() error {
	var v protectionValidator
	if len(p.TrustedPeers) == 0 {
		const fix = "say whose headers are believed in trustedPeers, for example trustedPeers: [10.0.0.0/8]"
		v.Idle("caller", strings.HasPrefix(p.Caller, "header:"), fix)
		v.Idle("priority.header", p.Priority.Header != "", fix)
		v.Idle("rateLimit.key", strings.HasPrefix(p.RateLimit.Key, "header:"), fix)
	}
	v.idleLimit(p.RateLimit)
	v.idleShed(p.Shed)
	v.idleKeys(p.Idempotency)
	return v.Join()
}

func (v *protectionValidator) idleLimit(r ArrivalLimit) {
	const noLimit, noFleet = "set limit, for example limit: 1000/s", "set fleet: true, or remove it"
	switch {
	case r.Disabled:
	case r.Limit.IsZero():
		v.Idle("rateLimit.burst", r.Burst != 0, noLimit)
		v.Idle("rateLimit.maxKeys", r.MaxKeys != 0, noLimit)
		v.Idle("rateLimit.key", r.Key != "", noLimit)
		v.Idle("rateLimit.cost", r.Cost != 0, noLimit)
		v.Idle("rateLimit.fleet", r.Fleet, noLimit)
		v.Idle("rateLimit.whenAway", r.WhenAway != "", noLimit)
		v.Idle("rateLimit.reset", r.Reset != "", noLimit)
		v.Idle("rateLimit.shadow", r.Shadow, noLimit)
	default:
		v.Idle("rateLimit.maxKeys", r.Key == "" && r.MaxKeys != 0,
			"set key, for example key: caller; without one there is one bucket")
		v.Idle("rateLimit.whenAway", !r.Fleet && r.WhenAway != "", noFleet)
	}
}

func (v *protectionValidator) idleShed(s shed.Config) {
	const noLimit = "set concurrency, for example concurrency: gradient"
	if s.Disabled {
		return
	}
	v.Idle("shed.shadow", !s.Enabled() && s.Shadow, noLimit)
	v.Idle("shed.maxRetryShare", !s.Enabled() && s.MaxRetryShare != 0, noLimit)
	switch s.Concurrency {
	case "", shed.Unlimited:
		v.Idle("shed.maxConcurrency", s.MaxConcurrency != 0, noLimit)
		v.Idle("shed.minConcurrency", s.MinConcurrency != 0, noLimit)
		v.Idle("shed.initialConcurrency", s.InitialConcurrency != 0, noLimit)
		v.Idle("shed.noQueue", s.NoQueue, noLimit)
		v.idleQueue(s, noLimit)
		return
	case shed.Fixed:
		const fixed = "remove it: the limit is maxConcurrency; or choose another concurrency, for example gradient"
		v.Idle("shed.minConcurrency", s.MinConcurrency != 0, fixed)
		v.Idle("shed.initialConcurrency", s.InitialConcurrency != 0, fixed)
	}
	if s.NoQueue {
		v.idleQueue(s, "remove noQueue: it lets nobody wait")
	}
}

func (v *protectionValidator) idleQueue(s shed.Config, fix string) {
	v.Idle("shed.maxQueue", s.MaxQueue != 0, fix)
	v.Idle("shed.queueTarget", s.QueueTarget != 0, fix)
	v.Idle("shed.queueInterval", s.QueueInterval != 0, fix)
	v.Idle("shed.maxCallerShare", s.MaxCallerShare != 0, fix)
}

// source checks what tells callers apart.
func (v *protectionValidator) source(path, word string, known ...string) {
	if word == "" {
		return
	}
	if slices.Contains(known, word) {
		return
	}
	if name, ok := strings.CutPrefix(word, "header:"); ok && check.IsToken(name) {
		return
	}
	v.Add(path, strconv.Quote(word)+" is not known", "allowed: "+strings.Join(known,
		", ")+`, or "header:NAME", for example "header:X-Tenant"`)
}
