package stale_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/stale"
)

func TestTheLastGoodResponseIsGiven(t *testing.T) {
	s := stale.New(1 << 20)
	expect(t, s, "/", nil, "nothing")
	put(s, "/", nil, nil, "first", noon)
	put(s, "/other", nil, nil, "other", noon)
	expect(t, s, "/", nil, "first")
	put(s, "/", nil, nil, "second", noon)
	expect(t, s, "/", nil, "second")
	expect(t, s, "/other", nil, "other")
	put(s, "/", nil, nil, "", noon)
	expect(t, s, "/", nil, "")
	if s.Len() != 2 {
		t.Errorf("%d kept", s.Len())
	}
}

func TestAResponseReceivedEarlierDoesNotReplaceALaterOne(t *testing.T) {
	s := stale.New(1 << 20)
	slow := s.Record(key("/"), nil, 200, nil)
	slow.Write([]byte("slow"))
	put(s, "/", nil, nil, "quick", noon+time.Second)
	slow.Commit(noon)
	expect(t, s, "/", nil, "quick")
	before := s.Bytes()
	put(s, "/", nil, nil, "later", noon+time.Second)
	expect(t, s, "/", nil, "later")
	if s.Bytes() != before || s.Len() != 1 {
		t.Errorf("%d bytes in %d responses, before %d in 1", s.Bytes(), s.Len(), before)
	}
}

func TestWhatIsForgottenIsGone(t *testing.T) {
	s := stale.New(1 << 20)
	put(s, "/", lines("Accept: a"), lines("Vary: Accept"), "a", noon)
	put(s, "/", lines("Accept: b"), lines("Vary: Accept"), "b", noon)
	put(s, "/2", nil, nil, "2", noon)
	s.Forget(key("/"))
	s.Forget(key("/"))
	s.Forget(key("/never there"))
	expect(t, s, "/", lines("Accept: a"), "nothing")
	expect(t, s, "/", lines("Accept: b"), "nothing")
	expect(t, s, "/2", nil, "2")
	s.Forget(key("/2"))
	if s.Len() != 0 || s.Bytes() != 0 {
		t.Errorf("%d bytes in %d responses are left", s.Bytes(), s.Len())
	}
}

func TestTheLeastRecentlyUsedGoesFirst(t *testing.T) {
	s := stale.New(1 << 20)
	path := func(i int) string { return fmt.Sprintf("/%04d", i) }
	body := strings.Repeat("x", 20<<10)
	fits := 0
	for s.Len() == fits {
		put(s, path(fits), nil, nil, body, noon)
		fits++
	}
	fits = s.Len() // path(0) has gone
	expect(t, s, path(0), nil, "nothing")
	if fits < 30 || fits > 38 {
		t.Fatalf("%d responses of 20 KiB fit in three quarters of 1 MiB", fits)
	}
	expect(t, s, path(1), nil, body)       // given
	put(s, path(2), nil, nil, body, noon)  // renewed
	s.Get(key(path(3)), nil, noon, -1)     // asked for in vain
	put(s, "/new", nil, nil, body, noon)   // takes the place of 3
	put(s, "/newer", nil, nil, body, noon) // of 4
	for i, want := range []bool{false, true, true, false, false, true} {
		if _, ok := s.Get(key(path(i)), nil, noon, forever); ok != want {
			t.Errorf("%s kept: %v, want %v", path(i), ok, want)
		}
	}
	if s.Len() != fits {
		t.Errorf("%d kept, want %d", s.Len(), fits)
	}
}

func TestOtherVariantsOutliveOneThatGoes(t *testing.T) {
	s := stale.New(1 << 20)
	put(s, "/", lines("Accept: a"), lines("Vary: Accept"), "a", noon)
	put(s, "/", lines("Accept: b"), lines("Vary: Accept"), "b", noon)
	for i := 0; s.Len() == i+2; i++ {
		expect(t, s, "/", lines("Accept: b"), "b")
		put(s, fmt.Sprintf("/%d", i), nil, nil, strings.Repeat("x", 30<<10), noon)
	}
	expect(t, s, "/", lines("Accept: a"), "nothing")
	expect(t, s, "/", lines("Accept: b"), "b")
}

func TestNothingIsLeftOfWhatWasForgottenOrReplaced(t *testing.T) {
	s := stale.New(1 << 20)
	before := heap()
	for i := range 10_000 {
		path := fmt.Sprintf("/%d", i)
		put(s, path, lines("A: 1"), lines("Vary: A"), "1", noon)
		put(s, path, lines("A: 1"), lines("Vary: A"), "2", noon)
		put(s, path, nil, nil, "3", noon)
		s.Forget(key(path))
	}
	if used := heap() - before; used > 64<<10 {
		t.Errorf("%d bytes are in use", used)
	}
	runtime.KeepAlive(s)
}

func TestNothingOfTheCallerIsHeld(t *testing.T) {
	s := stale.New(1 << 20)
	scribble := func(bs ...[]byte) {
		for _, b := range bs {
			for i := range b {
				b[i] = '?'
			}
		}
	}
	k, request, response := key("/"), lines("Accept: a"), lines("Vary: Accept", "ETag: \"1\"")
	r := s.Record(k, request, 200, response)
	for _, f := range append(request, response...) {
		scribble(k, f.Name, f.Value)
	}
	piece := []byte("one")
	r.Write(piece)
	scribble(piece)
	r.Commit(noon)
	expect(t, s, "/", lines("Accept: a"), "one")
	e, _ := s.Get(key("/"), lines("Accept: a"), noon, forever)
	if got, want := text(e.Fields), "Vary: Accept\nETag: \"1\"\n"; got != want {
		t.Errorf("fields %q, want %q", got, want)
	}
}

