package scenario

import (
	"errors"
	"fmt"
	"slices"

	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/sim/expect"
)

// aboutConnections are the measures that need a pool.
var aboutConnections = []string{"connections", "connects", "connectPeak", "unopened"}

// expectations reports those that nothing in this scenario could meet or miss.
func (c *checker) expectations(path string, list []expect.Expectation) {
	begin, _ := c.s.Trouble()
	faults := begin < c.s.Duration
	for i := range list {
		e := &list[i]
		at := fmt.Sprintf("%s[%d]", path, i)
		if c.broken(at) {
			continue
		}
		var wrong expect.Errors
		if err := e.Check(c.names.subjects); errors.As(err, &wrong) {
			for _, one := range wrong {
				c.Add(at, one.Problem, one.Fix())
			}
			continue
		}
		quoted := strictyaml.Quote(e.Text)
		afterwards := e.Measure == "recovery" || e.Measure == "collapse" || e.Measure == "userVisible" ||
			e.Measure == "serving" || e.Measure == "drained"
		gates := e.Measure == "shed" || e.Measure == "rateLimited" || e.Measure == "gateWait" || e.Measure == "limit"
		queues := e.Measure == "queueWait" || e.Measure == "queue" || e.Measure == "utilization"
		switch {
		case c.s.Duration == 0:
		case !faults && (afterwards || e.Measure == "load" || e.Window == expect.After || e.Window == expect.During):
			c.Add(at, quoted+" needs a fault, and there is none", "add one to faults, or remove this")
		case faults && begin == 0 && e.Window == expect.Before:
			c.Add(at, quoted+" needs some time before the first fault, which begins at 0s", "let it begin later")
		case slices.Contains(aboutConnections, e.Measure) && !c.graph.pooled[e.Subject]:
			c.Add(at, quoted+" needs connections, and no caller of "+e.Subject+" has a pool, or sessions",
				"write the call as {to: "+e.Subject+", pool: 20}")
		case gates && !c.s.gated(e.Subject):
			c.Add(at, quoted+" needs a gate in front of "+e.Subject+", and no variant has one",
				"write protect: {"+e.Subject+": {}} in the policy of a variant")
		case slices.Contains(aboutConsumers, e.Measure) && !c.s.consumes(e.Subject):
			c.Add(at, quoted+" needs a fleet that consumes", "write topic: {partitions: 10} in the fleet, or remove this")
		case e.Measure == "lateness" && !c.s.retriesLater(e.Subject):
			c.Add(at, quoted+" needs retry topics, and no variant has any",
				"write kafka: {tiers: [30s, 5m]} in the policy of the service that is called")
		case e.Measure == "hits" && !c.s.caches(e.Subject):
			c.Add(at, quoted+" needs a cache, and "+e.Subject+" is none", "set its cache, for example cache: {keys: 10000}")
		case (e.Measure == "replicas" || e.Measure == "restarts") && !c.s.lives(e.Subject):
			c.Add(at, quoted+" needs replicas that come and go, and those of "+e.Subject+" stay as they are",
				"set its crash, probes or autoscale")
		case e.Measure == "load" && begin == 0:
			c.Add(at, quoted+" compares with the time before the first fault, which begins at 0s", "let it begin later")
		case e.Measure == "amplification" && !c.graph.first[e.Subject] && !c.graph.unclear:
			c.Add(at, quoted+" compares with the requests that need "+e.Subject+", and it is only called when another fails",
				"expect attempts("+e.Subject+") instead")
		case c.s.Scale > 1 && (e.Measure == "queue" || slices.Contains(aboutConnections, e.Measure) || e.Measure == "peak" ||
			e.Measure == "load" || e.Measure == "deadLetters" || e.Measure == "lag"):
			c.Add(at, quoted+fmt.Sprintf(" counts the system that is scaled down by %d, which has fewer, and more chance",
				c.s.Scale), "expect queueWait, attempts or utilization instead, or write scale: 1")
		case queues && c.unlimited(c.s, e.Subject) && !c.s.hangs(e.Subject):
			c.Add(at, quoted+" needs a service with workers, and "+e.Subject+" has none", "set its workers")
		}
	}
}
