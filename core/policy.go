package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/policy/throttle"
)

// Retry is the retry part of a Policy. Its keys stand at the top level of a service in the policy file.
type Retry = retry.Config

// Policy is everything one guard needs to know: the twin of what the policy file says of it, field for key. What the
// file says of a service beside that is in package policyfile. The zero Policy is a plain pass-through; DefaultPolicy
// is where the policy file starts from. A part is off while its Config is zero, but for two: a policy that asks for
// retries or hedges gets DefaultPolicy's budget and circuit breaker, unless it says otherwise: with a Config of its
// own, or with Disabled: true. Copy and change it freely; New and Guard.Update take their own copy.
type Policy struct {
	// Timeout bounds the whole call: waiting for admission, all attempts and all back-off. Of a gRPC call it is the
	// deadline, of which the service hears in grpc-timeout: a stream ends at it too. 0 means that only the caller's
	// context bounds it.
	Timeout time.Duration `yaml:"timeout" range:"0s..24h" example:"2s"`
	// AttemptTimeout bounds each attempt, reading the answer included; of a gRPC stream, the wait for its first
	// message. 0 means no bound of its own. An attempt that runs into it is a failure.
	AttemptTimeout time.Duration `yaml:"attemptTimeout" range:"0s..24h" example:"500ms"`

	Retry `yaml:",inline"`

	// RetryOwner says which layer of a chain of services tries again: nearest (the one closest to the failure; the
	// others share what the first call of the tree allows), edge (the first one, and nobody behind it) or none (each
	// for itself, 3 x 3 x 3 = 27). Empty means nearest.
	RetryOwner RetryOwner `yaml:"retryOwner" enum:"nearest|edge|none" example:"edge"`

	// InternalHeaders says whether attempts tell the service what only services of your own should know: all headers
	// that begin with Abate- or X-Envoy-, among them the attempt's number, the time left and what is left of the call
	// tree's retries. send or omit. Empty: services that the policy file lists are told, hosts that it does not list
	// are not. With omit such headers of the caller are taken off too.
	InternalHeaders InternalHeaders `yaml:"internalHeaders" enum:"send|omit" example:"omit"`

	// RetryOn lists what may be retried. It replaces the adapter's own list (HTTP: 408, 429, 500, 502, 503, 504 and
	// errors of the connection): a status ("503"), a class ("5xx"), "gateway-error" (502, 503, 504),
	// "connect-failure", "reset", "timeout" or "error" (any error), or a gRPC code such as "UNAVAILABLE". Codes say
	// too that gRPC methods may be repeated, see retryMethods. It holds for functions under abate.Do too: without
	// "error" an ordinary Go error is not retried.
	RetryOn []string `yaml:"retryOn" example:"[gateway-error, connect-failure]"`
	// NeverRetryOn lists what may not be retried, whatever else says so. Same words as retryOn.
	NeverRetryOn []string `yaml:"neverRetryOn" example:"[\"501\"]"`
	// RetryMethods lists the HTTP methods that may be repeated without an Idempotency-Key. The list replaces the
	// default, which is the safe methods GET, HEAD, OPTIONS and TRACE. A request with an Idempotency-Key may be
	// repeated whatever its method. A gRPC method is listed by its full name ("/shop.Payment/Get", "/shop.Payment/*");
	// without that, without a key and without codes in retryOn it is not repeated.
	RetryMethods []string `yaml:"retryMethods" example:"[GET, HEAD, PUT]"`

	// RetryBudget bounds the load that retries and hedges add together.
	RetryBudget budget.Config `yaml:"retryBudget"`
	// CircuitBreaker stops calling a dependency that fails, and comes back gently.
	CircuitBreaker breaker.Config `yaml:"circuitBreaker"`
	// Bulkhead bounds how many calls run at once and how many may wait.
	Bulkhead bulkhead.Config `yaml:"bulkhead"`
	// RateLimit bounds how many attempts are sent in how much time.
	RateLimit AttemptLimit `yaml:"rateLimit"`
	// Pacing spreads attempts evenly, and slowly at first after an outage: for new connections. See ConnectionPolicy.
	Pacing pacing.Config `yaml:"pacing"`
	// Throttle stops offering what the dependency has been refusing: adaptive throttling on the client's side.
	Throttle throttle.Config `yaml:"throttle"`
	// Hedge sends a second copy of a slow attempt. Only calls that say they may be repeated at the same time are
	// hedged.
	Hedge hedge.Config `yaml:"hedge"`
	// Fallback is the degraded answer of the HTTP client when the call fails. In Go code use DoWithFallback.
	Fallback Fallback `yaml:"fallback"`

	// Classify judges an error that Do's function returned; nil takes every error as a retryable failure. Marks
	// (Permanent, Ignore, RetryAfter) and the caller's cancellation go before it. Not in the policy file.
	Classify func(error) Outcome `yaml:"-"`
	// Delay is how long a retry waits, instead of backoff and jitter; nil for those. It gets the number of the retry,
	// from 1, what the last attempt came to, and 64 random bits, and must be pure: the same for the same. What it
	// returns is moved into the range from 0 to MaxDelay; a longer RetryAfter of the dependency, the deadline and
	// MaxElapsed hold as for any delay. It is not asked after the last attempt. Not in the policy file.
	Delay func(retry int, last Outcome, rnd uint64) time.Duration `yaml:"-"`
	// Budget is drawn from instead of a budget of the guard's own, so that the guards of one server share it;
	// RetryBudget is then not looked at. nil for none. Not in the policy file.
	Budget *budget.Budget `yaml:"-"`
	// SharedBudget is drawn from beside the guard's own budget: one for an endpoint, and one for all. A retry or
	// hedge draws from both or from neither, and first attempts earn for both. Make it with budget.New, once, and put
	// it into the policies of all guards that share it. nil for none. Not in the policy file.
	SharedBudget *budget.Budget `yaml:"-"`
	// Observer is told what the guard does; nil for none. Not in the policy file.
	Observer Observer `yaml:"-"`
	// Places is what callers of the guard hold while they wait: of the service that calls, its gate (inbound.Gate), or a
	// bulkhead or worker pool. nil: nobody knows, and only the guard's own bulkhead tells. Not in the policy file; a guard
	// of a policy file holds the slots of that file's gates.
	Places Places `yaml:"-"`
	// Rand is the source of random numbers; nil takes math/rand/v2. It must be safe for concurrent use unless the
	// guard is driven by one goroutine. A simulator or test sets it. Not in the policy file.
	Rand func() uint64 `yaml:"-"`
}

