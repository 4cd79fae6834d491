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
