package abategrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/registry"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/retry"
)

type jsonConfig struct {
	MethodConfig    []jsonMethod    `json:"methodConfig,omitempty"`
	RetryThrottling *jsonThrottling `json:"retryThrottling,omitempty"`
}

type jsonMethod struct {
	Name          []configName `json:"name"`
	WaitForReady  bool         `json:"waitForReady,omitempty"`
	Timeout       string       `json:"timeout,omitempty"`
	RetryPolicy   *jsonRetry   `json:"retryPolicy,omitempty"`
	HedgingPolicy *jsonHedging `json:"hedgingPolicy,omitempty"`
}

type jsonRetry struct {
	MaxAttempts          int      `json:"maxAttempts"`
	InitialBackoff       string   `json:"initialBackoff"`
	MaxBackoff           string   `json:"maxBackoff"`
	BackoffMultiplier    float64  `json:"backoffMultiplier"`
	RetryableStatusCodes []string `json:"retryableStatusCodes"`
}

type jsonHedging struct {
	MaxAttempts         int      `json:"maxAttempts"`
	HedgingDelay        string   `json:"hedgingDelay"`
	NonFatalStatusCodes []string `json:"nonFatalStatusCodes,omitempty"`
}

type jsonThrottling struct {
	MaxTokens  float64 `json:"maxTokens"`
	TokenRatio float64 `json:"tokenRatio"`
}

// JSON writes the policies as a service config, for clients without Abate: of other languages, or behind a resolver
// that hands it out. The notes say what of the policies it cannot say, and what it says only roughly. The error joins
// what is wrong with names and policies.
//
// Retries are written only for policies that name codes in retryOn, or all the methods in retryMethods: a service
// config repeats every call, whatever it does.
func (c *ServiceConfig) JSON() (text []byte, notes []string, err error) {
	w := &configWriter{seen: make(map[string]bool)}
	for i := range c.Methods {
		w.method(fmt.Sprintf("methodConfig[%d]", i), &c.Methods[i])
	}
	if err := errors.Join(w.found...); err != nil {
		return nil, nil, fmt.Errorf("abategrpc: service config: %w", err)
	}
	text, err = json.MarshalIndent(w.out, "", "  ")
	return append(text, '\n'), w.notes, err
}

type configWriter struct {
	out   jsonConfig
	notes []string
	found []error
	seen  map[string]bool
	from  budget.Config // what retryThrottling was written from
}

func (w *configWriter) note(path, text string) { w.notes = append(w.notes, path+": "+text) }

func (w *configWriter) method(path string, m *MethodPolicy) {
	out := jsonMethod{WaitForReady: m.WaitForReady}
	if len(m.Methods) == 0 {
		w.found = append(w.found, fmt.Errorf(`%s: is for no method; give full names, or "*" for all`, path))
	}
	for _, pattern := range m.Methods {
		name, err := nameOf(pattern)
		switch {
		case err != nil:
			w.found = append(w.found, fmt.Errorf("%s: %w", path, err))
		case w.seen[pattern]:
			w.found = append(w.found, fmt.Errorf("%s: %s has a policy already; remove one of them", path, pattern))
		}
		w.seen[pattern] = true
		out.Name = append(out.Name, name)
	}
	eachField(m.Policy.Validate(), func(e *abate.FieldError) { w.found = append(w.found, fmt.Errorf("%s: %w", path, e)) })
	p := m.Policy.WithDefaults()
	// as written: the rest is the guard's
	p.RetryBudget, p.CircuitBreaker = m.Policy.RetryBudget.WithDefaults(), m.Policy.CircuitBreaker
	if p.Timeout > 0 {
		out.Timeout = seconds(p.Timeout)
	}
	out.RetryPolicy = w.retries(path, m, &p)
	out.HedgingPolicy = w.hedges(path, m, &p, out.RetryPolicy != nil)
	w.throttling(path, &p, out.RetryPolicy != nil || out.HedgingPolicy != nil)
	w.rest(path, &p)
	w.out.MethodConfig = append(w.out.MethodConfig, out)
}

// seconds writes a duration as protobuf's JSON does.
func seconds(d time.Duration) string {
	text := strconv.FormatInt(int64(d/time.Second), 10)
	if part := d % time.Second; part > 0 {
		text += "." + strings.TrimRight(fmt.Sprintf("%09d", int64(part)), "0")
	}
	return text + "s"
}

