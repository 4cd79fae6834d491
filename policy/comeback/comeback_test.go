package comeback_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/comeback"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

func TestTheFirstComesAsSoonAsItCanAndTheOthersBehindIt(t *testing.T) {
	for _, start := range []time.Duration{0, -time.Hour, time.Hour, math.MaxInt64 - time.Minute} {
		var l comeback.Line
		rnd := rand.New(rand.NewPCG(1, 2))
		terms := comeback.Terms{First: sec, Each: 5 * ms, Most: 30 * sec}
		for i := range 100 {
			behind := time.Duration(i) * 5 * ms
			if got := l.Book(start, terms, rnd.Uint64()); got < sec+behind/2 || got > sec+behind*3/2 {
				t.Fatalf("from %v, number %d: %v, want around %v", start, i, got, sec+behind)
			}
		}
		if got := l.Book(start+10*sec, terms, 0); got != sec {
			t.Errorf("from %v, when all have come: %v, want 1s", start, got)
		}
	}
}

func TestNobodyIsToldToStayAwayForLongerThanTheBound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var l comeback.Line
	terms := comeback.Terms{First: 2 * sec, Each: 100 * ms, Most: 10 * sec}
	perSecond := map[time.Duration]int{}
	for range 1000 {
		got := l.Book(0, terms, rnd.Uint64())
		if got < 2*sec || got > 10*sec {
			t.Fatalf("%v", got)
		}
		perSecond[got/sec]++
	}
	for second, n := range perSecond {
		if second < 10 && (n < 90 || n > 165) { // 1000 in 8 seconds
			t.Errorf("%d come in second %d", n, second)
		}
	}
	for _, terms := range []comeback.Terms{
		{}, {First: -sec, Each: -sec, Most: -sec}, {First: time.Minute, Each: time.Hour, Most: sec},
	} {
		var l comeback.Line
		for range 3 {
			if got := l.Book(0, terms, rnd.Uint64()); got != max(terms.First, 0) {
				t.Errorf("%+v: %v", terms, got)
			}
		}
	}
}

func TestKeysHaveLinesOfTheirOwn(t *testing.T) {
	var l comeback.Lines
	terms := comeback.Terms{First: sec, Each: sec, Most: time.Hour}
	for round := range 4 {
		for key := range uint64(64) {
			behind := time.Duration(round) * sec
			if got, want := l.Book(0, key*0x9e3779b97f4a7c15, terms, uint64(behind/2)), sec+behind; got != want {
				t.Fatalf("key %d: %v, want %v", key, got, want)
			}
		}
	}
	for key := range uint64(100_000) { // more than are kept: whoever is forgotten begins anew
		if got := l.Book(0, key, terms, 0); got < sec || got > 6*sec {
			t.Fatalf("key %d: %v", key, got)
		}
	}
}

func TestTheLineIsOneForAllWhoAskAtOnce(t *testing.T) {
	var l comeback.Line
	var mu sync.Mutex
	seen := map[time.Duration]bool{} // half of the way to each place, which the draw of 0 tells
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				got := l.Book(0, comeback.Terms{First: sec, Each: ms, Most: time.Hour}, 0)
				mu.Lock()
				if seen[got] {
					t.Errorf("%v was told twice", got)
				}
				seen[got] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

func FuzzBook(f *testing.F) {
	f.Add(int64(0), int64(sec), int64(ms), int64(30*sec), uint64(7), uint64(1))
	f.Add(int64(math.MinInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64),
		uint64(math.MaxUint64), uint64(0))
	f.Fuzz(func(t *testing.T, now, first, each, most int64, draw, key uint64) {
		var line comeback.Line
		var lines comeback.Lines
		terms := comeback.Terms{First: time.Duration(first), Each: time.Duration(each), Most: time.Duration(most)}
		for i := range 5 {
			one := line.Book(time.Duration(now), terms, draw)
			if other := lines.Book(time.Duration(now), key, terms, draw); other != one {
				t.Errorf("number %d: %v, of a key %v", i, one, other)
			}
			if least := max(terms.First, 0); one < 0 || one > max(terms.Most, least) {
				t.Errorf("number %d: %v under %+v", i, one, terms)
			}
		}
	})
}

func BenchmarkBook(b *testing.B) {
	var l comeback.Line
	for b.Loop() {
		l.Book(0, comeback.Terms{First: sec, Each: ms, Most: time.Minute}, 1)
	}
}

// One moment in which the service seemed to take an hour for a request must not be heard of for an hour.
func TestALineForgetsAPaceThatWasTooSlowToBeTrue(t *testing.T) {
	var l comeback.Line
	l.Book(0, comeback.Terms{First: sec, Each: time.Hour, Most: 30 * sec}, 0)
	terms := comeback.Terms{First: sec, Each: ms, Most: 30 * sec}
	if got := l.Book(61*sec, terms, math.MaxUint64); got != sec {
		t.Errorf("a minute later one is told %v, want 1s", got)
	}
}
