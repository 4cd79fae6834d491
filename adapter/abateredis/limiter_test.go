package abateredis_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
)

// everywhere runs a test with a real Redis and with the one for trying.
func everywhere(t *testing.T, test func(t *testing.T, addr string)) {
	t.Run("redis", func(t *testing.T) { test(t, start(t).Addr()) })
	t.Run("embedded", func(t *testing.T) { test(t, embedded(t)) })
}

func TestAFreshBucketIsFullAndRefillsFromItsFirstUse(t *testing.T) {
	everywhere(t, func(t *testing.T, addr string) {
		l := open(t, addr).Limiter("api", per(100, time.Second, 20))
		began := time.Now()
		if got := drain(l, "k", 1000); got < 20 || float64(got) > 21+100*time.Since(began).Seconds() {
			t.Fatalf("a fresh bucket of 20 gave %d", got)
		}
		eventually(t, "refilled", func() bool { return take(l, "k", 10).Allowed })
		if wait := time.Since(began); wait < 90*time.Millisecond {
			t.Errorf("10 tokens at 100/s came after %v", wait)
		}
	})
}

func TestRefusalsKeepWhatCameIn(t *testing.T) {
	everywhere(t, func(t *testing.T, addr string) {
		began := time.Now()
		drain(open(t, addr).Limiter("api", per(50, time.Second, 10)), "k", 1000)
		drained := time.Now()
		// by an instance that knows nothing, so that Redis has to refuse
		eventually(t, "refilled beside refusals", func() bool {
			f, err := abateredis.Open(abateredis.Config{Addresses: []string{addr}, Timeout: slack})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			asked := time.Since(drained)
			allowed := take(f.Limiter("api", per(50, time.Second, 10)), "k", 10).Allowed
			if !allowed && asked > 2*time.Second {
				t.Errorf("after %v there are no 10 tokens at 50/s", asked)
			}
			return allowed
		})
		if took := time.Since(began); took < 150*time.Millisecond {
			t.Errorf("10 tokens at 50/s took %v", took)
		}
	})
}

func TestARefusedKeyCostsNoRoundTrips(t *testing.T) {
	s := start(t)
	f := open(t, s.Addr(), func(c *abateredis.Config) { c.Prefix = "x:" })
	l := f.Limiter("api", per(1, time.Minute, 5))
	now := core.Now() // of all requests, or they could take longer than a refusal is remembered
	if got := drain(l, "k", 100); got != 5 {
		t.Fatalf("%d of 5", got)
	}
	for range 10_000 {
		d, ok := l.TryTake(now, "k", 1)
		if !ok || d.Allowed || !d.Over || d.Limit != 5 || d.Remaining != 0 || d.RetryAfter < 50*time.Second ||
			d.RetryAfter > time.Minute {
			t.Fatalf("%+v %v", d, ok)
		}
	}
}

func TestAColdKeyCostsOneRoundTrip(t *testing.T) {
	s := start(t)
	w := &watch{}
	f := open(t, s.Addr(), w.into)
	l := f.Limiter("api", per(10, time.Second, 10))
	ready(t, 1, f)
	take(l, "warm", 1)
	before := w.count("take")
	for i := range 500 {
		if d := take(l, fmt.Sprint(i), 1); !d.Allowed || d.Remaining != 9 || d.Limit != 10 || d.Reset < 50*time.Millisecond ||
			d.Reset > 100*time.Millisecond {
			t.Fatalf("key %d: %+v", i, d)
		}
	}
	if got := w.count("take") - before; got != 500 || w.count("refill") > 0 {
		t.Errorf("%d round trips for 500 cold keys, %d in the background", got, w.count("refill"))
	}
}

func TestCallersOfOneColdKeyShareRoundTrips(t *testing.T) {
	s := start(t)
	w := &watch{}
	f := open(t, s.Addr(), w.into)
	l := f.Limiter("api", per(1000, time.Second, 1000))
	ready(t, 1, f)
	take(l, "warm", 1)
	before := w.count("take")
	var allowed atomic.Int64
	var all sync.WaitGroup
	gun := make(chan struct{})
	for range 200 {
		all.Go(func() {
			<-gun
			if take(l, "cold", 1).Allowed {
				allowed.Add(1)
			}
		})
	}
	close(gun)
	all.Wait()
	if got := w.count("take") - before; got > 10 || allowed.Load() != 200 {
		t.Errorf("%d round trips, %d of 200 allowed", got, allowed.Load())
	}
}