// retries writes the retryPolicy, if there is one to write.
func (w *configWriter) retries(path string, m *MethodPolicy, p *abate.Policy) *jsonRetry {
	codes := codesToRetry(p)
	switch {
	case p.MaxRetries == 0:
		return nil
	case !m.repeatsAll():
		w.note(path, "retries are left out: the policy repeats only calls that may be, and a service config would repeat "+
			"all; name codes in retryOn, for example UNAVAILABLE, or the methods in retryMethods")
		return nil
	case len(codes) == 0:
		w.note(path, "retries are left out: retryOn and neverRetryOn leave no code of gRPC")
		return nil
	}
	out := &jsonRetry{min(p.MaxRetries+1, mostAttempts), seconds(p.InitialDelay), seconds(p.MaxDelay), p.Multiplier, codes}
	if p.MaxRetries >= mostAttempts {
		w.note(path, fmt.Sprintf("maxRetries %d is written as %d: gRPC makes %d attempts at most", p.MaxRetries,
			mostAttempts-1, mostAttempts))
	}
	switch p.Backoff {
	case retry.FixedBackoff:
		out.BackoffMultiplier, out.MaxBackoff = 1, out.InitialBackoff
	case retry.LinearBackoff:
		out.BackoffMultiplier = 1.5
		w.note(path, "backoff linear is written as exponential with 1.5, which is near it for as many retries as gRPC makes")
	case retry.NoBackoff:
		out.InitialBackoff, out.MaxBackoff, out.BackoffMultiplier = "0.001s", "0.001s", 1
		w.note(path, "backoff none is written as 1ms")
	}
	if p.Backoff != retry.NoBackoff && (p.Jitter != retry.FactorJitter || p.JitterFactor != 0.2) {
		w.note(path, "jitter "+string(p.Jitter)+" cannot be said: gRPC varies each pause by 20 %")
	}
	w.unsaid(path, "maxElapsed", p.MaxElapsed > 0)
	w.unsaid(path, "maxRetryAfter", p.MaxRetryAfter != 30*time.Second)
	return out
}

// hedges writes the hedgingPolicy, if there is one to write.
func (w *configWriter) hedges(path string, m *MethodPolicy, p *abate.Policy, retried bool) *jsonHedging {
	switch {
	case !p.Hedge.Enabled():
		return nil
	case retried:
		w.note(path, "hedge is left out: gRPC takes either retries or hedges")
		return nil
	case p.Hedge.Delay == 0:
		w.note(path, "hedge is left out: a service config needs hedge.delay, it cannot learn it")
		return nil
	case !m.repeatsAll():
		w.note(path, "hedge is left out: the policy hedges only calls that may be repeated, and a service config would "+
			"hedge all; name codes in retryOn, for example UNAVAILABLE, or the methods in retryMethods")
		return nil
	}
	if p.Hedge.Quantile > 0 {
		w.note(path, "hedge.quantile cannot be said; hedge.delay is written")
	}
	w.note(path, "clients written in Go ignore a hedgingPolicy")
	return &jsonHedging{p.Hedge.MaxHedges + 1, seconds(p.Hedge.Delay), codesToRetry(p)}
}

// throttling writes retryThrottling, of which there is one for a server.
func (w *configWriter) throttling(path string, p *abate.Policy, repeats bool) {
	b := p.RetryBudget
	switch {
	case p.Budget != nil:
		w.note(path, "the shared budget is left out: nobody can tell what it was made from")
		return
	case !b.Enabled():
		if repeats {
			w.note(path, "has no retryBudget, so nothing bounds the retries of all calls together")
		}
		return
	case w.out.RetryThrottling != nil:
		if b != w.from {
			w.note(path, "retryBudget differs from the one before, which is written: gRPC has one for a server")
		}
		return
	}
	w.from = b
	out := &jsonThrottling{2 * b.MaxTokens, b.DepositPerSuccess}
	switch b.Kind {
	case budget.Tokens:
		w.unsaid(path, "retryBudget.refillPerSecond", b.RefillPerSecond > 0)
		w.unsaid(path, "retryBudget.costPerRetry", b.CostPerRetry != 1)
	default:
		*out = jsonThrottling{2 * b.Reserve, b.Ratio}
		if b.Kind == budget.Adaptive {
			out.TokenRatio = b.MaxRatio
		}
		w.note(path, fmt.Sprintf("retryBudget %s is written as retryThrottling, which is stricter in an outage: only "+
			"successes earn retries", b.Kind))
	}
	w.unsaid(path, "retryBudget.clients", b.Clients > 1)
	w.unsaid(path, "retryBudget.fleet", b.Fleet)
	w.unsaid(path, "retryBudget.overloadCost", b.OverloadCost != 1 || b.TransientCost != 1)
	if out.MaxTokens > 1000 || out.MaxTokens < 2 {
		w.note(path, fmt.Sprintf("retryThrottling.maxTokens would be %v, and may be 2 to 1000", out.MaxTokens))
		out.MaxTokens = min(max(out.MaxTokens, 2), 1000)
	}
	out.TokenRatio = max(out.TokenRatio, leastRatio)
	w.out.RetryThrottling = out
}

// unsaid notes a part of a policy that a service config has no word for.
func (w *configWriter) unsaid(path, part string, on bool) {
	if on {
		w.note(path, part+" cannot be said in a service config")
	}
}

// rest notes what else there is in the policy.
func (w *configWriter) rest(path string, p *abate.Policy) {
	words := false
	for _, word := range append(p.RetryOn[:len(p.RetryOn):len(p.RetryOn)], p.NeverRetryOn...) {
		words = words || !isCode(word)
	}
	w.unsaid(path, "a word other than a code of gRPC in retryOn or neverRetryOn", words)
	w.unsaid(path, "attemptTimeout", p.AttemptTimeout > 0)
	w.unsaid(path, "retryOwner", p.RetryOwner != core.OwnerNearest)
	for i := range registry.Guard {
		if part := &registry.Guard[i]; part.Key != "retryBudget" && part.Key != "hedge" { // for which there are words
			w.unsaid(path, part.Key, part.Enabled(p))
		}
	}
	w.unsaid(path, "fallback", p.Fallback.Enabled())
}
