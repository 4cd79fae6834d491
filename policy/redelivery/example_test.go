package redelivery_test

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// A message fails at every delivery; during the second one the circuit is open, so that one does not count.
func ExamplePlan() {
	plan := redelivery.NewPlan(redelivery.Config{Delay: 30 * time.Second}) // 30s, 5m, 30m
	tier, delivery := redelivery.Main, 1
	for step := 1; ; step++ {
		v := plan.Next(redelivery.Failure{Tier: tier, Delivery: delivery, CircuitOpen: step == 2, Held: 3})
		if v.Action == redelivery.DeadLetter {
			fmt.Printf("delivery %d failed: dead letter, %s\n", delivery, v.Reason)
			return
		}
		fmt.Printf("delivery %d failed: again in %v, %s\n", delivery, v.Delay, v.Reason)
		if tier = v.Tier; !v.Excused {
			delivery++
		}
	}
	// Output:
	// delivery 1 failed: again in 30s, retry
	// delivery 2 failed: again in 5m0s, excused
	// delivery 2 failed: again in 30m0s, retry
	// delivery 3 failed: again in 30m0s, retry
	// delivery 4 failed: dead letter, exhausted
}

// Two of three records are done, but not the first: a restart begins with it.
func ExampleLane() {
	lane := redelivery.NewLane(redelivery.LaneConfig{Concurrency: 10, Window: 1000})
	for offset := range int64(3) {
		lane.Push(redelivery.Item{Offset: 1000 + offset})
	}
	for {
		seq, ok, _ := lane.Next(0)
		if !ok {
			break
		}
		if seq > 0 {
			lane.Finish(seq)
		}
	}
	fmt.Println(lane.Committable())
	lane.Finish(0)
	fmt.Println(lane.Committable())
	// Output:
	// 1000 true
	// 1003 true
}

func ExamplePace() {
	pace := redelivery.NewPace(redelivery.Drain{Factor: 1.2, RampUp: 10 * time.Second})
	now := time.Hour
	for range 2000 { // 100 deliveries a second
		pace.Start(now)
		pace.Done(now, 1, true)
		now += 10 * time.Millisecond
	}
	pace.Trouble(now) // the circuit opens
	now += time.Minute
	pace.Start(now)
	pace.Done(now, 1, true) // a probe succeeds
	for _, after := range []time.Duration{0, 5 * time.Second, 10 * time.Second} {
		fmt.Printf("after %v: %.0f/s\n", after, pace.State(now+after).Limit)
	}
	// Output:
	// after 0s: 12/s
	// after 5s: 66/s
	// after 10s: 120/s
}
