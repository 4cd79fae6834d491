package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// caller makes one request and reports whether it got a good answer. It ends with ctx, when patience is over.
type caller func(ctx context.Context) bool

// arrivals are the times of a day's requests, from a seed: every contender of a pass gets the same.
func arrivals(d day, seed uint64) (at []time.Duration) {
	random := rand.New(rand.NewPCG(seed, 1))
	for now := time.Duration(0); ; {
		// Exponential gaps, with the rate that holds where each begins.
		now += time.Duration(random.ExpFloat64() / d.rateAt(now) * float64(time.Second))
		if now >= dayLength {
			return at
		}
		at = append(at, now)
	}
}

// drive makes the requests at their times, whatever becomes of the earlier ones, and counts the answered ones.
func drive(ctx context.Context, k clock, at []time.Duration, ask caller) (asked, answered []int) {
	asked, answered = make([]int, dayLength/bucket), make([]int, dayLength/bucket)
	var mu sync.Mutex
	var pending sync.WaitGroup
	for _, when := range at {
		if !k.wait(ctx, when) {
			break
		}
		i := int(when / bucket)
		asked[i]++
		pending.Go(func() {
			until, cancel := context.WithDeadline(ctx, k.start.Add(when+patience))
			defer cancel()
			if ask(until) {
				mu.Lock()
				defer mu.Unlock()
				answered[i]++
			}
		})
	}
	pending.Wait()
	return asked, answered
}