// InternalHeaders says whether a service is told what is meant for services of one's own: see Policy.InternalHeaders.
type InternalHeaders string

const (
	// SendInternal tells it, also if the policy file does not list it.
	SendInternal InternalHeaders = "send"
	// OmitInternal does not.
	OmitInternal InternalHeaders = "omit"
)

// ForStrangers returns the policy for a host that nobody has named: unless it says otherwise, internal headers are
// omitted.
func (p Policy) ForStrangers() Policy {
	p.InternalHeaders = cmp.Or(p.InternalHeaders, OmitInternal)
	return p
}

// AttemptLimit is a rate limit on the attempts that a guard sends.
type AttemptLimit struct {
	ratelimit.Config `yaml:",inline"`

	// MaxWait is how long an attempt may wait for its turn; one that would have to wait longer, or too long for its
	// deadline, is refused at once. Who leaves while it waits has used its turn. Range 0 to 1h. Zero: nobody waits.
	MaxWait time.Duration `yaml:"maxWait" range:"0s..1h" example:"100ms"`
}

// Ineffective calls idle with each setting that has no effect without Limit, or for a guard, whether it is set, and
// what to do about it.
func (l AttemptLimit) Ineffective(idle func(key string, set bool, fix string)) {
	idle("maxKeys", l.MaxKeys != 0, "remove it: all attempts share one bucket")
	if l.Disabled || !l.Limit.IsZero() {
		return
	}
	const fix = "set limit, for example limit: 1000/s"
	idle("burst", l.Burst != 0, fix)
	idle("shadow", l.Shadow, fix)
	idle("maxWait", l.MaxWait != 0, fix)
}

// Fallback is a static HTTP answer for when a call fails: better a stale price than an error page.
type Fallback struct {
	// Disabled switches the fallback off.
	Disabled bool `yaml:"disabled"`
	// Status of the degraded answer. 0 means no fallback.
	Status int `yaml:"status" range:"200..599" example:"200"`
	// Body of the degraded answer.
	Body string `yaml:"body" example:"'{\"degraded\":true}'"`
	// ContentType of the body. Default: application/json.
	ContentType string `yaml:"contentType" example:"application/json"`
	// StaleIfError lets the proxy give the last good answer to the same GET, if it is no older than this, before it
	// gives the static one. 0 means never. The Go library does not keep answers.
	StaleIfError time.Duration `yaml:"staleIfError" range:"0s..24h" example:"5m"`
	// Shared says that an answer belongs to everybody who agrees in the headers of identity. Without it an answer is
	// kept only if its service says that it is shared, by "Cache-Control: public" or s-maxage.
	Shared bool `yaml:"shared"`
	// Identity names the request headers that tell whose an answer is: one that is kept is given only to requests
	// that agree in all of them. Empty means the headers that callers under protect, and keys of their rate limits,
	// are told by.
	Identity []string `yaml:"identity" example:"[X-Tenant]"`
}

// Enabled reports whether there is an answer to give.
func (f Fallback) Enabled() bool { return !f.Disabled && f.Status != 0 }

