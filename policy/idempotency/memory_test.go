package idempotency_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/idempotency/storetest"
)

// clock is moved by hand.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Duration      { return time.Duration(c.Load()) }
func (c *clock) advance(d time.Duration) { c.Add(int64(d)) }

func TestMemoryPassesTheSuite(t *testing.T) {
	var c clock
	open := func(t *testing.T) idempotency.Store { return idempotency.NewMemory(64<<20, c.now) }
	storetest.Run(t, open, storetest.Options{Advance: c.advance})
}

func TestMemoryPassesTheSuiteOnARealClock(t *testing.T) {
	start := time.Now()
	open := func(t *testing.T) idempotency.Store {
		return idempotency.NewMemory(64<<20, func() time.Duration { return time.Since(start) })
	}
	storetest.Run(t, open, storetest.Options{})
}

// bench is a store on a clock that is moved by hand.
type bench struct {
	*testing.T
	*idempotency.Memory
	clock
}

func newBench(t *testing.T, maxBytes int64) *bench {
	b := &bench{T: t}
	b.Memory = idempotency.NewMemory(maxBytes, b.now)
	return b
}

var fp = idempotency.FingerprintOf("POST", "/", nil)

func (b *bench) begin(key string, lease time.Duration) idempotency.Begun {
	b.Helper()
	begun, err := b.Begin(b.Context(), key, fp, lease)
	if err != nil {
		b.Fatalf("Begin of %.20q: %v", key, err)
	}
	return begun
}

// done begins and completes a key with a body of so many bytes.
func (b *bench) done(key string, body int, retention time.Duration) {
	b.Helper()
	r := idempotency.Response{Status: 201, Body: make([]byte, body)}
	if err := b.Complete(b.Context(), key, b.begin(key, time.Hour).Token, r, retention); err != nil {
		b.Fatalf("Complete: %v", err)
	}
}

// kept reports whether the answer of a key that is done is still there.
func (b *bench) kept(key string) bool {
	b.Helper()
	begun := b.begin(key, time.Hour)
	if begun.State != idempotency.Replay || begun.Response.Status != 201 {
		b.Fatalf("%s is not done any more: %+v", key, begun)
	}
	return !begun.Response.Truncated
}

func TestLeaseEndsToTheNanosecond(t *testing.T) {
	b := newBench(t, 1<<20)
	b.begin("key", time.Second)
	b.advance(time.Second - 1)
	if got := b.begin("key", time.Second); got.State != idempotency.Running || got.Lease != 1 {
		t.Errorf("before the end: %+v, want running for 1ns", got)
	}
	b.advance(1)
	if got := b.begin("key", time.Second); got.State != idempotency.Run || !got.TakenOver {
		t.Errorf("at the end: %+v, want run, taken over", got)
	}
}

func TestRetentionEndsToTheNanosecond(t *testing.T) {
	b := newBench(t, 1<<20)
	b.done("key", 10, time.Second)
	b.advance(time.Second - 1)
	if !b.kept("key") {
		t.Error("before the end: no answer")
	}
	b.advance(1)
	if got := b.begin("key", time.Second); got.State != idempotency.Run || got.TakenOver {
		t.Errorf("at the end: %+v, want run, not taken over", got)
	}
}

func TestATryThatNeverEndedIsRememberedForADay(t *testing.T) {
	for _, tt := range []struct {
		late      time.Duration
		takenOver bool
		err       error
	}{{idempotency.Abandoned - 1, true, nil}, {idempotency.Abandoned, false, idempotency.ErrLost}} {
		b := newBench(t, 1<<20)
		b.begin("key", time.Minute)
		token := b.begin("other", time.Minute).Token
		b.advance(time.Minute + tt.late)
		if got := b.begin("key", time.Minute); got.State != idempotency.Run || got.TakenOver != tt.takenOver {
			t.Errorf("%v after the lease: %+v, want taken over %v", tt.late, got, tt.takenOver)
		}
		if err := b.Complete(t.Context(), "other", token, idempotency.Response{}, time.Hour); err != tt.err {
			t.Errorf("completed %v after the lease: %v, want %v", tt.late, err, tt.err)
		}
	}
}

func TestTermsOfAnyLength(t *testing.T) {
	b := newBench(t, 1<<20)
	for _, start := range []time.Duration{math.MinInt64, -1, 0, math.MaxInt64 - 1} {
		b.Store(int64(start))
		if got := b.begin(fmt.Sprint(start), math.MaxInt64); got.State != idempotency.Run {
			t.Errorf("%+v", got)
		}
		if got := b.begin(fmt.Sprint(start), math.MaxInt64); got.State != idempotency.Running || got.Lease <= 0 {
			t.Errorf("at %v: %+v, want running", start, got)
		}
	}
	for _, none := range []time.Duration{0, -1, math.MinInt64} {
		b := newBench(t, 1<<20)
		b.begin("key", none)
		if got := b.begin("key", time.Hour); got.State != idempotency.Run || !got.TakenOver {
			t.Errorf("after a lease of %v: %+v, want run, taken over", none, got)
		}
		b.done("done", 1, none)
		if got := b.begin("done", time.Hour); got.State != idempotency.Run {
			t.Errorf("after a retention of %v: %+v, want run", none, got)
		}
	}
}

