package main

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// inService runs body in virtual time with an endpoint that has a day, asked directly.
func inService(t *testing.T, d day, body func(t *testing.T, e *endpoint)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := newEndpoint(d, 0, func(ctx context.Context, l net.Listener, _ *endpoint) {
			_ = l.Close()
			<-ctx.Done()
		})
		if err != nil {
			t.Fatal(err)
		}
		defer e.close()
		synctest.Wait()
		body(t, e)
	})
}

// ask sends so many requests at once, each with a time limit, and returns what became of them when all are done.
func ask(e *endpoint, n int, limit time.Duration) (done, busy, lost int) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	all := make(chan error, n)
	for range n {
		go func() { all <- e.handle(ctx) }()
	}
	for range n {
		switch err := <-all; {
		case err == nil:
			done++
		case errors.Is(err, errLost):
			lost++
		default:
			busy++
		}
	}
	return done, busy, lost
}

func TestTheServiceHasTwentyWorkersAndAQueueOfNineHundred(t *testing.T) {
	inService(t, day{}, func(t *testing.T, e *endpoint) {
		start := time.Now()
		if done, busy, lost := ask(e, workers+queueLength, time.Minute); done != workers+queueLength {
			t.Errorf("%d served, %d refused, %d lost", done, busy, lost)
		}
		if took := time.Since(start); took != (workers+queueLength)/workers*serviceTime {
			t.Errorf("they took %v", took)
		}
		if _, busy, _ := ask(e, workers+queueLength+7, time.Minute); busy != 7 {
			t.Errorf("%d refused, want 7", busy)
		}
	})
}

func TestWhoHasLeftIsServedAllTheSame(t *testing.T) {
	inService(t, day{}, func(t *testing.T, e *endpoint) {
		if done, _, lost := ask(e, 10*workers, serviceTime/2); done != 0 || lost != 10*workers {
			t.Errorf("%d served, %d lost", done, lost)
		}
		start := time.Now()
		ask(e, 1, time.Minute)
		if waited := time.Since(start); waited < 9*serviceTime {
			t.Errorf("the next one was served after %v: nobody worked for those who left", waited)
		}
	})
}

func TestAHangEndsWithTheTrouble(t *testing.T) {
	inService(t, day{faults: during(condition{hangs: 1})}, func(t *testing.T, e *endpoint) {
		k := clock{time.Now()}
		e.begin(k)
		time.Sleep(faultStart)
		if done, _, _ := ask(e, workers, time.Minute); done != workers {
			t.Errorf("%d served", done)
		}
		if now := k.now(); now != faultEnd+serviceTime {
			t.Errorf("served at %v, want %v", now, faultEnd+serviceTime)
		}
	})
}

func TestWhatWasQueuedIsLostWhenItGoesDown(t *testing.T) {
	inService(t, day{faults: []fault{{0, time.Second, condition{hangs: 1}}, {time.Second, 2 * time.Second,
		condition{down: true}}}}, func(t *testing.T, e *endpoint) {
		e.begin(clock{time.Now()})
		if done, _, lost := ask(e, 3*workers, 10*time.Second); done != workers || lost != 2*workers {
			t.Errorf("%d served and %d lost of %d in work and %d queued", done, lost, workers, 2*workers)
		}
	})
}

func TestFewerWorkersDoLess(t *testing.T) {
	inService(t, day{faults: []fault{{0, time.Minute, condition{workers: 8}}}}, func(t *testing.T, e *endpoint) {
		e.begin(clock{time.Now()})
		time.Sleep(time.Second) // until those who are not there have noticed
		start := time.Now()
		ask(e, 80, time.Minute)
		if took := time.Since(start); took != 80/8*serviceTime {
			t.Errorf("80 requests took 8 workers %v", took)
		}
	})
}

func TestRequestsAreCountedByTheBucketOfTheirArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := clock{time.Now()}
		var made atomic.Int64
		asked, answered := drive(t.Context(), k, []time.Duration{0, bucket - 1, bucket, dayLength - 1},
			func(ctx context.Context) bool {
				made.Add(1)
				if until, ok := ctx.Deadline(); !ok || time.Until(until) != patience {
					t.Errorf("a caller waits until %v", until)
				}
				time.Sleep(bucket) // the answer comes in a later bucket
				return k.now() < dayLength
			})
		if made.Load() != 4 || asked[0] != 2 || asked[1] != 1 || answered[0] != 2 || answered[1] != 1 ||
			asked[len(asked)-1] != 1 || answered[len(answered)-1] != 0 {
			t.Errorf("asked %v, answered %v", asked, answered)
		}
	})
}
