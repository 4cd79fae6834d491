package engine_test

import (
	"math"
	"testing"
)

func TestAGateTellsWhatItRefusedOfEachPriority(t *testing.T) {
	const two = `
clients:
  users: {arrivals: even, rate: 40, calls: [{to: api, priority: CRITICAL}]}
  jobs: {arrivals: even, rate: 200, calls: [{to: api, priority: SHEDDABLE}]}
services: {api: {workers: 10, serviceTime: 100ms}}
variants: {only: {policy: {defaults: {` + plain + `}, protect: {api: {shed: {maxConcurrency: 10, maxQueue: 10}}}}}}
duration: 20s
warmUp: 1s
`
	r := run(t, two)
	equal(t, "of those that matter", value(t, r, "shed(api, CRITICAL) < 1%"), 0)
	jobs := value(t, r, "shed(api, SHEDDABLE) < 1%")
	within(t, "of the others", jobs, 0.6, 0.8)
	within(t, "of all", value(t, r, "shed(api) < 1%"), 5*jobs/6-0.01, 5*jobs/6+0.01)
	if v := value(t, r, "shed(api, SHEDDABLE_PLUS) < 1%"); !math.IsNaN(v) {
		t.Errorf("of a priority that nobody has %v", v)
	}
	if v := value(t, run(t, world(plain, "clients: {shop: {rate: 5, calls: [api]}}", "services: {api: {}}")),
		"shed(api, CRITICAL) < 1%"); !math.IsNaN(v) {
		t.Errorf("without gates %v", v)
	}
}
