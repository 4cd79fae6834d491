package budget

import "time"

// slots is how many parts a window has: deposits expire in steps of a tenth of it.
const slots = 10

// settings is a Config in the form the budget computes with: in range, in fixed point,
// divided by the number of clients. Immutable, so that calls read it without a lock.
type settings struct {
	kind       Kind // "" is off
	costs      [Hedge + 1]int64
	slot       time.Duration
	minDeposit int64
	maxDeposit int64
	start      int64   // what a new budget holds
	floor      int64   // what never expires (tokens: the size of the bucket)
	perSuccess int64   // tokens
	perSecond  float64 // tokens, in millionths
	fleet      bool    // the reserve is with the others: see Offer
	least      int64   // one retry
	reserve    int64   // of the whole fleet
}

func newSettings(c Config) *settings {
	if !c.Enabled() {
		return &settings{}
	}
	c = c.WithDefaults()
	clients := float64(min(max(c.Clients, 1), 1_000_000))
	s := &settings{kind: c.Kind}
	weight := 1.0
	if c.Kind == Tokens {
		weight = between(c.CostPerRetry, 0.01, 1000)
	}
	s.costs[Transient] = microUp(between(c.TransientCost, 1, 1000) * weight)
	s.costs[Overload] = microUp(between(c.OverloadCost, 1, 1000) * weight)
	s.costs[Hedge] = s.costs[Transient]
	// An instance whose share is less than one retry must still be able to save up for one.
	least := max(s.costs[Transient], s.costs[Overload])
	switch c.Kind {
	case Tokens:
		s.start = microDown(between(c.MaxTokens, 1, 1e6) / clients)
		s.perSecond = between(c.RefillPerSecond, 0, 1e6) / clients * one
		s.perSuccess = microDown(between(c.DepositPerSuccess, 0, 1000))
	case Adaptive:
		s.maxDeposit = microDown(between(c.MaxRatio, 0.0001, 1))
		s.minDeposit = min(microDown(between(c.MinRatio, 0.0001, 1)), s.maxDeposit)
	default:
		s.kind = Ratio
		s.maxDeposit = microDown(between(c.Ratio, 0.0001, 1))
		s.minDeposit = s.maxDeposit
	}
	if c.Kind != Tokens {
		s.reserve = microDown(between(c.Reserve, 0, 1e6))
		if s.fleet = c.Fleet; !s.fleet {
			s.start = microDown(between(c.Reserve, 0, 1e6) / clients)
		}
		s.slot = min(max(c.Window, time.Second), time.Hour) / slots
	}
	s.least, s.floor = least, max(s.start, least)
	return s
}

// banked reports whether deposits and withdrawals go through the bank.
func (s *settings) banked() bool { return s.kind == Ratio || s.kind == Adaptive }

// cost is what an extra attempt draws. A class that is not known is a transient one.
func (s *settings) cost(c Cost) int64 {
	if int(c) >= len(s.costs) {
		c = Transient
	}
	return s.costs[c]
}
