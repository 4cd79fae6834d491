package core

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/abate-go/abate/internal/check"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/pacing"
)

// FieldError is one thing wrong with a Policy or a Protection. Path names the field as the policy file does
// ("circuitBreaker.rampUp").
type FieldError = check.FieldError

// validator collects what is wrong with a policy.
type validator struct{ check.Errors }

// Validate returns everything that is wrong with the policy, joined: each part is a *FieldError. The limits of single
// fields stand in their `range` and `enum` tags, where the JSON Schema reads them too; rules between fields stand here.
// A zero field is always valid: it means the default, or off.
func (p Policy) Validate() error {
	var v validator
	v.Walk("", reflect.ValueOf(p))
	v.betweenFields(p, p.WithDefaults())
	v.Rate("rateLimit.limit", p.RateLimit.Limit)
	v.lists(p)
	v.kafka(p.Kafka)
	v.Upstreams(p.Upstreams)
	for i, r := range p.Routes {
		v.Route(i, r.Host, r.Path)
	}
	for i, name := range p.Fallback.Identity {
		if !check.IsToken(name) {
			v.Add(fmt.Sprintf("fallback.identity[%d]", i), strconv.Quote(name)+" is not the name of a header",
				"for example X-Tenant")
		}
	}
	return v.Join()
}

// betweenFields checks what no single field can tell. p is the policy as written, full the same with its defaults.
func (v *validator) betweenFields(p, full Policy) {
	v.Below("initialDelay", full.InitialDelay, "maxDelay", full.MaxDelay, "lower it or raise maxDelay")
	v.Below("attemptTimeout", p.AttemptTimeout, "timeout", p.Timeout,
		"an attempt cannot last longer than its call: lower it or raise timeout")
	if b := full.RetryBudget; b.Kind == budget.Adaptive && b.MinRatio > b.MaxRatio {
		v.Add("retryBudget.minRatio", fmt.Sprintf("%v is above maxRatio %v", b.MinRatio, b.MaxRatio),
			"lower it or raise maxRatio")
	}
	c := p.CircuitBreaker
	v.Below("circuitBreaker.waitDurationInOpenState", c.WaitDurationInOpenState, "maxWaitDurationInOpenState",
		c.MaxWaitDurationInOpenState, "lower it or raise the maximum")
	if s := full.CircuitBreaker; s.SlowCallRateThreshold > 0 {
		v.Below("circuitBreaker.slowCallDurationThreshold", s.SlowCallDurationThreshold, "attemptTimeout", p.AttemptTimeout,
			"no attempt can be that slow: lower it or raise attemptTimeout")
	}
	if w := c.SlidingWindow; w.Calls < 0 || w.Calls > 1_000_000 || w.Duration < 0 || w.Duration > 24*time.Hour ||
		w.Duration > 0 && w.Duration < 10*time.Millisecond {
		v.Add("circuitBreaker.slidingWindow", w.String()+" is out of range", "allowed: 1 to 1000000 calls, or 10ms to 24h")
	}
	if n := c.SlidingWindow.Calls; n > 0 && n < c.MinimumNumberOfCalls {
		v.Add("circuitBreaker.slidingWindow", fmt.Sprintf("holds %d calls, fewer than minimumNumberOfCalls %d", n,
			c.MinimumNumberOfCalls), "raise it or lower the minimum")
	}
	o := p.OutlierDetection
	v.Below("outlierDetection.baseEjectionTime", o.BaseEjectionTime, "maxEjectionTime", o.MaxEjectionTime,
		"lower it or raise maxEjectionTime")
	if p.Hedge.Enabled() {
		v.Below("hedge.delay", p.Hedge.Delay, "attemptTimeout", p.AttemptTimeout,
			"the hedge would never be sent: lower it or raise attemptTimeout")
	}
}

