//go:build unix

package pods_test

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// podOrder is the variable that makes the test binary a pod.
const podOrder = "ABATE_POD"

// order is what a pod is told.
type order struct {
	Kind    string // postgres or redis
	Address string // DSN or host:port
	Guarded bool   // by abate.ConnectionPolicy
}

const (
	pool     = 20                     // connections at most, all of which may stay open
	workers  = 20                     // each makes one query after the other
	every    = 100 * time.Millisecond // between two queries of a worker, drawn between half of it and one and a half
	again    = 100 * time.Millisecond // after a query that failed, drawn likewise: no back-off
	patience = 2 * time.Second        // how long a query may take, waiting for a connection included
)

// query is what a worker does again and again.
type query func(ctx context.Context) error

// servePod is the life of a pod: it works until its standard input ends, and tells what it saw on its standard output.
func servePod(text string) {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	seen := newTally(os.Stdout)
	open := map[string]func(order, *tally) (query, error){"postgres": openPostgres, "redis": openRedis}[o.Kind]
	ask, err := open(o, seen)
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { work(ctx, ask, seen) })
	}
	seen.tell(ctx)
	wg.Wait()
}

// work is a worker of a service that knows nothing of storms: what failed is tried again after a short pause.
func work(ctx context.Context, ask query, seen *tally) {
	rest(ctx, every)
	for ctx.Err() == nil {
		limited, done := context.WithTimeout(ctx, patience)
		err := ask(limited)
		done()
		if err == nil {
			seen.served()
			rest(ctx, every)
		} else {
			seen.failed()
			rest(ctx, again)
		}
	}
}

// rest waits between half of d and one and a half.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
