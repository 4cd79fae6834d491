// Package sim rehearses a storm: it runs a scenario under one or more policies, many times, in virtual time, and says
// with what probability it ends well.
//
// The policies are those of production. [github.com/abate-go/abate/sim/engine] drives the very same guards with an
// event queue; [github.com/abate-go/abate/sim/scenario] is the file; [github.com/abate-go/abate/sim/expect] the
// language of expectations. This package makes the runs, judges them, and looks for the cliff and for what would help.
//
// In a test:
//
//	s, err := scenario.Load("checkout-outage.yaml")
//	...
//	result, err := sim.Run(ctx, s, sim.Options{})
//	...
//	if err := result.Err(); err != nil { // every expectation PASS
//		t.Fatal(err)
//	}
//
// # How sure is sure
//
// An expectation holds of a run or it does not. How often it must hold is part of it ("in 99% of runs"; 90 % if it does
// not say), and the verdict is PASS or FAIL only when the 95 % interval of what was counted lies wholly on one side.
// Runs stop when every expectation is decided, looked at only at fixed checkpoints. All variants of a scenario meet the
// same arrivals and service times, seed by seed.
package sim