func TestABusyKeyAsksAFewTimesPerSecond(t *testing.T) {
	s := start(t)
	w := &watch{}
	f := open(t, s.Addr(), w.into)
	l := f.Limiter("api", per(2000, time.Second, 2000))
	ready(t, 1, f)
	n := 0
	during(2*time.Second, func() {
		for range 3 { // 3,000 per second or less: more than the limit
			take(l, "k", 1)
			n++
		}
	})
	if got := w.count("take") + w.count("refill"); got > 80 {
		t.Errorf("%d round trips in 2 s for %d requests", got, n)
	}
}

func TestUnusedTokensAreBroughtBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	one, two := open(t, s.Addr()), open(t, s.Addr())
	ready(t, 2, one, two)
	limit := per(1, time.Hour, 1000) // nothing comes in
	a, b := one.Limiter("api", limit), two.Limiter("api", limit)
	used := 0
	for range 50 {
		if take(a, "k", 1).Allowed {
			used++
		}
	}
	eventually(t, "the other instance gets the rest", func() bool {
		used += drain(b, "k", 10_000)
		return used >= 1000
	})
	if used += drain(a, "k", 10_000); used > 1000 {
		t.Errorf("%d of 1000", used)
	}
}

func TestClosingBringsLeasesBackAndLeaves(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	s := start(t)
	one, two := open(t, s.Addr()), open(t, s.Addr())
	ready(t, 2, one, two)
	limit := per(1, time.Hour, 1000)
	a := one.Limiter("api", limit)
	used := 0
	for range 50 {
		if take(a, "k", 1).Allowed {
			used++
		}
	}
	one.Close()
	if used += drain(two.Limiter("api", limit), "k", 10_000); used < 995 || used > 1000 {
		t.Errorf("%d of 1000", used)
	}
	eventually(t, "the other one is alone", func() bool { return two.State().Instances == 1 })
	if d := take(a, "k", 1); d.Limit == 0 {
		t.Errorf("a closed fleet's limiter: %+v", d)
	}
}

func TestTheBucketExpiresWhenItIsFullAgain(t *testing.T) {
	s := start(t)
	f, c := open(t, s.Addr(), func(c *abateredis.Config) { c.Prefix = "ttl:" }), s.client()
	l := f.Limiter("api", per(10, time.Second, 10_000))
	take(l, "k", 10_000)
	keys, err := c.Keys(t.Context(), "ttl:{*}").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys %q, %v", keys, err)
	}
	ttl, err := c.PTTL(t.Context(), keys[0]).Result()
	if err != nil || ttl < 1000*time.Second-patience || ttl > 1000*time.Second+2*time.Millisecond {
		t.Errorf("10,000 tokens at 10/s: expires in %v, %v", ttl, err)
	}
}

func TestHeadersAreExactEnough(t *testing.T) {
	s := start(t)
	f := open(t, s.Addr())
	l := f.Limiter("api", per(1, time.Hour, 1000))
	for i := range 1000 {
		d := take(l, "k", 1)
		if want := int64(999 - i); !d.Allowed || d.Limit != 1000 || d.Remaining < want || d.Remaining > want+1 {
			t.Fatalf("request %d: %+v", i, d)
		}
	}
	if d := take(l, "k", 1); d.Allowed || d.Remaining != 0 || d.Reset < 999*time.Hour || d.Reset > 1000*time.Hour {
		t.Errorf("%+v", d)
	}
}