// Ineffective returns the settings that do nothing because what they belong to is off, joined like Validate's mistakes.
// They do no harm, but whoever wrote them for this very policy believes otherwise; in defaults for others they may be
// meant.
func (p Policy) Ineffective() error {
	var v validator
	b, h, f := p.Bulkhead, p.Hedge, p.Fallback
	if !b.Disabled && b.MaxConcurrentCalls == 0 {
		v.Idle("bulkhead.maxQueue", b.MaxQueue != 0, "set maxConcurrentCalls, for example 100")
		v.Idle("bulkhead.maxWait", b.MaxWait != 0, "set maxConcurrentCalls, for example 100")
		v.Idle("bulkhead.order", b.Order != "", "set maxConcurrentCalls, for example 100")
	}
	v.Idle("retryBudget.fleet", p.RetryBudget.Fleet && p.RetryBudget.Kind == budget.Tokens,
		"remove it, or choose the kind ratio or adaptive: a bucket of tokens is each instance's own")
	r := p.RateLimit
	v.Idle("rateLimit.maxKeys", r.MaxKeys != 0, "remove it: all attempts share one bucket")
	if !r.Disabled && r.Limit.IsZero() {
		v.Idle("rateLimit.burst", r.Burst != 0, "set limit, for example limit: 1000/s")
		v.Idle("rateLimit.shadow", r.Shadow, "set limit, for example limit: 1000/s")
		v.Idle("rateLimit.maxWait", r.MaxWait != 0, "set limit, for example limit: 1000/s")
	}
	v.idlePacing(p.Pacing)
	if t := p.Throttle; !t.Disabled && t.K == 0 {
		v.Idle("throttle.shadow", t.Shadow, "set k, for example k: 2")
		v.Idle("throttle.window", t.Window != 0, "set k, for example k: 2")
		v.Idle("throttle.maxRejection", t.MaxRejection != 0, "set k, for example k: 2")
		v.Idle("throttle.minimumNumberOfCalls", t.MinimumNumberOfCalls != 0, "set k, for example k: 2")
	}
	if !h.Disabled && !h.Enabled() {
		v.Idle("hedge.maxHedges", h.MaxHedges != 0, "set delay or quantile, for example delay: 200ms")
		v.Idle("hedge.minDelay", h.MinDelay != 0, "set delay or quantile, for example delay: 200ms")
	}
	if !f.Disabled && f.Status == 0 {
		v.Idle("fallback.body", f.Body != "", "set status, for example 200")
		v.Idle("fallback.contentType", f.ContentType != "", "set status, for example 200")
	}
	if !f.Disabled && f.StaleIfError == 0 {
		const fix = "set staleIfError, for example 5m"
		v.Idle("fallback.shared", f.Shared, fix)
		v.Idle("fallback.identity", len(f.Identity) > 0, fix)
	}
	v.idleKafka(p.Kafka)
	return v.Join()
}

// idlePacing reports what a pace lacks.
func (v *validator) idlePacing(c pacing.Config) {
	if c.Disabled {
		return
	}
	off := c.PerSecond == 0
	const fix = "set perSecond, for example perSecond: 10"
	v.Idle("pacing.burst", off && c.Burst != 0, fix)
	v.Idle("pacing.jitter", off && c.Jitter != 0, fix)
	v.Idle("pacing.rampUp", off && c.RampUp != 0, fix)
	v.Idle("pacing.maxWait", off && c.MaxWait != 0, fix)
	switch {
	case off:
		v.Idle("pacing.rampUpFrom", c.RampUpFrom != 0, fix)
	case c.RampUp == 0:
		v.Idle("pacing.rampUpFrom", c.RampUpFrom != 0, "set rampUp, for example rampUp: 5s")
	}
}

func (v *validator) lists(p Policy) {
	for i, word := range p.RetryOn {
		v.condition(fmt.Sprintf("retryOn[%d]", i), word)
	}
	for i, word := range p.NeverRetryOn {
		v.condition(fmt.Sprintf("neverRetryOn[%d]", i), word)
	}
	for i, m := range p.RetryMethods {
		v.Method(fmt.Sprintf("retryMethods[%d]", i), m)
	}
}

func (v *validator) condition(path, word string) {
	if !knownCondition(word) {
		v.Add(path, strconv.Quote(word)+" is not known", "allowed: "+conditionWords)
	}
}
