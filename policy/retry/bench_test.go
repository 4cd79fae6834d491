package retry_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/retry"
)

func BenchmarkNext(b *testing.B) {
	p := retry.New(retry.Config{MaxRetries: 3, MaxElapsed: time.Minute})
	rnd := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		rnd += 0x9e3779b97f4a7c15
		p.Next(retry.Question{Retries: 1, Rand: rnd})
	}
}

func BenchmarkNextWithRetryAfter(b *testing.B) {
	p := retry.New(retry.Config{MaxRetries: 3, MaxElapsed: time.Minute})
	rnd := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		rnd += 0x9e3779b97f4a7c15
		p.Next(retry.Question{Retries: 1, RetryAfter: time.Second, Rand: rnd})
	}
}

func BenchmarkDelayDecorrelated(b *testing.B) {
	p := retry.New(retry.Config{Jitter: retry.DecorrelatedJitter})
	rnd := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		rnd += 0x9e3779b97f4a7c15
		p.Delay(1, time.Second, rnd)
	}
}
