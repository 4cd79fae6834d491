package population

import "math"

// checkClients is how many clients Check runs at most.
const checkClients = 100_000

// Agreement is how well Cohort agrees with Exact.
type Agreement struct {
	// Error is the difference between the attempts per second of both: see Curve.L1.
	Error float64
	// Clients is how many clients were run to find out.
	Clients int
}

// Check runs Cohort and Exact on the same population, made smaller where it has more than 100,000 clients, and compares
// them. Chance weighs more in a small population, so the full one agrees as well or better.
func Check(c Config, seed uint64) (Agreement, error) {
	c = c.scaled(checkClients)
	cohort, err := Cohort(c)
	if err != nil {
		return Agreement{}, err
	}
	exact, err := Exact(c, seed, nil)
	if err != nil {
		return Agreement{}, err
	}
	return Agreement{cohort.L1(exact), c.Clients}, nil
}

// scaled returns c with at most so many clients, and a server as much smaller.
func (c Config) scaled(clients int) Config {
	if c.Clients <= clients {
		return c
	}
	share := float64(clients) / float64(c.Clients)
	c.Clients = clients
	c.Capacity = float64(c.Capacity * share)
	if c.QueueLimit > 0 {
		c.QueueLimit = max(1, int(math.Round(float64(float64(c.QueueLimit)*share))))
	}
	return c
}

// Estimate returns about how many events Exact will need for c, and how many bytes of memory, from a run with few
// clients. Both are 0 for an invalid Config.
func Estimate(c Config) (events int64, bytes int64) {
	const clients, most = 20_000, 1 << 20
	small, err := c.scaled(clients).prepare()
	if err != nil {
		return 0, 0
	}
	e := newExact(&small, 1)
	pending := e.queue.Len()
	for e.curve.Events < most && e.step() {
		pending = max(pending, e.queue.Len())
	}
	scale := float64(c.Clients) / float64(small.Clients)
	share := 1.0 // share of the run: a closed loop goes on as it began
	if now, ok := e.queue.Peek(); ok {
		share = float64(max(now, 1)) / float64(e.end)
	}
	events = int64(math.Min(float64(float64(e.curve.Events)*scale)/share, math.MaxInt64/2))
	const perEvent, perSlot = 18, 4 * 8
	bytes = int64(float64(float64(pending)*scale)*perEvent) + int64(small.slots())*perSlot
	return events, bytes
}
