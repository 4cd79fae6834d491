package abate_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// ratePerSecond is a rate.
func ratePerSecond(n float64) ratelimit.Rate { return ratelimit.Rate{Tokens: n, Per: time.Second} }

func TestAProtectionNamesFieldValueAndFix(t *testing.T) {
	const source = `, or "header:NAME", for example "header:X-Tenant"`
	for _, row := range []struct {
		change func(*inbound.Protection)
		want   string
	}{
		{func(p *inbound.Protection) { p.Timeout = -1 }, "timeout: -1ns is out of range; allowed: 0s to 24h"},
		{func(p *inbound.Protection) {
			p.TrustedPeers = []string{"10.0.0.0/8", "lb"}
		}, `trustedPeers[1]: "lb" is not an address; allowed: an IP address or a CIDR, for example 10.0.0.0/8`},
		{func(p *inbound.Protection) {
			p.TrustedPeers = []string{"10.0.0.1/33"}
		}, `trustedPeers[0]: "10.0.0.1/33" is not an address; allowed: an IP address or a CIDR, for example 10.0.0.0/8`},
		{func(p *inbound.Protection) { p.Caller = "IP" }, `caller: "IP" is not known; allowed: ip, mtls, token` + source},
		{func(p *inbound.Protection) {
			p.Caller = "header:"
		}, `caller: "header:" is not known; allowed: ip, mtls, token` + source},
		{func(p *inbound.Protection) {
			p.Caller = "header:X Y"
		}, `caller: "header:X Y" is not known; allowed: ip, mtls, token` + source},
		{func(p *inbound.Protection) {
			p.Caller = "header:X\r\nY: z"
		}, `caller: "header:X\r\nY: z" is not known; allowed: ip, mtls, token` + source},
		{func(p *inbound.Protection) {
			p.Caller = "token"
		}, "caller: token needs authentication; set authentication.bearerTokens"},
		{func(p *inbound.Protection) {
			p.Caller, p.Authentication = "token", inbound.Authentication{Disabled: true, BearerTokens: "tokens"}
		}, "caller: token needs authentication; set authentication.bearerTokens"},
		{func(p *inbound.Protection) {
			p.Priority.Header = "a b"
		}, `priority.header: "a b" is not the name of a header; for example Abate-Priority`},
		{func(p *inbound.Protection) {
			p.RateLimit.Key = "user"
		}, `rateLimit.key: "user" is not known; allowed: caller, ip` + source},
		{func(p *inbound.Protection) {
			p.RateLimit.WhenAway = "never"
		}, `rateLimit.whenAway: "never" is not known; allowed: local, closed, open`},
		{func(p *inbound.Protection) {
			p.RateLimit.Cost = -1
		}, "rateLimit.cost: -1 is out of range; allowed: 0.001 to 1000000"},
		{func(p *inbound.Protection) {
			p.RateLimit.Burst = -1
		}, "rateLimit.burst: -1 is out of range; allowed: 1 to 1000000000"},
		{func(p *inbound.Protection) {
			p.RateLimit.Limit, p.RateLimit.Cost = ratePerSecond(5), 6
		}, "rateLimit.cost: 6 is above burst 5: no request would ever pass; lower it or raise burst"},
		{func(p *inbound.Protection) {
			p.RateLimit.Limit.Tokens = 100
		}, "rateLimit.limit: 100 tokens in no time; set Per, for example ratelimit.Rate{Tokens: 1000, Per: time.Second}"},
		{func(p *inbound.Protection) {
			p.RateLimit.Limit = ratePerSecond(-1)
		}, `rateLimit.limit: "-1/s" is out of range; allowed: 0 to 1000000000 in 1ms to 24h, for example 1000/s`},
		{func(p *inbound.Protection) {
			p.RateLimit.Limit = ratePerSecond(math.NaN())
		}, `rateLimit.limit: "NaN/s" is out of range; allowed: 0 to 1000000000 in 1ms to 24h, for example 1000/s`},
		{func(p *inbound.Protection) {
			p.RateLimit.Limit = ratelimit.Rate{Tokens: 1, Per: -time.Second}
		}, `rateLimit.limit: "1/-1s" is out of range; allowed: 0 to 1000000000 in 1ms to 24h, for example 1000/s`},
		{func(p *inbound.Protection) {
			p.Shed.Concurrency = "auto"
		}, `shed.concurrency: "auto" is not known; allowed: bbr, fixed, gradient, vegas, aimd, none`},
		{func(p *inbound.Protection) { p.Shed.CPU = 90 }, "shed.cpu: 90 is out of range; allowed: 0.05 to 0.99"},
		{func(p *inbound.Protection) {
			p.Shed.MinConcurrency, p.Shed.MaxConcurrency = 3, 2
		}, "shed.minConcurrency: 3 is above maxConcurrency 2; lower it or raise maxConcurrency"},
		{func(p *inbound.Protection) {
			p.Shed.InitialConcurrency, p.Shed.MaxConcurrency = 11, 10
		}, "shed.initialConcurrency: 11 is not between minConcurrency 4 and maxConcurrency 10; bring it between the two"},
		{func(p *inbound.Protection) {
			p.Shed.InitialConcurrency = 3
		}, "shed.initialConcurrency: 3 is not between minConcurrency 4 and maxConcurrency 1000000; bring it between the two"},
		{func(p *inbound.Protection) {
			p.Shed.QueueTarget, p.Shed.QueueInterval = 20*ms, 10*ms
		}, "shed.queueTarget: 20ms is above queueInterval 10ms; lower it or raise queueInterval"},
		{func(p *inbound.Protection) {
			p.Idempotency.Methods = []string{"POST", "put"}
		}, `idempotency.methods[1]: "put" is no method; allowed: upper-case HTTP methods, for example PUT, and full names ` +
			`of gRPC methods, for example "/shop.Payment/Get"`},
		{func(p *inbound.Protection) {
			p.Idempotency.MaxMemory, p.Idempotency.MaxAnswer = 65536, 65537
		}, "idempotency.maxAnswer: 65537 is above maxMemory 65536: no such answer could be stored; lower it or raise " +
			"maxMemory"},
		{func(p *inbound.Protection) {
			p.Idempotency.File, p.Idempotency.MaxFile, p.Idempotency.MaxAnswer = "k", 1<<20, 1<<21
		}, "idempotency.maxAnswer: 2097152 is above maxFile 1048576: no such answer could be stored; lower it or raise " +
			"maxFile"},
		{func(p *inbound.Protection) {
			p.Idempotency.File, p.Idempotency.Fleet = "k", true
		}, "idempotency.file: is for one instance, and fleet shares the keys of all; remove one of the two"},
		{func(p *inbound.Protection) {
			p.Idempotency.Retention, p.Idempotency.MinRetention = time.Minute, time.Hour
		}, "idempotency.minRetention: 1h0m0s is above retention 1m0s; lower it or raise retention"},
		{func(p *inbound.Protection) {
			p.Idempotency.Scope = "ip"
		}, `idempotency.scope: an address does not say whose a key is: others behind the same one would get the answer, ` +
			`and the same user from another would be served twice; allowed: credential, everybody, "header:NAME" and ` +
			`"cookie:NAME", for example "header:X-Api-Key"; empty for what caller says, else the credential`},
		{func(p *inbound.Protection) {
			p.Idempotency.Scope = "header:x-forwarded-for"
		}, `idempotency.scope: an address does not say whose a key is: others behind the same one would get the answer, ` +
			`and the same user from another would be served twice; allowed: credential, everybody, "header:NAME" and ` +
			`"cookie:NAME", for example "header:X-Api-Key"; empty for what caller says, else the credential`},
		{func(p *inbound.Protection) {
			p.Idempotency.Scope = "tenant"
		}, `idempotency.scope: "tenant" is not known; allowed: credential, everybody, "header:NAME" and "cookie:NAME", for ` +
			`example "header:X-Api-Key"; empty for what caller says, else the credential`},
		{func(p *inbound.Protection) {
			p.Idempotency.WhenAway = "local"
		}, `idempotency.whenAway: "local" is not known; allowed: closed, open`},
	} {
		p := inbound.DefaultProtection()
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

func TestProtectionsThatAreFine(t *testing.T) {
	closed := inbound.Protection{
		RateLimit: inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratePerSecond(0)}, Cost: 5},
	}
	full := inbound.Protection{
		TrustedPeers: []string{"::1", "10.1.2.3/8", "fe80::/10"},
		Caller:       "mtls",
		Timeout:      24 * time.Hour,
		Priority:     inbound.PriorityRule{Header: "X-Priority", Default: shed.Sheddable},
		RateLimit: inbound.ArrivalLimit{
			Config: ratelimit.Config{Limit: ratePerSecond(1e9), Burst: 1}, Key: "header:X-Tenant", Cost: 1,
		},
		Shed:        shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 2},
		Idempotency: idempotency.Config{Methods: []string{"POST"}},
	}
	ownTLS := inbound.Protection{Caller: "mtls"} // of a Go service, whose server asks for certificates
	processorOnly := inbound.Protection{Shed: shed.Config{Concurrency: shed.Unlimited, CPU: 0.9}}
	thirds := inbound.Protection{RateLimit: inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratePerSecond(1.0 / 3)}}}
	for _, p := range []inbound.Protection{{}, inbound.DefaultProtection(), closed, full, ownTLS, processorOnly, thirds} {
		for _, p := range []inbound.Protection{p, p.WithDefaults()} {
			if err := p.Validate(); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
		}
		if err := p.Ineffective(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestEveryMistakeOfAProtectionIsTold(t *testing.T) {
	p := inbound.Protection{
		Caller: "y", Timeout: -1, TrustedPeers: []string{"z"}, RateLimit: inbound.ArrivalLimit{Key: "q"},
	}
	err := p.Validate()
	for _, path := range []string{"timeout", "trustedPeers[0]", "caller", "rateLimit.key"} {
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+path+": ") {
			t.Errorf("nothing about %s in:\n%v", path, err)
		}
	}
}

func TestProtectionsDefaultsAreWrittenOutOnce(t *testing.T) {
	p := inbound.Protection{RateLimit: inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratePerSecond(100)}},
		Shed: shed.Config{Concurrency: shed.AIMD}}
	full := p.WithDefaults()
	if full.Caller != "ip" || full.Priority.Header != "Abate-Priority" || full.Priority.Default != shed.Critical ||
		full.RateLimit.Burst != 100 || full.RateLimit.Cost != 1 || full.RateLimit.WhenAway != "local" ||
		full.RateLimit.MaxKeys == 0 ||
		full.Shed.Concurrency != shed.AIMD || full.Shed.MaxConcurrency == 0 || full.Shed.MaxRetryShare != 0.1 ||
		full.Idempotency.Retention != 24*time.Hour || full.Idempotency.WhenAway != "closed" {
		t.Errorf("%+v", full)
	}
	if again := full.WithDefaults(); !reflect.DeepEqual(again, full) {
		t.Errorf("twice it is\n%+v, once\n%+v", again, full)
	}
	set := inbound.Protection{Caller: "token", Priority: inbound.PriorityRule{Header: "P", Default: shed.Sheddable},
		RateLimit: inbound.ArrivalLimit{
			Config: ratelimit.Config{Limit: ratePerSecond(1), Burst: 7, MaxKeys: 8}, Cost: 2, WhenAway: "open", Reset: "epoch",
		}}
	got := set.WithDefaults()
	if got.Caller != "token" || got.Priority != set.Priority || got.RateLimit != set.RateLimit {
		t.Errorf("what was set is now %+v", got)
	}
	off := inbound.Protection{}.WithDefaults()
	if off.RateLimit.Enabled() || off.Shed.Enabled() || off.Idempotency.Enabled() ||
		off.Authentication.Enabled() {
		t.Errorf("defaults switch something on: %+v", off)
	}
	d := inbound.DefaultProtection()
	if d.RateLimit.Enabled() || !d.Shed.Enabled() || d.Idempotency.Enabled() || d.Timeout != 0 {
		t.Errorf("the default protection is %+v", d)
	}
}

