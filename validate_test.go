package abate_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/pacing"
)

func TestValidateNamesFieldValueAndFix(t *testing.T) {
	for _, row := range []struct {
		change func(*abate.Policy)
		want   string
	}{
		{func(p *abate.Policy) { p.MaxRetries = 101 }, "maxRetries: 101 is out of range; allowed: 0 to 100"},
		{func(p *abate.Policy) {
			p.RateLimit.Limit.Tokens = 5
		}, "rateLimit.limit: 5 tokens in no time; set Per, for example ratelimit.Rate{Tokens: 1000, Per: time.Second}"},
		{func(p *abate.Policy) { p.Multiplier = math.NaN() }, "multiplier: NaN is out of range; allowed: 1 to 100"},
		{func(p *abate.Policy) { p.Timeout = -time.Second }, "timeout: -1s is out of range; allowed: 0s to 24h"},
		{func(p *abate.Policy) {
			p.Jitter = "some"
		}, `jitter: "some" is not known; allowed: full, equal, decorrelated, factor, none`},
		{func(p *abate.Policy) {
			p.InitialDelay = time.Minute
		}, "initialDelay: 1m0s is above maxDelay 10s; lower it or raise maxDelay"},
		{func(p *abate.Policy) {
			p.Timeout, p.AttemptTimeout = 1, 2
		}, "attemptTimeout: 2ns is above timeout 1ns; an attempt cannot last longer than its call: lower it or raise " +
			"timeout"},
		{func(p *abate.Policy) {
			p.RetryBudget = budget.Config{Kind: budget.Adaptive, MinRatio: 0.5, MaxRatio: 0.2}
		}, "retryBudget.minRatio: 0.5 is above maxRatio 0.2; lower it or raise maxRatio"},
		{func(p *abate.Policy) {
			p.CircuitBreaker = breaker.Config{WaitDurationInOpenState: 2 * time.Second, MaxWaitDurationInOpenState: time.Second}
		},
			"circuitBreaker.waitDurationInOpenState: 2s is above maxWaitDurationInOpenState 1s; lower it or raise the maximum"},
		{func(p *abate.Policy) {
			p.AttemptTimeout = time.Second
			p.CircuitBreaker = breaker.Config{SlowCallRateThreshold: 0.5, SlowCallDurationThreshold: 2 * time.Second}
		}, "circuitBreaker.slowCallDurationThreshold: 2s is above attemptTimeout 1s; no attempt can be that slow: lower it " +
			"or raise attemptTimeout"},
		{func(p *abate.Policy) {
			p.CircuitBreaker = breaker.Config{MinimumNumberOfCalls: 20, SlidingWindow: breaker.Window{Calls: 10}}
		},
			"circuitBreaker.slidingWindow: holds 10 calls, fewer than minimumNumberOfCalls 20; raise it or lower the minimum"},
		{func(p *abate.Policy) { p.AttemptTimeout, p.Hedge = time.Second, hedge.Config{Delay: time.Minute} },
			"hedge.delay: 1m0s is above attemptTimeout 1s; the hedge would never be sent: lower it or raise attemptTimeout"},
		{func(p *abate.Policy) {
			p.NeverRetryOn = []string{"503", "200"}
		}, `neverRetryOn[1]: "200" is not known; allowed: a status such as "503", "4xx", "5xx", gateway-error, ` +
			`connect-failure, reset, timeout, error, or a gRPC code such as UNAVAILABLE`},
		{func(p *abate.Policy) {
			p.RetryMethods = []string{"post"}
		}, `retryMethods[0]: "post" is no method; allowed: upper-case HTTP methods, for example PUT, and full names of ` +
			`gRPC methods, for example "/shop.Payment/Get"`},
		{func(p *abate.Policy) {
			p.Pacing.PerSecond = math.NaN()
		}, "pacing.perSecond: NaN is out of range; allowed: 0.01 to 1000000"},
		{func(p *abate.Policy) { p.Pacing.MaxWait = -1 }, "pacing.maxWait: -1ns is out of range; allowed: 1ms to 1h"},
		{func(p *abate.Policy) { p.Fallback.Status = 7 }, "fallback.status: 7 is out of range; allowed: 200 to 599"},
	} {
		p := abate.DefaultPolicy()
		row.change(&p)
		err := p.Validate()
		if err == nil || err.Error() != row.want {
			t.Errorf("got  %v\nwant %s", err, row.want)
		}
		var field *abate.FieldError
		if !errors.As(err, &field) {
			t.Errorf("%v is no FieldError", err)
		}
	}
}

func TestDefaultAndZeroPoliciesAreValid(t *testing.T) {
	for _, p := range []abate.Policy{{}, abate.DefaultPolicy(), abate.DefaultPolicy().WithDefaults(),
		abate.ConnectionPolicy(), abate.ConnectionPolicy().WithDefaults()} {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestIneffectiveNamesWhatDoesNothing(t *testing.T) {
	p := abate.DefaultPolicy()
	if err := p.Ineffective(); err != nil {
		t.Error(err)
	}
	p.Bulkhead.MaxQueue, p.Hedge.MaxHedges, p.Fallback.Body = 5, 2, "x"
	want := "bulkhead.maxQueue: has no effect; set maxConcurrentCalls, for example 100\n" +
		"hedge.maxHedges: has no effect; set delay or quantile, for example delay: 200ms\n" +
		"fallback.body: has no effect; set status, for example 200"
	if err := p.Ineffective(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := p.Validate(); err != nil {
		t.Error("no harm in it:", err)
	}
	p.Bulkhead.Disabled, p.Hedge.Delay, p.Fallback.Status = true, 100*ms, 200
	if err := p.Ineffective(); err != nil {
		t.Error(err)
	}
}

func TestIneffectiveNamesWhatAPaceLacks(t *testing.T) {
	const rate = "; set perSecond, for example perSecond: 10"
	all := pacing.Config{Burst: 2, Jitter: 0.1, RampUp: time.Second, RampUpFrom: 0.5, MaxWait: time.Second}
	off, slow, even := all, all, all
	off.Disabled, slow.PerSecond, even.PerSecond, even.RampUp = true, 5, 5, 0
	for _, row := range []struct {
		c    pacing.Config
		want string
	}{
		{pacing.Config{}, ""}, {off, ""}, {slow, ""},
		{all, "pacing.burst: has no effect" + rate + "\npacing.jitter: has no effect" + rate +
			"\npacing.rampUp: has no effect" + rate +
			"\npacing.maxWait: has no effect" + rate + "\npacing.rampUpFrom: has no effect" + rate},
		{even, "pacing.rampUpFrom: has no effect; set rampUp, for example rampUp: 5s"},
	} {
		got := ""
		if err := (abate.Policy{Pacing: row.c}).Ineffective(); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%+v\n got %s\nwant %s", row.c, got, row.want)
		}
	}
	if err := abate.ConnectionPolicy().Ineffective(); err != nil {
		t.Error(err)
	}
}
