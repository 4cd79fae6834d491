//go:build !race

package ratelimit_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"
)

func TestMaxKeysHaveTheirOwnBucketAndTheOthersShareOne(t *testing.T) {
	for _, n := range []int{1, 2, 10, 300, 5000} {
		l := keyed("1/h", 2, n)
		for i := range n {
			if got := admit(l, 0, strconv.Itoa(i), 3); got != 2 {
				t.Fatalf("key %d of %d: %d admitted, want 2", i, n, got)
			}
		}
		if got := l.State(); got.Keys != n || got.Shared != 0 {
			t.Fatalf("of %d: state %+v", n, got)
		}
		shared := 0
		for i := range 20 {
			shared += admit(l, 0, "more"+strconv.Itoa(i), 3)
		}
		if got := l.State(); shared != 2 || got.Keys != n || got.Shared != 60 {
			t.Errorf("%d more than %d keys admitted %d, state %+v", 20, n, shared, got)
		}
		for i := range n {
			if got := admit(l, 0, strconv.Itoa(i), 1); got != 0 {
				t.Fatalf("key %d of %d got a new bucket", i, n)
			}
		}
	}
}

func TestRefusedAndFreeRequestsNeedNoPlace(t *testing.T) {
	l := keyed("1/h", 2, 3)
	for i := range 100 {
		l.Allow(0, strconv.Itoa(i), 0)
		l.Allow(0, strconv.Itoa(i), 5)
	}
	if got := l.State(); got.Keys != 0 || got.Shared != 0 {
		t.Errorf("state %+v", got)
	}
}

// A million requests with other keys do not bring anybody a second bucket, while the buckets of those others come and
// go.
func TestNobodyIsForgottenBeforeHisBucketIsFull(t *testing.T) {
	for _, maxKeys := range []int{4, 100, 5000} {
		l := keyed("1/s", 10, maxKeys)
		victims := maxKeys/2 + 1
		now, used := time.Duration(0), make([]int, victims)
		for i := range used {
			used[i] = admit(l, now, "v"+strconv.Itoa(i), 10)
		}
		for i := range 200_000 {
			now += 50 * time.Microsecond // ten seconds in all
			l.Allow(now, strconv.Itoa(i), 1)
			if i%10 == 0 {
				v := i / 10 % victims
				if l.Allow(now, "v"+strconv.Itoa(v), 1).Allowed {
					used[v]++
				}
			}
		}
		for v := range used {
			if got := used[v]; got > 10+10 {
				t.Fatalf("of %d keys: victim %d had %d tokens in ten seconds, want no more than 20", maxKeys, v, got)
			}
		}
		if got := l.State(); got.Keys > maxKeys || got.Shared == 0 {
			t.Errorf("of %d keys: state %+v", maxKeys, got)
		}
	}
}

func TestFullBucketsMakePlace(t *testing.T) {
	for _, maxKeys := range []int{1, 10, 1000, 50_000} {
		l := keyed("1/s", 2, maxKeys)
		for i := range maxKeys {
			l.Allow(0, strconv.Itoa(i), 1)
		}
		if l.Allow(time.Second-1, "too early", 1); l.State().Shared != 1 {
			t.Errorf("of %d keys: %+v although no bucket is full", maxKeys, l.State())
		}
		// The next ones find full buckets, one after the other, however few there are.
		for i := range maxKeys {
			l.Allow(time.Second, "b"+strconv.Itoa(i), 1)
		}
		// Where a key lands is drawn anew in each process: of many, one or another finds only buckets that are not full yet.
		if got := l.State(); got.Keys < maxKeys-maxKeys/500 || got.Keys > maxKeys || got.Shared > 1+int64(maxKeys/20) {
			t.Errorf("of %d keys: state %+v", maxKeys, got)
		}
	}
}

func TestFewerKeysByReloadEvictNobody(t *testing.T) {
	l := keyed("1/s", 2, 1000)
	for i := range 1000 {
		l.Allow(0, strconv.Itoa(i), 2)
	}
	c := config("1/s", 2)
	c.MaxKeys = 10
	l.Reconfigure(0, c)
	for i := range 1000 {
		if l.Allow(0, strconv.Itoa(i), 1).Allowed {
			t.Fatalf("key %d was forgotten", i)
		}
	}
	for i := range 100_000 {
		l.Allow(time.Hour, "n"+strconv.Itoa(i), 1)
	}
	if got := l.State(); got.Keys > 10 {
		t.Errorf("an hour later: state %+v, want 10 keys", got)
	}
}

// Dropping a bucket moves others, in tables that are nearly full.
func TestWhoeverIsMovedIsFoundAgain(t *testing.T) {
	const n = 20_000
	l := keyed("1/s", 10, n)
	for i := range n { // every other bucket is full again after a second
		l.Allow(0, strconv.Itoa(i), float64(1+9*(i%2)))
	}
	c := config("1/s", 10)
	c.MaxKeys = n / 4
	l.Reconfigure(0, c)
	for i := range 2000 { // nothing new has a place, but each new key drops some
		l.Allow(2*time.Second, "n"+strconv.Itoa(i), 1)
	}
	if got := l.State(); got.Keys != n/2 {
		t.Fatalf("state %+v, want the %d that are not full", got, n/2)
	}
	for i := range n {
		want := int64(10)
		if i%2 == 1 {
			want = 2
		}
		if got := l.Allow(2*time.Second, strconv.Itoa(i), 0).Remaining; got != want {
			t.Fatalf("key %d has %d tokens, want %d", i, got, want)
		}
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The comment of MaxKeys promises 24 bytes a bucket, that of the package 48 KB beside them.
func TestMemoryIsBoundedUnderAFloodOfKeys(t *testing.T) {
	for _, maxKeys := range []int{1, 1000, 30_000, 110_000, 130_000, 150_000, 170_000, 190_000, 1_000_000} {
		before := heap()
		l := keyed("1/h", 1, maxKeys)
		key := make([]byte, 0, 20)
		for i := range max(3*maxKeys/2, 10_000) {
			key = strconv.AppendInt(key[:0], int64(i), 10)
			l.Allow(0, string(key), 1)
		}
		used := heap() - before
		t.Logf("%d keys: %d bytes, %.1f each", maxKeys, used, float64(used)/float64(maxKeys))
		if got := l.State(); used > int64(24*maxKeys+48<<10) || got.Keys != maxKeys {
			t.Errorf("%d keys take %d bytes; state %+v", maxKeys, used, got)
		}
	}
}

// Ten million keys, of which a hundred thousand may be kept, come and go: the tables do not grow.
func TestTablesDoNotGrowWithKeysThatAreGone(t *testing.T) {
	before := heap()
	l := keyed("1000/s", 1, 1_000_000)
	key := make([]byte, 0, 20)
	for i := range 1_000_000 {
		key = strconv.AppendInt(key[:0], int64(i), 10)
		l.Allow(time.Duration(i)*time.Microsecond, string(key), 1) // a thousand at a time are not full
	}
	if used, got := heap()-before, l.State(); used > 300<<10 || got.Keys > 5000 || got.Keys < 1000 {
		t.Errorf("%d bytes for a thousand keys at a time; state %+v", used, got)
	}
}
