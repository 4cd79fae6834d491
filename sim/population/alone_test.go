//go:build !race

package population_test

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/abate-go/abate/policy/retry"
)

// alone runs clients one by one, all of which fail at once whenever they try, and returns the mean and standard
// deviation of their attempts, and the share that gave up before the end.
func alone(c retry.Config, clients int, end time.Duration) (mean, sd, gaveUp float64) {
	policy := retry.New(c)
	random := rand.New(rand.NewPCG(5, 6))
	var sum, squares float64
	for range clients {
		q := retry.Question{}
		for {
			q.Rand = random.Uint64()
			delay, verdict := policy.Next(q)
			if verdict != retry.Retry {
				gaveUp += 1 / float64(clients)
				break
			}
			if q.Elapsed+delay >= end {
				break
			}
			q.Retries, q.Elapsed, q.Previous = q.Retries+1, q.Elapsed+delay, delay
		}
		n := float64(q.Retries + 1)
		sum += n
		squares += n * n
	}
	mean = sum / float64(clients)
	return mean, math.Sqrt(squares/float64(clients) - mean*mean), gaveUp
}