// DefaultPolicy is storm-safe: 3 retries with exponential back-off from 100 ms (×2, 10 s cap, full jitter), retries
// and hedges together at most 10 % of first attempts plus a reserve of 10, and a circuit breaker of the kind
// Adaptive, which learns how the dependency answers and has no numbers. It sets no timeout: how long an answer may
// take, only you know. It rests on random systems (package sim/harm, docs/harm.md): there it is compared with no
// policy at all. Fields left zero take the default that their comment names; Guard.Describe shows them all written
// out.
func DefaultPolicy() Policy {
	return Policy{
		Retry:          Retry{MaxRetries: 3},
		RetryBudget:    budget.Config{Kind: budget.Ratio, Ratio: 0.1, Reserve: 10},
		CircuitBreaker: breaker.Config{Kind: breaker.Adaptive},
	}
}

// ConnectionPolicy is for opening connections to a database, a cache or a broker, of which every client lost all at
// the same moment. An attempt may take 5 s and is tried again once or twice; after 3 failures in a row the circuit
// opens, and then one probe at a time looks whether the other side is back, after 100 ms at first and every 0.7 to 1
// s at last, drawn at random. Callers wait for it, within their deadline and 5 s. Before a failure connections are
// opened freely. Once the other side is back from an outage, each instance has one connection at once, and twice as
// many in each round after that: a round is half as long as the outage was, at most 1 s, which is how long other
// instances take to notice. So of fifty instances that share a hundred places nearly all have one, before some have
// many. While a caller waits who has waited for most of a round since then, and openings are quick, rounds are a
// tenth of a second each. A refusal for too many halves the number, and makes rounds long again. The numbers rest on
// tests/outages, tests/pods and the model of policy/pacing. adapter/abatesql, abatenet and abatepgx open connections
// under it.
func ConnectionPolicy() Policy {
	return Policy{
		AttemptTimeout: 5 * time.Second,
		Retry:          Retry{MaxRetries: 2, MaxDelay: time.Second},
		RetryOwner:     OwnerNone,
		RetryBudget:    budget.Config{Kind: budget.Ratio, Ratio: 0.1, Reserve: 10},
		CircuitBreaker: breaker.Config{
			FailureThreshold: 3, PermittedCallsInHalfOpen: 1, SuccessThreshold: 1,
			WaitDurationInOpenState: 100 * time.Millisecond, MaxWaitDurationInOpenState: time.Second,
			WaitDurationJitter: 0.5,
		},
		Pacing: pacing.Config{Adaptive: true},
	}
}

// RetriesCodes reports whether RetryOn names codes of gRPC.
func (p *Policy) RetriesCodes() bool {
	return slices.ContainsFunc(p.RetryOn, func(word string) bool { return slices.Contains(GRPCCodes[1:], word) })
}

// WithDefaults returns the policy with every default written out, as a guard uses it. It is idempotent, and the one
// place where one part's default depends on another part.
func (p Policy) WithDefaults() Policy {
	if p.MaxRetries > 0 || p.Hedge.Enabled() { // what adds load is bounded, unless somebody has declined that in words
		if p.Budget == nil && p.RetryBudget == (budget.Config{}) {
			p.RetryBudget = DefaultPolicy().RetryBudget
		}
		if p.CircuitBreaker == (breaker.Config{}) {
			p.CircuitBreaker = DefaultPolicy().CircuitBreaker
		}
	}
	p.Retry = p.Retry.WithDefaults()
	p.RetryOwner = cmp.Or(p.RetryOwner, OwnerNearest)
	p.RetryBudget = p.RetryBudget.WithDefaults()
	p.CircuitBreaker = p.CircuitBreaker.WithKind()
	if p.CircuitBreaker.HalfOpenPermitLease == 0 && p.CircuitBreaker.Kind != breaker.Adaptive {
		// A probe that outlives its attempt timeout is lost: its permit goes to the next one.
		p.CircuitBreaker.HalfOpenPermitLease = p.AttemptTimeout
	}
	p.CircuitBreaker = p.CircuitBreaker.WithDefaults()
	p.Bulkhead = p.Bulkhead.WithDefaults()
	p.RateLimit.Config = p.RateLimit.Config.WithDefaults()
	p.Pacing = p.Pacing.WithDefaults()
	p.Throttle = p.Throttle.WithDefaults()
	p.Hedge = p.Hedge.WithDefaults()
	if p.Fallback.Status != 0 && p.Fallback.ContentType == "" {
		p.Fallback.ContentType = "application/json"
	}
	return p
}

// Allowance is what the policy's own retry budget lets retries and hedges add, and whether it has one.
func (p *Policy) Allowance() (a budget.Allowance, limited bool) {
	return p.RetryBudget.Allowance(), p.RetryBudget.Enabled()
}

// MaxExtraAttempts is how many retries and hedges the policy lets one call have at most.
func (p *Policy) MaxExtraAttempts() int {
	if h := p.Hedge.WithDefaults(); h.Enabled() {
		return p.MaxRetries + h.MaxHedges
	}
	return p.MaxRetries
}
