package budget

// Cost says what the extra attempt follows, which decides how much it draws.
type Cost uint8

// What an extra attempt may follow.
const (
	Transient Cost = iota // a failed attempt; draws Config.TransientCost
	Overload              // an answer that asks for less load; draws Config.OverloadCost
	Hedge                 // an attempt that still runs; draws Config.TransientCost
)
