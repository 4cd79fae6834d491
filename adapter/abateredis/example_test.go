package abateredis_test

import (
	"context"
	"fmt"
	"time"

	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/adapter/abateredis/trial"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
)

func Example() {
	addr, stop, err := trial.Start() // for trying; else the address of a Redis
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	fleet, err := abateredis.Open(abateredis.Config{Addresses: []string{addr}, Timeout: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fleet.Close()

	limit := inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 3, Per: time.Hour}, Burst: 3}}
	limiter := fleet.Limiter("api", limit)
	for range 4 {
		d, ok := limiter.TryTake(core.Now(), "tenant-7", 1)
		if !ok {
			d = limiter.Take(context.Background(), "tenant-7", 1)
		}
		fmt.Println(d.Allowed, d.Remaining)
	}
	// Output:
	// true 2
	// true 1
	// true 0
	// false 0
}
