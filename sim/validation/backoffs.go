package validation

import (
	"fmt"
	"math"

	"github.com/abate-go/abate/sim/engine"
)

// derived is how many runs are behind each mean of the table, and original behind each number of the first program.
const (
	derived  = 2000
	original = 100
)

// published is a mean with the standard deviation of one run, and what the original program printed; 0 if it did not.
type published struct{ mean, sd, original float64 }

// backoffs are the optimistic lock of "Exponential Backoff And Jitter". A read, its reply, the write and its reply are
// four hops of |Normal(10, 2)| ms. The outer two are the link; the inner two, between which the row must not have
// changed, are the service time: their sum is Normal(20, √8).
//
// Decorrelated jitter is compared while its cap does not matter. At the cap the published one makes every delay that
// would be longer the same, and ours goes on drawing below it: by design, as clients would else meet again.
func backoffs() []experiment {
	kinds := []struct{ name, policy string }{
		{"exponential", "initialDelay: 10ms, jitter: none"},
		{"decorrelated", "initialDelay: 5ms, jitter: decorrelated"},
		{"equal", "initialDelay: 10ms, jitter: equal"},
		{"full", "initialDelay: 10ms, jitter: full"},
		{"none", "backoff: none"},
	}
	var all []experiment
	for _, q := range []struct {
		clients     int
		time, calls [5]published
	}{
		{10, [5]published{{3484.5, 1313, 0}, {436.2, 87, 0}, {728.8, 188, 0}, {464.3, 102, 0}, {379.7, 35, 0}},
			[5]published{{50.79, 4.22, 0}, {37.71, 2.28, 0}, {42.49, 2.63, 0}, {39.07, 2.22, 0}, {50.84, 4.20, 0}}},
		{20, [5]published{{14516, 2842, 0}, {826.6, 191, 0}, {1634.7, 461, 0}, {998.4, 260, 0}, {604.2, 53, 0}},
			[5]published{{150.4, 13.8, 0}, {101.1, 4.95, 0}, {108.1, 4.12, 0}, {100.3, 3.51, 0}, {152.6, 12.1, 0}}},
		{100, [5]published{{63423, 3783, 63512}, {4596.7, 691, 4572.5}, {6640.1, 657, 6717.9}, {4910.3, 541, 4768.6},
			{2026.8, 45, 2027.1}},
			[5]published{{1854.8, 57, 1855.4}, {1001.0, 30, 1005.4}, {812.4, 7.9, 811.7}, {795.6, 7.0, 796.3},
				{2421.8, 32, 2423.5}}},
		{190, [5]published{{101238, 4370, 101172}, {7923.6, 868, 7974.5}, {9412.8, 618, 9346.7}, {7467.4, 537, 7460.6},
			{3536.4, 47, 3541.1}},
			[5]published{{5162.8, 123, 5171.2}, {2435.8, 59, 2434.6}, {1760.3, 12, 1758.8}, {1772.2, 12, 1773.6},
				{8004.6, 69, 8013.5}}},
	} {
		for k, kind := range kinds {
			if kind.name == "decorrelated" && q.clients >= 100 {
				continue
			}
			all = append(all, backoff(q.clients, kind.name, kind.policy, q.time[k], q.calls[k]))
		}
	}
	return all
}

func backoff(clients int, kind, delays string, time, calls published) experiment {
	id := fmt.Sprintf("aws-backoff/%d-%s/", clients, kind)
	what := fmt.Sprintf("%d clients, one row, %s: ", clients, kind)
	last := func(r *engine.Record) float64 { return r.LastEnd.Seconds() * 1000 }
	x := experiment{
		source: "M. Brooker, Exponential Backoff And Jitter (AWS 2015): its model, means of 2000 runs, and of its own " +
			"program's 100", runs: 100,
		model: fmt.Sprintf(`
duration: 400s
warmUp: 0s
clients: {writers: {once: %d, calls: [{to: row, latency: normal 10ms sd 2ms}]}}
services: {row: {optimisticLock: true, serviceTime: normal 20ms sd 2.828427ms}}
`, clients) + policy("maxRetries: 100, maxDelay: 2s, %s, retryOn: [\"409\"], "+bare, delays),
		claims: []claim{
			{id: id + "time", what: what + "until all are done, ms", published: time.mean,
				deviation: time.sd / math.Sqrt(derived), how: Mean, record: last},
			{id: id + "calls", what: what + "writes", published: calls.mean, deviation: calls.sd / math.Sqrt(derived), how: Mean,
				record: arrived(0)},
		},
	}
	if time.original > 0 {
		x.claims = append(x.claims,
			claim{id: id + "time-original", what: what + "ms, original", published: time.original, alike: original, how: Mean,
				record: last},
			claim{id: id + "calls-original", what: what + "writes, original", published: calls.original, alike: original,
				how: Mean, record: arrived(0)})
	}
	return x
}
