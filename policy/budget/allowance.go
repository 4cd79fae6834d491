package budget

// Allowance is what a budget lets retries and hedges add to the first attempts, in the same words for all kinds.
type Allowance struct {
	// Ratio is how many extra attempts each first attempt earns in the long run, at best: 0.1 is 10 % more load. 0 where
	// only time earns any.
	Ratio float64
	// FailingRatio is the same while half of the attempts fail; 0 where first attempts that fail earn none.
	FailingRatio float64
	// PerSecond is how many extra attempts time earns, in each second.
	PerSecond float64
	// Reserve is how many may be made beyond all that, once.
	Reserve float64
}

// Allowance returns what the budget allows all its clients together; nothing if it is off. It costs no allocation.
func (c Config) Allowance() Allowance {
	if !c.Enabled() {
		return Allowance{}
	}
	c = c.WithDefaults()
	switch c.Kind {
	case Tokens:
		cost := c.CostPerRetry * min(c.TransientCost, c.OverloadCost)
		return Allowance{Ratio: c.DepositPerSuccess / cost, PerSecond: c.RefillPerSecond / cost, Reserve: c.MaxTokens / cost}
	case Adaptive:
		return Allowance{Ratio: c.MaxRatio, FailingRatio: (c.MinRatio + c.MaxRatio) / 2, Reserve: c.Reserve}
	}
	return Allowance{Ratio: c.Ratio, FailingRatio: c.Ratio, Reserve: c.Reserve}
}