func TestAClockThatGoesBackForgetsNothing(t *testing.T) {
	b := newBench(t, 1<<20)
	b.advance(time.Hour)
	b.done("done", 10, time.Minute)
	b.begin("running", time.Minute)
	b.Store(0)
	if !b.kept("done") || b.begin("running", time.Minute).State != idempotency.Running {
		t.Error("a key is forgotten")
	}
}

func TestAFullStoreDropsTheOldestAnswersAndNoKey(t *testing.T) {
	b := newBench(t, 100_000)
	names := make([]string, 150) // of about 1.3 kB each
	for i := range names {
		names[i] = fmt.Sprint("key ", i)
		b.done(names[i], 1000, time.Hour)
		if b.Bytes() > 100_000 {
			t.Fatalf("%d bytes in use", b.Bytes())
		}
	}
	first := len(names)
	for i, name := range names {
		switch kept := b.kept(name); {
		case kept && i < first:
			first = i
		case !kept && i > first:
			t.Errorf("the answer of %s is gone, that of %s is not", name, names[first])
		}
	}
	if first < 70 || first > 120 {
		t.Errorf("the answers from number %d on are there, want about the last third", first)
	}
}

func TestAStoreFullOfKeysTakesNoFurtherOnes(t *testing.T) {
	b := newBench(t, 100_000)
	n := 0
	for ; ; n++ {
		if _, err := b.Begin(t.Context(), fmt.Sprint("key ", n), fp, time.Hour); errors.Is(err, idempotency.ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n < 200 || n > 400 {
		t.Errorf("100 kB hold %d keys, want about 320 bytes for each", n)
	}
	for i := range n {
		if got := b.begin(fmt.Sprint("key ", i), time.Hour); got.State != idempotency.Running {
			t.Fatalf("key %d of %d: %+v, want running", i, n, got)
		}
	}
	// The answer has no place, the fact that it was done does.
	if err := b.Complete(t.Context(), "key 0", 1, idempotency.Response{Status: 201, Body: make([]byte, 1000)},
		time.Minute); err != nil {
		t.Fatal(err)
	}
	if b.kept("key 0") {
		t.Error("an answer without room is there")
	}
	b.advance(time.Minute)
	b.begin("one more", time.Hour)
	if err := b.Fail(t.Context(), "key 1", 2); err != nil {
		t.Fatal(err)
	}
	b.begin("and another", time.Hour)
	if _, err := b.Begin(t.Context(), "no more", fp, time.Hour); !errors.Is(err, idempotency.ErrFull) {
		t.Errorf("%v, want ErrFull", err)
	}
}

func TestAFullStoreForgetsTheOldestFinishedKeysLoudlyIfItMay(t *testing.T) {
	b := newBench(t, 100_000)
	var told []idempotency.Shortened
	b.Shorten(time.Minute, func(s idempotency.Shortened) {
		told = append(told, s)
		b.Len() // outside of the lock
	})
	b.begin("running", time.Hour)
	n := 0
	for ; ; n++ { // until nothing more has room: all are younger than a minute
		begun, err := b.Begin(t.Context(), fmt.Sprint("key ", n), fp, time.Hour)
		if errors.Is(err, idempotency.ErrFull) {
			break
		}
		if err := b.Complete(t.Context(), fmt.Sprint("key ", n), begun.Token, idempotency.Response{
			Status: 201, Body: make([]byte, 100),
		}, time.Hour); err != nil {
			t.Fatal(err)
		}
		b.advance(time.Millisecond)
	}
	if len(told) != 0 || b.Usage().Shortened.Keys != 0 {
		t.Fatalf("forgotten within a minute: %+v", told)
	}
	b.advance(time.Minute)
	for i := range 10 {
		b.done(fmt.Sprint("new ", i), 0, time.Hour)
	}
	if len(told) == 0 || told[0].Held < time.Minute || b.Usage().Shortened.Keys > 20 {
		t.Errorf("told %+v, usage %+v", told, b.Usage())
	}
	if b.begin("running", time.Hour).State != idempotency.Running {
		t.Error("a running key was forgotten")
	}
	if b.begin(fmt.Sprint("key ", n-1), time.Hour).State != idempotency.Replay {
		t.Error("the newest key was forgotten before the oldest")
	}
	if got := b.begin("key 0", time.Hour); got.State != idempotency.Run || got.TakenOver {
		t.Errorf("the oldest key: %+v, want forgotten", got)
	}
	if b.Bytes() > 100_000 {
		t.Errorf("%d bytes", b.Bytes())
	}
}

func TestWithoutLeaveToShortenNoKeyIsForgotten(t *testing.T) {
	b := newBench(t, 100_000)
	n := 0
	for ; ; n++ {
		begun, err := b.Begin(t.Context(), fmt.Sprint("key ", n), fp, time.Hour)
		if err != nil {
			break
		}
		if err := b.Complete(t.Context(), fmt.Sprint("key ", n), begun.Token, idempotency.Response{Status: 201},
			24*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	b.advance(23 * time.Hour)
	if _, err := b.Begin(t.Context(), "new", fp, time.Hour); !errors.Is(err, idempotency.ErrFull) || b.Len() != n ||
		b.Usage().Shortened.Keys != 0 {
		t.Errorf("%v, %d of %d keys, %+v", err, b.Len(), n, b.Usage())
	}
}

func TestUsageSaysHowManyKeysThereIsRoomFor(t *testing.T) {
	b := newBench(t, 1<<20)
	room := b.Usage().MaxKeys
	for n := 0; ; n++ {
		if _, err := b.Begin(t.Context(), idempotency.StoreKey("gate", "caller", fmt.Sprint(n)), fp, time.Hour); err != nil {
			if int64(n) < room || int64(n) > room+room/20 {
				t.Errorf("said %d, took %d", room, n)
			}
			break
		}
	}
	u := b.Usage()
	if u.Keys < room || u.MaxBytes != 1<<20 || u.Bytes > u.MaxBytes || u.Bytes < u.MaxBytes*9/10 || u.Oldest != 0 {
		t.Errorf("%+v", u)
	}
	c := newBench(t, 1<<20)
	c.done("done", 10, time.Hour)
	c.advance(time.Minute)
	if got := c.Usage().Oldest; got != time.Minute {
		t.Errorf("the oldest is %v old", got)
	}
}

func TestAnAnswerLargerThanAllDropsNoOther(t *testing.T) {
	b := newBench(t, 100_000)
	b.done("small", 1000, time.Hour)
	b.done("large", 200_000, time.Hour)
	if b.kept("large") || !b.kept("small") {
		t.Error("a large answer without a chance pushed out a small one")
	}
}

func TestOneCallDropsOnlySoMuch(t *testing.T) {
	b := newBench(t, 1<<20)
	for i := range 300 {
		b.done(fmt.Sprint("key ", i), 2000, time.Hour)
	}
	b.done("large", 900_000, time.Hour) // the room of most of the others
	if b.kept("large") || !b.kept("key 0") {
		t.Error("a large answer dropped hundreds of others in one call")
	}
	b.done("medium", 500_000, time.Hour) // the room of some
	if !b.kept("medium") || b.kept("key 0") || !b.kept("key 299") {
		t.Error("an answer that needs the room of a few did not get it")
	}
}

func TestReconfigureKeepsAllKeys(t *testing.T) {
	b := newBench(t, 1<<20)
	for i := range 500 {
		b.done(fmt.Sprint("key ", i), 1000, time.Hour)
	}
	b.Reconfigure(300_000)
	if b.Bytes() > 300_000 || b.Len() != 500 {
		t.Errorf("%d bytes, %d keys", b.Bytes(), b.Len())
	}
	if b.kept("key 0") || !b.kept("key 499") {
		t.Error("not the oldest answers were dropped")
	}
	for _, none := range []int64{1000, 0, -1} {
		b.Reconfigure(none)
		if b.kept("key 499") || b.Len() != 500 {
			t.Errorf("with %d bytes: %d keys", none, b.Len())
		}
		if _, err := b.Begin(t.Context(), "new", fp, time.Hour); !errors.Is(err, idempotency.ErrFull) {
			t.Errorf("with %d bytes: %v, want ErrFull", none, err)
		}
	}
	b.Reconfigure(1 << 20)
	b.done("new", 1000, time.Hour)
	if !b.kept("new") {
		t.Error("with room again an answer is not kept")
	}
}

func TestExpiredKeysGoAFewInEachCall(t *testing.T) {
	b := newBench(t, 64<<20)
	for i := range 1000 {
		b.done(fmt.Sprint("long ", i), 1000, 2*time.Hour)
		b.done(fmt.Sprint("short ", i), 1000, time.Minute)
	}
	for _, left := range []int{1001, 1} {
		b.advance(time.Hour)
		for calls := 1; b.Len() > left; calls++ {
			before := b.Len()
			b.begin("other", 10*time.Hour)
			if gone := before - b.Len(); gone > 20 || calls > 500 {
				t.Fatalf("call %d forgot %d keys of %d", calls, gone, before)
			}
		}
		if b.Len() != left {
			t.Errorf("%d keys are left, want %d", b.Len(), left)
		}
	}
	if b.Bytes() > 200_000 { // of the places that 2,000 keys had
		t.Errorf("%d bytes for one key", b.Bytes())
	}
}

func TestAKeyExpiresEvenIfManyOthersDo(t *testing.T) {
	for i := range 40 {
		b := newBench(t, 1<<20)
		for j := range 40 {
			b.done(fmt.Sprint(j), 10, time.Minute)
		}
		b.advance(time.Minute)
		if got := b.begin(fmt.Sprint(i), time.Hour); got.State != idempotency.Run || got.TakenOver {
			t.Errorf("key %d of 40: %+v, want run, not taken over", i, got)
		}
	}
}

// heapOf is what the runtime says that make built.
func heapOf(build func() any) (bytes int64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	built := build()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(built)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

func TestBytesAreTheTruth(t *testing.T) {
	const maxBytes = 8 << 20
	for name, fill := range map[string]struct{ key, body int }{
		"short keys": {1, -1}, "usual keys": {64, -1}, "long keys": {250, -1},
		"empty answers": {64, 0}, "usual answers": {64, 1000}, "odd answers": {33, 1500}, "large answers": {64, 60_000},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, maxBytes)
			heap := heapOf(func() any {
				for i := 0; b.Bytes() < maxBytes-300_000; i++ {
					key := fmt.Sprintf("%d%s", i, strings.Repeat("k", fill.key))
					if fill.body < 0 {
						b.begin(key, time.Hour)
						continue
					}
					r := idempotency.Response{Status: 200, Body: make([]byte, fill.body)}
					if err := b.Complete(t.Context(), key, b.begin(key, time.Hour).Token, r, time.Hour); err != nil {
						t.Fatal(err)
					}
				}
				return b.Memory
			})
			t.Logf("%d keys: %d bytes said, %d in the heap: %.2f", b.Len(), b.Bytes(), heap, float64(heap)/float64(b.Bytes()))
			const others = 16 << 10 // what the rest of the process has taken meanwhile
			if heap > b.Bytes()+others || heap < b.Bytes()/2 {
				t.Errorf("%d bytes said, %d in the heap", b.Bytes(), heap)
			}
		})
	}
}

func TestManyCallersStayWithinMemory(t *testing.T) {
	b := newBench(t, 200_000)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 2000 {
				key := fmt.Sprint(random.IntN(1000))
				begun, err := b.Begin(t.Context(), key, fp, time.Duration(random.IntN(100)))
				switch {
				case errors.Is(err, idempotency.ErrFull):
				case err != nil:
					t.Error(err)
				case begun.State == idempotency.Run && random.IntN(2) == 0:
					_ = b.Fail(t.Context(), key, begun.Token)
				case begun.State == idempotency.Run:
					r := idempotency.Response{Status: 200, Body: make([]byte, random.IntN(2000))}
					_ = b.Complete(t.Context(), key, begun.Token, r, time.Duration(random.IntN(1000)))
				}
				b.advance(1)
				if n := b.Bytes(); n > 200_000 || n < 0 {
					t.Errorf("%d bytes", n)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkMemory(b *testing.B) {
	var c clock
	r := idempotency.Response{
		Status: 201, Header: []idempotency.Field{{Name: "Content-Type", Value: "application/json"}}, Body: make([]byte, 1000),
	}
	b.Run("BeginAndComplete", func(b *testing.B) {
		m := idempotency.NewMemory(64<<20, c.now)
		var key [8]byte
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			key = [8]byte{byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24), 'k', 'e', 'y'}
			begun, err := m.Begin(b.Context(), string(key[:]), fp, time.Hour)
			if err == nil {
				err = m.Complete(b.Context(), string(key[:]), begun.Token, r, 10*time.Millisecond)
			}
			if err != nil {
				b.Fatal(err)
			}
			c.advance(time.Microsecond)
		}
	})
	b.Run("Replay", func(b *testing.B) {
		m := idempotency.NewMemory(64<<20, c.now)
		begun, _ := m.Begin(b.Context(), "key", fp, time.Hour)
		if err := m.Complete(b.Context(), "key", begun.Token, r, time.Hour); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			_, _ = m.Begin(b.Context(), "key", fp, time.Hour)
		}
	})
	b.Run("StoreKeyAndFingerprint", func(b *testing.B) {
		body := make([]byte, 1000)
		b.ReportAllocs()
		for b.Loop() {
			idempotency.StoreKey("orders", "tenant-7", "8e03978e-40d5-43dd-bc93-6894a57f9324")
			idempotency.FingerprintOf("POST", "/orders", body)
		}
	})
}
