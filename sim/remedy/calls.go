package remedy

import (
	"fmt"
	"math"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/retry"
)

// option is one way to change a part of the policy at a place.
type option struct {
	part  string // "retryBudget"
	name  string // of this way: "adaptive"; the same at every place
	step  float64
	was   string
	lines []line
	queue *queueChange
}

// guardOptions are the changes of the guards of a call, one part after the other.
func guardOptions(p *place) []option {
	var all []option
	for _, part := range []func(*place) []option{retries, delays, timeouts, budgets, breakers, bulkheads, attemptLimits,
		throttles, hedges, owners, paces} {
		all = append(all, part(p)...)
	}
	return all
}

// away is how far it is from one number to another, in doublings.
func away(from, to float64) float64 { return math.Abs(math.Log2(to / from)) }

func retries(p *place) []option {
	var all []option
	now := p.policy.MaxRetries
	for _, n := range []int{now - 1, now - 2, now - 3, 0, 1, 2, 3, 5} {
		if n < 0 || n == now || len(all) > 0 && contains(all, fmt.Sprint(n)) || n > now+2 && n != 3 {
			continue
		}
		all = append(all, option{part: "maxRetries", name: fmt.Sprint(n), was: fmt.Sprint(now),
			step: away(float64(now+1), float64(n+1)), lines: []line{word("maxRetries", fmt.Sprint(n))}})
	}
	return all
}

func contains(all []option, name string) bool {
	for i := range all {
		if all[i].name == name {
			return true
		}
	}
	return false
}

func delays(p *place) []option {
	c := &p.policy.Retry
	if c.MaxRetries == 0 {
		return nil
	}
	var all []option
	if c.Backoff == retry.FixedBackoff || c.Backoff == retry.NoBackoff || c.Jitter == retry.NoJitter {
		all = append(all, option{part: "backoff", name: "exponential, full", was: fmt.Sprintf("%s, %s", c.Backoff, c.Jitter),
			step: 1, lines: []line{word("backoff", "exponential"), word("jitter", "full")}})
	}
	for _, factor := range []float64{4, 0.25, 16} {
		d := neat(time.Duration(float64(c.InitialDelay) * factor))
		if d < time.Millisecond || c.Backoff == retry.NoBackoff || d > c.MaxDelay {
			continue
		}
		all = append(all, option{part: "initialDelay", name: times(factor), was: c.InitialDelay.String(),
			step: away(1, factor), lines: []line{word("initialDelay", short(d))}})
	}
	return all
}

func timeouts(p *place) []option {
	var all []option
	add := func(part, name string, d, was time.Duration, step float64) {
		if d = neat(d); d < time.Millisecond || d == was {
			return
		}
		said := "off"
		if was > 0 {
			said = was.String()
		}
		all = append(all, option{part: part, name: name, was: said, step: step, lines: []line{word(part, short(d))}})
	}
	if t := p.policy.AttemptTimeout; t > 0 {
		for _, factor := range []float64{2, 0.5, 4, 0.25} {
			add("attemptTimeout", times(factor), time.Duration(float64(t)*factor), t, away(1, factor))
		}
	} else if p.latency > 0 {
		for _, factor := range []float64{10, 4, 40} {
			add("attemptTimeout", times(factor)+" latency", time.Duration(float64(p.latency)*factor), 0, 1.5+away(10, factor)/4)
		}
	}
	if t := p.policy.Timeout; t > 0 {
		for _, factor := range []float64{0.5, 2} {
			add("timeout", times(factor), time.Duration(float64(t)*factor), t, 1)
		}
	} else if p.patience > 0 {
		add("timeout", "patience", p.patience, 0, 1.5)
	}
	return all
}

