package pacing_test

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/pacing"
)

// A database is back. Twenty connections are wanted at once; they are opened one after the other, slowly at first.
func ExamplePacer() {
	p := pacing.New(pacing.Config{PerSecond: 10, RampUp: 5 * time.Second, MaxWait: time.Minute})
	p.Restart(0, 1<<63)
	for n := 1; n <= 20; n++ {
		wait, _ := p.Take(0, 1<<63, time.Minute)
		if n == 1 || n%5 == 0 {
			fmt.Println(n, wait.Round(10*time.Millisecond))
		}
	}
	// Output:
	// 1 370ms
	// 5 1.75s
	// 10 2.74s
	// 15 3.5s
	// 20 4.13s
}
