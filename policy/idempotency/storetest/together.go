package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/abate-go/abate/policy/idempotency"
)

func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func oneOfMany(s *suite) {
	const many = 32
	for round := range 10 {
		key := fmt.Sprint("round ", round)
		var ran, running atomic.Int64
		var token atomic.Uint64
		together(many, func(int) {
			b, err := s.Begin(s.ctx, key, printA, long)
			switch {
			case err != nil:
				s.Errorf("Begin: %v", err)
			case b.State == idempotency.Run:
				ran.Add(1)
				token.Store(b.Token)
			case b.State == idempotency.Running:
				running.Add(1)
			}
		})
		if ran.Load() != 1 || running.Load() != many-1 {
			s.Fatalf("of %d at once %d run and %d get the answer that somebody does; want 1 and the others", many, ran.Load(),
				running.Load())
		}
		s.complete(key, token.Load(), answer(key))
		together(many, func(int) {
			b, err := s.Begin(s.ctx, key, printA, long)
			if err != nil || b.State != idempotency.Replay || !same(b.Response, answer(key)) {
				s.Errorf("repeat: %s with %s, %v; want replay", b.State, brief(b.Response), err)
			}
		})
	}
}

func oneTakesOver(s *suite) {
	const many = 32
	for round := range 5 {
		key := fmt.Sprint("round ", round)
		first := s.run(key, short)
		s.elapse(short)
		var ran atomic.Int64
		together(many, func(i int) {
			if i == 0 { // whoever slept wakes up in the middle of it
				if err := s.Renew(s.ctx, key, first, long); err == nil {
					ran.Add(1)
				} else if !errors.Is(err, idempotency.ErrLost) {
					s.Errorf("Renew: %v", err)
				}
				return
			}
			b, err := s.Begin(s.ctx, key, printA, long)
			switch {
			case err != nil:
				s.Errorf("Begin: %v", err)
			case b.State == idempotency.Run:
				ran.Add(1)
				if !b.TakenOver || b.Token <= first {
					s.Errorf("taken over %v with token %d after %d", b.TakenOver, b.Token, first)
				}
			case b.State != idempotency.Running:
				s.Errorf("one of many: %s, want running", b.State)
			}
		})
		if ran.Load() != 1 {
			s.Fatalf("%d of %d hold the key after the lease, want 1", ran.Load(), many)
		}
	}
}

// onceEach is what the store is for: workers try until each request is done, some tries fail, and each effect is there
// once.
func onceEach(s *suite) {
	const requests, workers = 20, 8
	var effects [requests]atomic.Int64
	together(workers, func(worker int) {
		random := rand.New(rand.NewPCG(uint64(worker), 1))
		for _, i := range random.Perm(requests) {
			key, fp := fmt.Sprint("request ", i), idempotency.FingerprintOf("POST", fmt.Sprint(i), nil)
			var b idempotency.Begun
			if !poll(func() bool {
				b = s.tryOnce(key, fp, &effects[i], random.IntN(3) == 0)
				return b.State == idempotency.Replay || s.Failed()
			}) {
				s.Errorf("request %d is still %s after %v", i, b.State, limit)
			}
			if b.State == idempotency.Replay && !same(b.Response, answer(key)) {
				s.Errorf("request %d: the answer is %s", i, brief(b.Response))
			}
		}
	})
	for i := range effects {
		if n := effects[i].Load(); n != 1 {
			s.Errorf("request %d was done %d times", i, n)
		}
	}
}

func (s *suite) tryOnce(key string, fp idempotency.Fingerprint, effect *atomic.Int64, fail bool) idempotency.Begun {
	b, err := s.Begin(s.ctx, key, fp, long)
	switch {
	case err != nil || b.State != idempotency.Run:
	case fail:
		err = s.Fail(s.ctx, key, b.Token)
	default:
		effect.Add(1)
		err = s.Complete(s.ctx, key, b.Token, answer(key), long)
	}
	if err != nil {
		s.Errorf("%s: %v", key, err)
	}
	return b
}

// stress: whoever holds a key under a long lease holds it alone, loses it to nobody, and tokens only grow.
func stress(s *suite) {
	const keys, workers, steps = 4, 8, 60
	var holders [keys]atomic.Int64
	var last [keys]atomic.Uint64
	together(workers, func(worker int) {
		random := rand.New(rand.NewPCG(uint64(worker), 2))
		for range steps {
			i := random.IntN(keys)
			key := fmt.Sprint("key ", i)
			b, err := s.Begin(s.ctx, key, printA, long)
			if err != nil {
				s.Errorf("Begin: %v", err)
				return
			}
			if b.State != idempotency.Run {
				continue
			}
			if n := holders[i].Add(1); n != 1 {
				s.Errorf("%d hold one key", n)
			}
			if before := last[i].Swap(b.Token); b.Token <= before {
				s.Errorf("token %d after %d", b.Token, before)
			}
			if err = s.Renew(s.ctx, key, b.Token, long); err != nil {
				s.Errorf("Renew by the holder: %v", err)
			}
			holders[i].Add(-1)
			if random.IntN(4) > 0 {
				err = s.Fail(s.ctx, key, b.Token)
			} else {
				err = s.Complete(s.ctx, key, b.Token, answer(key), 0) // forgotten at once
			}
			if err != nil {
				s.Errorf("the holder's end: %v", err)
			}
		}
	})
}