func TestOddKeysAndCosts(t *testing.T) {
	everywhere(t, func(t *testing.T, addr string) {
		f := open(t, addr)
		l := f.Limiter("api", per(1, time.Hour, 10))
		for _, key := range []string{"", "a\nb", "{a}b", "{}", "}{", "\x00\xff", "a b", strings.Repeat("x", 10<<20)} {
			if d := take(l, key, 1); !d.Allowed || d.Remaining != 9 {
				t.Errorf("key %.20q: %+v", key, d)
			}
		}
		for _, cost := range []float64{0, -1, math.Inf(-1), math.NaN()} {
			if d := take(l, "odd", cost); !d.Allowed || d.Over {
				t.Errorf("cost %v: %+v", cost, d)
			}
		}
		for _, cost := range []float64{11, 1e9, math.Inf(1)} {
			if d := take(l, "odd", cost); d.Allowed || d.RetryAfter != ratelimit.Never {
				t.Errorf("cost %v: %+v", cost, d)
			}
		}
		if d := take(l, "odd", 0.001); !d.Allowed || d.Remaining != 9 {
			t.Errorf("a thousandth: %+v", d)
		}
		if d := take(f.Limiter("closed", per(0, time.Second, 0)), "k", 1); d.Allowed || d.RetryAfter != ratelimit.Never {
			t.Errorf("0/s: %+v", d)
		}
		if d := take(f.Limiter("huge", per(1e9, time.Second, 1e9)), "k", 1); !d.Allowed || d.Remaining < 999_999_999 {
			t.Errorf("a billion: %+v", d)
		}
		if d := take(f.Limiter("off", inbound.ArrivalLimit{}), "k", 1); !d.Allowed {
			t.Errorf("no limit: %+v", d)
		}
	})
}

func TestShadowRefusesNothingAndHasItsOwnBuckets(t *testing.T) {
	s := start(t)
	f := open(t, s.Addr())
	limit := per(1, time.Hour, 10)
	shadow := limit
	shadow.Shadow = true
	l := f.Limiter("api", shadow)
	over := 0
	for range 30 {
		d := take(l, "k", 1)
		if !d.Allowed {
			t.Fatalf("shadow refused: %+v", d)
		}
		if d.Over {
			over++
		}
	}
	if over != 20 {
		t.Errorf("%d of 30 over a limit of 10", over)
	}
	if got := drain(f.Limiter("api", limit), "k", 100); got != 10 {
		t.Errorf("the limit itself has %d of 10 left", got)
	}
}

func TestALiveChangeKeepsTheBuckets(t *testing.T) {
	s := start(t)
	f := open(t, s.Addr())
	if got := drain(f.Limiter("api", per(1, time.Hour, 10)), "k", 100); got != 10 {
		t.Fatalf("%d of 10", got)
	}
	if got := drain(f.Limiter("api", per(2, time.Hour, 20)), "k", 100); got != 0 {
		t.Errorf("a reload filled the bucket: %d", got)
	}
}

func TestManyKeysNeedBoundedMemory(t *testing.T) {
	s := start(t)
	f := open(t, s.Addr())
	limit := per(1, time.Hour, 2)
	limit.MaxKeys = 1 // as few as there can be
	l := f.Limiter("api", limit)
	for i := range 3000 {
		take(l, fmt.Sprint(i), 1)
	}
	for i := range 3000 { // forgetting a key here gives it nothing back there
		take(l, fmt.Sprint(i), 1)
		if d := take(l, fmt.Sprint(i), 1); d.Allowed {
			t.Fatalf("key %d has a third token", i)
		}
	}
}

func TestDecidingHereAllocatesNothing(t *testing.T) {
	s := start(t)
	f := open(t, s.Addr())
	l := f.Limiter("api", per(1e9, time.Second, 1e9))
	drain(l, "k", 1000)
	refused := f.Limiter("refused", per(1, time.Hour, 1))
	drain(refused, "k", 2)
	for what, l := range map[string]*abateredis.Limiter{"allowed": l, "refused": refused} {
		if n := testing.AllocsPerRun(1000, func() { l.TryTake(core.Now(), "k", 1) }); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}

func TestTakeEndsWithItsCaller(t *testing.T) {
	s := start(t)
	f := open(t, s.Addr(), func(c *abateredis.Config) { c.Timeout = 10 * time.Second })
	l := f.Limiter("api", per(1, time.Hour, 10))
	take(l, "warm", 1)
	eventually(t, "the heartbeat is not under way", func() bool { return f.State().Instances == 1 })
	s.Pause()
	defer s.Resume()
	ctx, cancel := context.WithCancel(t.Context())
	leads := make(chan struct{})
	go func() { defer close(leads); l.Take(context.Background(), "k", 1) }()
	joins := make(chan ratelimit.Decision)
	go func() { joins <- l.Take(ctx, "k", 1) }()
	cancel()
	s.Resume()
	<-leads
	<-joins
}