func budgets(p *place) []option {
	if p.policy.MaxRetries == 0 && !p.policy.Hedge.Enabled() {
		return nil
	}
	var all []option
	now := p.policy.RetryBudget
	add := func(name string, c budget.Config, step float64) {
		c.Disabled, c.Window = false, 0
		all = append(all, option{part: "retryBudget", name: name, was: said(now, now.Enabled()), step: step,
			lines: []line{section("retryBudget", c, p.as.RetryBudget.Disabled)}})
	}
	fleet := max(p.callers, 1)
	if !now.Enabled() {
		for i, ratio := range []float64{0.2, 0.1, 0.02} {
			add(fmt.Sprintf("ratio %v", ratio), budget.Config{Ratio: ratio, Reserve: 10, Clients: fleet}, 1+float64(i)/4)
		}
		add("adaptive", budget.Config{Kind: budget.Adaptive, Reserve: 10, Clients: fleet}, 1.4)
		add("tokens", budget.Config{Kind: budget.Tokens, MaxTokens: 10, DepositPerSuccess: 0.1, Clients: fleet}, 1.6)
		return all
	}
	if now.Clients != fleet {
		c := now
		c.Clients = fleet
		add("clients", c, 0.3)
	}
	for _, factor := range []float64{0.5, 2, 0.2} {
		c := now
		c.Clients = fleet
		switch {
		case now.Kind == budget.Ratio:
			c.Ratio = digits(min(c.Ratio*factor, 1))
		case now.Kind == budget.Adaptive:
			c.MaxRatio, c.MinRatio = digits(min(c.MaxRatio*factor, 1)), digits(min(c.MinRatio*factor, 1))
		default:
			c.DepositPerSuccess, c.RefillPerSecond = digits(c.DepositPerSuccess*factor), digits(c.RefillPerSecond*factor)
		}
		add(times(factor), c, 0.3+away(1, factor))
	}
	if now.Kind != budget.Adaptive {
		add("adaptive", budget.Config{Kind: budget.Adaptive, Reserve: 10, Clients: fleet}, 1)
	}
	return all
}

func breakers(p *place) []option {
	var all []option
	now := p.policy.CircuitBreaker
	on := now.Enabled()
	add := func(name string, step float64, c breaker.Config) {
		if on && c.WithDefaults() == now {
			return
		}
		all = append(all, option{part: "circuitBreaker", name: name, was: said(p.as.CircuitBreaker, on), step: step,
			lines: []line{section("circuitBreaker", c, p.as.CircuitBreaker.Disabled)}})
	}
	// Of a caller with few calls a breaker that waits for many never opens.
	few, row := min(max(int(p.rate*5), 1), 5), min(max(int(p.rate*5)+1, 1), 3)
	quick := breaker.Config{FailureRateThreshold: 0.5, MinimumNumberOfCalls: few,
		MaxWaitDurationInOpenState: 2 * time.Second, WaitDurationInOpenState: 500 * time.Millisecond, RampUp: 2 * time.Second}
	add("thresholds", 1.5, breaker.Numbers())
	add("adaptive", 1.5, breaker.Config{Kind: breaker.Adaptive})
	add("adaptive, refusing", 1.6, breaker.Config{Kind: breaker.Adaptive, WhileOpen: breaker.Refuse})
	add("small", 1.7, quick)
	add("in a row", 1.7, breaker.Config{FailureThreshold: row, WaitDurationInOpenState: 500 * time.Millisecond,
		MaxWaitDurationInOpenState: 2 * time.Second, PermittedCallsInHalfOpen: 1, SuccessThreshold: 1})
	if slow := neat(max(4*p.latency, time.Millisecond)); p.latency > 0 {
		c := quick
		c.SlowCallRateThreshold, c.SlowCallDurationThreshold = 0.5, slow
		add("slow calls", 1.9, c)
	}
	if on {
		all = append(all, option{part: "circuitBreaker", name: "off", was: said(p.as.CircuitBreaker, on), step: 2,
			lines: []line{off("circuitBreaker")}})
	}
	if on && now.Kind == breaker.Thresholds {
		c := now
		c.MaxWaitDurationInOpenState = neat(c.MaxWaitDurationInOpenState / 4)
		c.WaitDurationInOpenState = neat(min(c.WaitDurationInOpenState, c.MaxWaitDurationInOpenState))
		add("shorter wait", 0.8, c)
		c = now
		c.MinimumNumberOfCalls = max(c.MinimumNumberOfCalls/4, 1)
		add("fewer calls", 0.8, c)
	}
	return all
}

// owners are changes of the layer that tries again, where there are several.
func owners(p *place) []option {
	if !p.retries || p.policy.MaxRetries == 0 {
		return nil
	}
	var all []option
	for _, owner := range []core.RetryOwner{core.OwnerEdge, core.OwnerNearest, core.OwnerNone} {
		if owner != p.policy.RetryOwner {
			all = append(all, option{part: "retryOwner", name: string(owner), was: string(p.policy.RetryOwner), step: 1,
				lines: []line{word("retryOwner", string(owner))}})
		}
	}
	return all
}

func paces(p *place) []option {
	if p.policy.Pacing.Enabled() {
		return nil
	}
	return []option{{part: "pacing", name: "adaptive", was: "off", step: 2,
		lines: []line{section("pacing", pacing.Config{Adaptive: true}, p.as.Pacing.Disabled)}}}
}
