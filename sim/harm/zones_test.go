package harm_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// zoned is a random system in zones: how many callers and replicas each has, how busy it is, and what goes wrong.
func zoned(rnd *rand.Rand) string {
	letters := []string{"a", "b", "c", "d"}[:2+rnd.IntN(3)]
	zones := func(n int) (string, map[string]int) {
		var list []string
		count := map[string]int{}
		for i := range n {
			z := letters[rnd.IntN(len(letters))]
			if rnd.IntN(2) == 0 {
				z = letters[i%len(letters)]
			}
			list = append(list, `"`+z+`"`)
			count[z]++
		}
		return "[" + strings.Join(list, ", ") + "]", count
	}
	replicas, instances := 3+rnd.IntN(10), 2+rnd.IntN(8)
	there, count := zones(replicas)
	callers, _ := zones(instances)
	workers, takes := 1+rnd.IntN(8), 5+rnd.IntN(60)
	capacity := float64(replicas*workers) * 1000 / float64(takes)
	busy := 0.2 + 0.75*rnd.Float64()
	rate := min(capacity*busy, 500)
	takesNow := float64(replicas*workers) * 1000 * busy / rate
	var hit string
	for z := range count {
		if hit == "" || z < hit {
			hit = z
		}
	}
	about := fmt.Sprintf(`zone: "%s"`, hit)
	if rnd.IntN(3) == 0 {
		about = "share: " + []string{"20%", "50%", "100%"}[rnd.IntN(3)]
	}
	fault := []string{"outage: s, mode: blackhole", "outage: s, mode: refuse", "outage: s, mode: hang",
		"outage: s, mode: fail", "slowdown: s, factor: 5", "errors: s, rate: 50%",
		"capacity: s, factor: 0.4", "loss: s, rate: 30%"}[rnd.IntN(8)]
	if workers == 1 {
		fault = strings.Replace(fault, "capacity: s, factor: 0.4", "slowdown: s, factor: 2.5", 1)
	}
	across := []string{"0s", "500us", "2ms"}[rnd.IntN(3)]
	return fmt.Sprintf(`duration: 70s
warmUp: 0s
clients: {f: {rate: %.1f, instances: %d, zones: %s, calls: [{to: s, latency: 200us, acrossZones: %s}]}}
services: {s: {replicas: %d, zones: %s, balancing: least-request, workers: %d,
  serviceTime: exponential %.3fms, queue: {limit: 200}}}
faults: [{at: 45s, for: 12s, %s, %s}]
model: {drain: 2s}
`, rate, instances, callers, across, replicas, there, workers, takesNow, about, fault)
}

const guardedZone, unzoned = "attemptTimeout: 1s", ", ignoreZones: true"

// inTime is the share of the requests that were answered, before, during and after the trouble together.
func inTime(t *testing.T, text, policy string, seed uint64) (good, all float64) {
	t.Helper()
	text += "variants: {only: {policy: {defaults: {" + policy + "}}}}\n"
	s, err := scenario.Parse("zoned.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	e, err := engine.New(s, &s.Variants[0])
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(seed, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Fleets[0].Offered {
		all += float64(n)
	}
	for _, n := range r.Fleets[0].Good {
		good += float64(n)
	}
	return good, all
}

// Own zone and health checks do no harm: over random systems in zones, with whatever goes wrong, as many requests are
// answered in time as without them, but for chance. ABATE_HARM_ZONES=1000 plays more systems, and prints each.
func TestZonesAndChecksDoNoHarm(t *testing.T) {
	if testing.Short() || racing {
		return // a run of each takes 0.2 s, and there is nothing to race
	}
	systems := 6
	_, many := fmt.Sscan(os.Getenv("ABATE_HARM_ZONES"), &systems)
	const naive = ", maxRetries: 0, outlierDetection: {disabled: true}"
	for _, row := range []struct{ name, with, without string }{
		{"zones", guardedZone, guardedZone + unzoned},
		{"zones, no policy", guardedZone + naive, guardedZone + unzoned + naive},
		{"checks", guardedZone + unzoned + ", healthCheck: {kind: http, interval: 2s}", guardedZone + unzoned},
	} {
		sum, worst := 0., 0.
		for i := range systems {
			text := zoned(rand.New(rand.NewPCG(uint64(i), 77)))
			with, all := inTime(t, text, row.with, 1)
			without, _ := inTime(t, text, row.without, 1)
			points := 100 * (with - without) / all
			sum, worst = sum+points, min(worst, points)
			if many == nil {
				t.Logf("%s, system %d: %+.2f points of %.2f", row.name, i, points, 100*without/all)
			}
		}
		if mean := sum / float64(systems); mean < -0.5 || worst < -4 {
			t.Errorf("%s: %+.2f points on average, at worst %+.2f", row.name, mean, worst)
		}
	}
}
