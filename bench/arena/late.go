package main

import (
	"context"
	"slices"
	"time"
)

// When a run is disturbed. One percent of the service's work may be a fifth longer than it should be, and nothing may
// stop for a quarter of an attempt's time limit: then what is measured is the machine.
const (
	lateOften = serviceTime / 5
	lateOnce  = attemptTimeout / 4
)

// lateness is by how much timers of this process fired too late during a run. Everybody on the machine has the same
// scheduler, so the programs beside it fare no better.
type lateness struct{ p99, most time.Duration }

// disturbs reports whether the machine was too busy for the run to count.
func (l lateness) disturbs() bool { return l.p99 > lateOften || l.most > lateOnce }

// worse compares two runs by how far they are beyond what is allowed.
func (l lateness) worse(than lateness) bool { return l.excess() > than.excess() }

func (l lateness) excess() float64 {
	return max(float64(l.p99)/float64(lateOften), float64(l.most)/float64(lateOnce))
}

// lookEvery is how often a timer is tried.
const lookEvery = 5 * time.Millisecond

// watchTimers measures until ctx ends.
func watchTimers(ctx context.Context) lateness {
	var all []time.Duration
	for ctx.Err() == nil {
		before := time.Now()
		time.Sleep(lookEvery)
		all = append(all, time.Since(before)-lookEvery)
	}
	return latenessOf(all)
}

// latenessOf sums up measured delays.
func latenessOf(all []time.Duration) lateness {
	if len(all) == 0 {
		return lateness{}
	}
	slices.Sort(all)
	return lateness{p99: all[len(all)*99/100], most: all[len(all)-1]}
}