func TestIneffectiveNamesWhatDoesNothingAtAGate(t *testing.T) {
	for _, c := range []struct {
		name  string
		p     inbound.Protection
		paths string
	}{
		{"nobody is trusted", inbound.Protection{Caller: "header:A", Priority: inbound.PriorityRule{Header: "B"},
			RateLimit: inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratePerSecond(1)}, Key: "header:C"}},
			"caller priority.header rateLimit.key"},
		{"no limit", inbound.Protection{RateLimit: inbound.ArrivalLimit{
			Config: ratelimit.Config{Burst: 1, MaxKeys: 1, Shadow: true}, Key: "ip", Cost: 2, Fleet: true, WhenAway: "open",
		}},
			"rateLimit.burst rateLimit.maxKeys rateLimit.key rateLimit.cost rateLimit.fleet rateLimit.whenAway " +
				"rateLimit.shadow"},
		{"one bucket, one instance", inbound.Protection{
			RateLimit: inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratePerSecond(1), MaxKeys: 5}, WhenAway: "open"},
		},
			"rateLimit.maxKeys rateLimit.whenAway"},
		{"no concurrency", inbound.Protection{
			Shed: shed.Config{Shadow: true, MaxConcurrency: 9, MinConcurrency: 8, InitialConcurrency: 8, MaxQueue: 1,
				NoQueue: true, QueueTarget: ms, QueueInterval: ms, MaxRetryShare: 1, MaxCallerShare: 1},
		},
			"shed.shadow shed.maxRetryShare shed.maxConcurrency shed.minConcurrency shed.initialConcurrency shed.noQueue " +
				"shed.maxQueue shed.queueTarget shed.queueInterval shed.maxCallerShare"},
		{"the processor alone", inbound.Protection{
			Shed: shed.Config{CPU: 0.9, Shadow: true, MaxRetryShare: 1, MaxConcurrency: 5},
		}, "shed.maxConcurrency"},
		{"a limit that is none", inbound.Protection{
			Shed: shed.Config{Concurrency: shed.Unlimited, MaxConcurrency: 9, MaxQueue: 1},
		}, "shed.maxConcurrency shed.maxQueue"},
		{"a fixed limit", inbound.Protection{
			Shed: shed.Config{Concurrency: shed.Fixed, MinConcurrency: 5, InitialConcurrency: 5, MaxQueue: 5},
		}, "shed.minConcurrency shed.initialConcurrency"},
		{"no queue", inbound.Protection{
			Shed: shed.Config{Concurrency: shed.Vegas, NoQueue: true, MaxQueue: 5, QueueTarget: ms, QueueInterval: ms,
				MaxCallerShare: 1},
		},
			"shed.maxQueue shed.queueTarget shed.queueInterval shed.maxCallerShare"},
		{"no methods", inbound.Protection{
			Idempotency: idempotency.Config{Required: true, Retention: time.Hour, Lease: time.Second, MaxBody: 1,
				MaxMemory: 65536, Fleet: true, WhenAway: "open"},
		},
			"idempotency.required idempotency.retention idempotency.lease idempotency.maxBody idempotency.maxMemory " +
				"idempotency.fleet idempotency.whenAway"},
		{"keys in memory", inbound.Protection{
			Idempotency: idempotency.Config{Methods: []string{"POST"}, MaxMemory: 65536, WhenAway: "open"},
		}, "idempotency.whenAway"},
		{"keys in Redis", inbound.Protection{
			Idempotency: idempotency.Config{Methods: []string{"POST"}, MaxMemory: 65536, WhenAway: "open", Fleet: true},
		}, "idempotency.maxMemory"},
		{"all of it switched off", inbound.Protection{RateLimit: inbound.ArrivalLimit{
			Config: ratelimit.Config{Disabled: true, Burst: 1},
		}, Shed: shed.Config{Disabled: true, MaxQueue: 1},
			Idempotency: idempotency.Config{Disabled: true, Required: true}}, ""},
	} {
		var paths []string
		if err := c.p.Ineffective(); err != nil {
			for line := range strings.Lines(err.Error()) {
				path, rest, _ := strings.Cut(line, ": ")
				if paths = append(paths, path); !strings.HasPrefix(rest, "has no effect; ") {
					t.Errorf("%s: %s", c.name, line)
				}
			}
		}
		if got := strings.Join(paths, " "); got != c.paths {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.paths)
		}
	}
}

func TestIneffectiveNamesLimitsOfAGuardThatDoNothing(t *testing.T) {
	p := abate.DefaultPolicy()
	p.RateLimit = abate.AttemptLimit{Config: ratelimit.Config{Burst: 1, MaxKeys: 1, Shadow: true}, MaxWait: ms}
	p.Throttle.Window, p.Throttle.MaxRejection, p.Throttle.MinimumNumberOfCalls, p.Throttle.Shadow = time.Second,
		0.5, 5, true
	p.RetryBudget.Kind, p.RetryBudget.Fleet = "tokens", true
	err := p.Ineffective()
	for _, path := range []string{"rateLimit.burst", "rateLimit.maxKeys", "rateLimit.shadow", "rateLimit.maxWait",
		"throttle.window", "throttle.maxRejection",
		"throttle.minimumNumberOfCalls", "throttle.shadow", "retryBudget.fleet"} {
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+path+": has no effect; ") {
			t.Errorf("nothing about %s in:\n%v", path, err)
		}
	}
	p.RateLimit.Limit, p.RateLimit.MaxKeys, p.Throttle.K, p.RetryBudget.Kind = ratePerSecond(1), 0, 2, "ratio"
	if err := p.Ineffective(); err != nil {
		t.Error(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}