func TestTwoWhoGetTheSameShareItAndCannotAppendIntoIt(t *testing.T) {
	s := stale.New(1 << 20)
	r := s.Record(key("/"), nil, 200, lines("A: 1", "Connection: close", "B: 2"))
	for range 3 { // grows with room to spare
		r.Write([]byte(strings.Repeat("x", 1000)))
	}
	r.Commit(noon)
	a, _ := s.Get(key("/"), nil, noon, forever)
	b, _ := s.Get(key("/"), nil, noon+time.Second, forever)
	if &a.Body[0] != &b.Body[0] || &a.Fields[0] != &b.Fields[0] {
		t.Error("the response was copied")
	}
	if a.Age != 0 || b.Age != time.Second {
		t.Errorf("ages %v and %v", a.Age, b.Age)
	}
	_ = append(a.Body, "tail"...)
	_ = append(a.Fields, h1.Field{})
	_ = append(a.Fields[0].Name, "tail"...)
	_ = append(a.Fields[0].Value, "tail"...)
	if text(b.Fields) != "A: 1\nB: 2\n" || string(b.Body) != strings.Repeat("x", 3000) {
		t.Errorf("changed: %s", text(b.Fields))
	}
	if cap(a.Body) != len(a.Body) || cap(a.Fields) != len(a.Fields) {
		t.Error("there is room behind what is shared")
	}
}

func TestASmallStoreKeepsNothing(t *testing.T) {
	for _, size := range []int64{math.MinInt64, -1, 0, 1, 15, 16, 1 << 10} {
		s := stale.New(size)
		put(s, "/", nil, nil, "x", noon)
		put(s, "/", nil, nil, "", noon)
		if s.Len() != 0 || s.Bytes() != 0 {
			t.Errorf("New(%d): %d bytes in %d responses", size, s.Bytes(), s.Len())
		}
	}
	s := stale.New(math.MaxInt64)
	put(s, "/", nil, nil, "x", noon)
	expect(t, s, "/", nil, "x")
}

// What Bytes says is compared with what the runtime says, as a store fills with responses of some kind and is then used
// on.
func TestMemoryIsCountedHonestly(t *testing.T) {
	for _, c := range []struct {
		name      string
		body      func(r *rand.Rand) int
		fields    int
		pieces    int
		declare   bool
		abandoned bool
	}{
		{"empty", func(*rand.Rand) int { return 0 }, 0, 1, false, false},
		{"tiny", func(r *rand.Rand) int { return r.IntN(10) }, 1, 1, false, false},
		{"usual", func(r *rand.Rand) int { return r.IntN(4000) }, 12, 1, true, false},
		{"in pieces", func(r *rand.Rand) int { return r.IntN(40_000) }, 12, 10, false, false},
		{"large", func(r *rand.Rand) int { return 30_000 + r.IntN(400_000) }, 12, 3, true, false},
		{"many fields", func(*rand.Rand) int { return 0 }, 100, 1, false, false},
		{"abandoned", func(r *rand.Rand) int { return r.IntN(4000) }, 12, 3, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			const size = 4 << 20
			random := rand.New(rand.NewPCG(1, 2))
			before := heap()
			s := stale.New(size)
			one := func() int {
				n := c.body(random)
				fields := lines(slices.Repeat([]string{"X-Some-Field: with some value"}, c.fields)...)
				if c.declare {
					fields = append(fields, lines(fmt.Sprintf("Content-Length: %d", n))...)
				}
				r := s.Record(key(fmt.Sprintf("/some/path/%d", random.Uint32())), nil, 200, fields)
				for p := range c.pieces {
					r.Write(make([]byte, n*(p+1)/c.pieces-n*p/c.pieces))
				}
				if !c.abandoned {
					r.Commit(noon)
				}
				return n + 500 + 80*c.fields
			}
			for _, load := range []int{size / 8, size / 4, size / 2, size, 4 * size} {
				for load > 0 {
					load -= one()
				}
				used, counted := heap()-before, s.Bytes()
				const others = 32 << 10 // of the test and the runtime
				if used > counted+others || used < counted/2 || counted > size {
					t.Errorf("%d bytes are in use, %d were counted, for %d responses", used, counted, s.Len())
				}
				t.Logf("%.2f of what was counted is in use, for %d responses", float64(used)/float64(counted), s.Len())
			}
			runtime.KeepAlive(s)
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestManyAtOnce(t *testing.T) {
	const size = 4 << 20
	s := stale.New(size)
	var group sync.WaitGroup
	var hits atomic.Int64
	for g := range 8 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 0))
			for range 2000 {
				path, n := fmt.Sprintf("/%d", random.IntN(50)), random.IntN(60_000)
				switch random.IntN(6) {
				case 0:
					if e, ok := s.Get(key(path), lines("A: 1"), noon, forever); ok {
						hits.Add(1)
						if strings.Trim(string(e.Body), path) != "" {
							t.Errorf("%s got the body of another", path)
						}
					}
				case 1:
					s.Forget(key(path))
				case 2:
					r := s.Record(key(path), nil, 200, nil)
					r.Write(make([]byte, n))
					if n%8 != 0 { // the others are forgotten
						r.Drop()
					}
				default:
					r := s.Record(key(path), lines(fmt.Sprintf("A: %d", random.IntN(3))), 200, lines("Vary: A"))
					for at := 0; at < n; at += 20_000 {
						r.Write([]byte(strings.Repeat(path, min(n-at, 20_000)/len(path))))
					}
					r.Commit(noon)
				}
				if got := s.Bytes(); got > size {
					t.Errorf("%d bytes in use", got)
				}
			}
		})
	}
	group.Wait()
	if hits.Load() < 50 {
		t.Errorf("only %d of about 2700 got an answer", hits.Load())
	}
}
