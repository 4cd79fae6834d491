package validation

import (
	"time"

	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/sim/population"
)

// populations are ten million phones and a hiccup of two minutes, at a hundredth of the size and one by one. With full
// jitter the source has 99 % served after 237 s; here it is 238, with any number of clients: how its server admits
// within a second is not known, so that line is not compared.
func populations() []experiment {
	const source = "10 million clients, 2 min outage, then 1.2 × their rate: an earlier prototype of this simulator"
	var all []experiment
	for _, q := range []struct {
		jitter          retry.Jitter
		attempts, first float64
	}{
		{retry.NoJitter, 7.71, 5.0},
		{retry.FullJitter, 9.61, 6.6},
	} {
		c := phones(100_000, q.jitter)
		id, what := "phones/"+string(q.jitter)+"/", "phones, jitter "+string(q.jitter)+": "
		all = append(all, experiment{source: source, runs: 30, population: &c, claims: []claim{
			{id: id + "attempts", what: what + "attempts per client", published: q.attempts, within: 0.005, how: Stated,
				curve: func(r *population.Curve) float64 { return r.Totals().Attempts / float64(c.Clients) }},
			{
				id:        id + "first",
				what:      what + "first second of recovery, × capacity",
				published: q.first,
				within:    0.05,
				how:       Stated,
				curve:     func(r *population.Curve) float64 { return r.PerSecond(r.Attempts)[120] / c.Capacity },
			},
		}})
	}
	all[0].claims = append(all[0].claims, claim{
		id:        "phones/none/served",
		what:      "phones, jitter none: 99 % are served after, s",
		published: 245.5,
		within:    1.5,
		how:       Stated,
		curve:     func(r *population.Curve) float64 { at, _ := r.ServedBy(0.99); return at.Seconds() },
	})
	return all
}

// phones each call once in an outage of two minutes; the server then takes 1.2 times their rate.
func phones(clients int, jitter retry.Jitter) population.Config {
	const outage = 2 * time.Minute
	return population.Config{
		Clients:  clients,
		Within:   outage,
		Duration: 10 * time.Minute,
		Retry:    retry.Config{MaxRetries: 100, InitialDelay: time.Second, MaxDelay: time.Minute, Jitter: jitter},
		Capacity: 1.2 * float64(clients) / outage.Seconds(),
		Outages:  []population.Outage{{To: outage}},
	}
}
