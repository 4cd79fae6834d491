// Package storetest is what an idempotency.Store has to pass: the one in memory, those for SQL and Redis, and yours.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) idempotency.Store { return open(t) }, storetest.Options{})
//	}
//
// Nothing in it depends on how fast the store or the machine is: what has to wait for the end of a lease either moves
// the store's clock or asks again until it is over, and what must not be over yet has an hour.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

// Options describe what surrounds the store. The zero Options are for a store on a server's clock.
type Options struct {
	// Advance moves the clock of the store that was opened last. nil: the clock is real, and the suite waits.
	Advance func(d time.Duration)
}

// Terms that the suite gives. A short one is waited for.
const (
	short = 40 * time.Millisecond
	long  = time.Hour
)

// limit is how long something that must happen is waited for on a real clock.
const limit = 30 * time.Second

// Run runs the suite. open returns a store for one test; tests may share a server, but not their keys. What the store
// holds is released by t.Cleanup in open.
func Run(t *testing.T, open func(t *testing.T) idempotency.Store, o Options) {
	for _, test := range []struct {
		name string
		run  func(s *suite)
	}{
		{"FirstRunsAndRepeatsGetItsAnswer", firstRuns},
		{"OneOfManyAtOnceRuns", oneOfMany},
		{"AnotherFingerprintIsAMismatch", mismatch},
		{"AfterTheLeaseTheNextTakesOver", takeover},
		{"OneOfManyTakesOver", oneTakesOver},
		{"WhoeverWasTakenOverChangesNothing", loser},
		{"LateButNotTakenOverIsInTime", lateInTime},
		{"RenewKeepsTheKey", renews},
		{"FailLetsTheNextRunAtOnce", fails},
		{"FailureOfATakeoverIsNoEnd", failsTakenOver},
		{"ATryEndsOnce", endsOnce},
		{"AMarkGivesWayToTheAnswer", completesMarked},
		{"WhatWasLostIsRestored", restores},
		{"KeysNobodyBegan", neverBegan},
		{"AnswersExpire", expires},
		{"KeysAreAnyBytes", anyKeys},
		{"KeysHaveALength", badKeys},
		{"AnswersComeBackAsTheyWere", answers},
		{"TruncatedIsKept", truncated},
		{"AnswersAreCopies", copies},
		{"ContextsThatAreOver", cancelled},
		{"ManyWorkersDoEachRequestOnce", onceEach},
		{"ManyWorkersKeepTheRules", stress},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(&suite{T: t, Store: open(t), advance: o.Advance, ctx: t.Context()})
		})
	}
}

type suite struct {
	*testing.T
	idempotency.Store
	ctx     context.Context
	advance func(d time.Duration)
}

// Fingerprints of requests that are not the same.
var (
	printA = idempotency.FingerprintOf("POST", "/orders", []byte("a"))
	printB = idempotency.FingerprintOf("POST", "/orders", []byte("b"))
)

// begin asks for key as a request of the usual kind.
func (s *suite) begin(key string, lease time.Duration) idempotency.Begun {
	s.Helper()
	return s.beginAs(key, printA, lease)
}

func (s *suite) beginAs(key string, fp idempotency.Fingerprint, lease time.Duration) idempotency.Begun {
	s.Helper()
	b, err := s.Begin(s.ctx, key, fp, lease)
	if err != nil {
		s.Fatalf("Begin: %v", err)
	}
	return b
}

// run begins key, which must be free, and returns the token.
func (s *suite) run(key string, lease time.Duration) (token uint64) {
	s.Helper()
	b := s.begin(key, lease)
	if b.State != idempotency.Run || b.TakenOver {
		s.Fatalf("Begin of a free key: %s, taken over %v; want run, false", b.State, b.TakenOver)
	}
	return b.Token
}

// complete must succeed.
func (s *suite) complete(key string, token uint64, r idempotency.Response) {
	s.Helper()
	if err := s.Complete(s.ctx, key, token, r, long); err != nil {
		s.Fatalf("Complete: %v", err)
	}
}

// state begins key and returns what the store says.
func (s *suite) state(key string) idempotency.State {
	s.Helper()
	return s.begin(key, long).State
}

// want ends the test unless the key's state is this.
func (s *suite) want(key string, state idempotency.State, when string) {
	s.Helper()
	if got := s.state(key); got != state {
		s.Fatalf("%s: %s, want %s", when, got, state)
	}
}

// replays ends the test unless the key's answer is r.
func (s *suite) replays(key string, r idempotency.Response, when string) {
	s.Helper()
	b := s.begin(key, long)
	if b.State != idempotency.Replay {
		s.Fatalf("%s: %s, want replay", when, b.State)
	}
	if !same(b.Response, r) {
		s.Fatalf("%s: the answer is %s, want %s", when, brief(b.Response), brief(r))
	}
}

// lost ends the test unless token can do nothing with key any more.
func (s *suite) lost(key string, token uint64, when string) {
	s.Helper()
	for name, err := range map[string]error{
		"Renew":    s.Renew(s.ctx, key, token, long),
		"Complete": s.Complete(s.ctx, key, token, answer("of the loser"), long),
		"Fail":     s.Fail(s.ctx, key, token),
	} {
		if !errors.Is(err, idempotency.ErrLost) {
			s.Fatalf("%s: %s returned %v, want ErrLost", when, name, err)
		}
	}
}

// ended ends the test unless an attempt that is done can neither go on nor fail.
func (s *suite) ended(key string, token uint64, when string) {
	s.Helper()
	for name, err := range map[string]error{"Renew": s.Renew(s.ctx, key, token, long), "Fail": s.Fail(s.ctx, key, token)} {
		if !errors.Is(err, idempotency.ErrLost) {
			s.Fatalf("%s: %s returned %v, want ErrLost", when, name, err)
		}
	}
}

// elapse lets at least d pass on the store's clock. Where that is real it begins a key of its own and asks until that
// is taken over.
func (s *suite) elapse(d time.Duration) {
	s.Helper()
	if s.advance != nil {
		s.advance(d)
		return
	}
	witness := "witness of the time"
	b := s.begin(witness, d)
	if b.State != idempotency.Run {
		s.Fatalf("the suite's own key is not free: %s", b.State)
	}
	s.eventually("the end of a lease", func() bool {
		b = s.begin(witness, long)
		return b.State == idempotency.Run
	})
	if err := s.Fail(s.ctx, witness, b.Token); err != nil {
		s.Fatalf("Fail: %v", err)
	}
	// The key remembers that it was taken over, and its lease is over.
}

// eventually asks until the answer is yes, while time passes.
func (s *suite) eventually(what string, done func() bool) {
	s.Helper()
	passed := func() bool {
		if done() {
			return true
		}
		if s.advance != nil {
			s.advance(short)
		}
		return false
	}
	if !poll(passed) {
		s.Fatalf("waited %v in vain for: %s", limit, what)
	}
}

// poll asks until the answer is yes. If it takes too long it returns false.
func poll(done func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(limit)
	defer over.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-over.C:
			return false
		}
	}
	return true
}

// answer is a usual one.
func answer(body string) idempotency.Response {
	return idempotency.Response{
		Status: 201,
		Header: []idempotency.Field{{Name: "Content-Type", Value: "text/plain"}, {Name: "Location", Value: "/orders/7"}},
		Body:   []byte(body),
	}
}

// same compares answers. An empty body or header may come back as nil.
func same(a, b idempotency.Response) bool {
	return a.Status == b.Status && a.Truncated == b.Truncated && slices.Equal(a.Header, b.Header) &&
		bytes.Equal(a.Body, b.Body)
}
