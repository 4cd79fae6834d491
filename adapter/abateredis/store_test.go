package abateredis_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/idempotency/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, addr string) {
		n := 0
		storetest.Run(t, func(t *testing.T) idempotency.Store {
			n++ // its keys are its own
			return open(t, addr, func(c *abateredis.Config) {
				c.Prefix, c.Timeout = fmt.Sprint(n, ":"), 5*time.Second
			}).Store(1 << 20)
		}, storetest.Options{})
	})
}

var fp = idempotency.FingerprintOf("POST", "/orders", []byte("body"))

func TestALargeAnswerIsKeptAsTruncated(t *testing.T) {
	s := start(t)
	store := open(t, s.Addr()).Store(1000)
	for size, truncated := range map[int]bool{1000: false, 1 << 20: true} {
		key := fmt.Sprint(size)
		begun, err := store.Begin(t.Context(), key, fp, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		r := idempotency.Response{Status: 201, Body: bytes.Repeat([]byte{0}, size)}
		if err := store.Complete(t.Context(), key, begun.Token, r, time.Minute); err != nil {
			t.Fatal(err)
		}
		again, err := store.Begin(t.Context(), key, fp, time.Minute)
		if err != nil || again.State != idempotency.Replay || again.Response.Truncated != truncated ||
			again.Response.Status != 201 {
			t.Errorf("%d bytes: %v %v", size, again.Response.Truncated, err)
		}
	}
}

func TestALargeAnswerPasses(t *testing.T) {
	store := open(t, start(t).Addr()).Store(16 << 20)
	begun, err := store.Begin(t.Context(), "k", fp, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	r := idempotency.Response{Status: 200, Body: bytes.Repeat([]byte("x"), 16<<20)}
	if err := store.Complete(t.Context(), "k", begun.Token, r, time.Minute); err != nil {
		t.Fatal(err)
	}
	again, err := store.Begin(t.Context(), "k", fp, time.Minute)
	if err != nil || !bytes.Equal(again.Response.Body, r.Body) {
		t.Errorf("%v, %d bytes", err, len(again.Response.Body))
	}
}

func TestALargeAnswerHasItsTime(t *testing.T) {
	s := start(t)
	patient, f := open(t, s.Addr()), open(t, s.Addr(), func(c *abateredis.Config) { c.Timeout = 300 * time.Millisecond })
	begun, err := patient.Store(16<<20).Begin(t.Context(), "k", fp, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	ready(t, 2, f)
	s.Pause()
	defer s.Resume()
	began := time.Now()
	err = f.Store(16<<20).Complete(t.Context(), "k", begun.Token, idempotency.Response{
		Status: 200, Body: bytes.Repeat([]byte("x"), 16<<20),
	}, time.Minute)
	if took := time.Since(began); err == nil || took < time.Second { // 800 ms more than a small one
		t.Errorf("%v after %v", err, took)
	}
}

func TestAFullRedisIsFull(t *testing.T) {
	s := start(t, "maxmemory 1")
	f := open(t, s.Addr())
	_, err := f.Store(1000).Begin(t.Context(), "k", fp, time.Minute)
	if !errors.Is(err, idempotency.ErrFull) {
		t.Errorf("%v", err)
	}
}

func TestKeysInRedisExpire(t *testing.T) {
	s := start(t)
	c := s.client()
	store := open(t, s.Addr(), func(c *abateredis.Config) { c.Prefix = "ttl:" }).Store(1000)
	expiry := func() time.Duration {
		keys, err := c.Keys(t.Context(), "ttl:*:key").Result()
		if err != nil || len(keys) != 1 {
			t.Fatalf("keys %q, %v", keys, err)
		}
		return c.PTTL(t.Context(), keys[0]).Val()
	}
	near := func(what string, want time.Duration) {
		if got := expiry(); got > want || got < want-patience {
			t.Errorf("%s: expires in %v, want %v", what, got, want)
		}
	}
	begun, err := store.Begin(t.Context(), "k", fp, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	near("begun", time.Minute+idempotency.Abandoned)
	if err := store.Renew(t.Context(), "k", begun.Token, time.Hour); err != nil {
		t.Fatal(err)
	}
	near("renewed", time.Hour+idempotency.Abandoned)
	if err := store.Complete(t.Context(), "k", begun.Token, idempotency.Response{Status: 200}, 30*time.Minute); err !=
		nil {
		t.Fatal(err)
	}
	near("complete", 30*time.Minute)
}

func TestTokensGrowOverAFailedTry(t *testing.T) {
	everywhere(t, func(t *testing.T, addr string) {
		store := open(t, addr).Store(1000)
		var last uint64
		for range 100 {
			begun, err := store.Begin(t.Context(), "k", fp, time.Minute)
			if err != nil || begun.Token <= last || begun.TakenOver {
				t.Fatalf("%+v after %d, %v", begun, last, err)
			}
			last = begun.Token
			if err := store.Fail(t.Context(), "k", begun.Token); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAStoreWithoutRedisSaysSo(t *testing.T) {
	s := start(t)
	w := &watch{}
	store := open(t, s.Addr(), w.into).Store(1000)
	begun, err := store.Begin(t.Context(), "k", fp, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	s.Crash()
	for range 100 {
		if _, err := store.Begin(t.Context(), "k", fp, time.Minute); err == nil || !strings.Contains(err.Error(), s.Addr()) &&
			!errors.Is(err, abate.ErrCircuitOpen) {
			t.Fatal(err)
		}
		if err := store.Complete(t.Context(), "k", begun.Token, idempotency.Response{}, time.Minute); err == nil ||
			errors.Is(err, idempotency.ErrLost) {
			t.Fatal(err)
		}
	}
	if w.fallbacks.Load() < 200 {
		t.Errorf("%d of 200 were told", w.fallbacks.Load())
	}
}

func TestAdjustProtectionConnectsWhatIsTheFleets(t *testing.T) {
	s := start(t)
	f := open(t, s.Addr())
	p := inbound.DefaultProtection()
	p.RateLimit = per(1, time.Hour, 3)
	p.Idempotency.Methods = []string{"POST"}
	own := p
	own.RateLimit.Fleet = false
	f.AdjustProtection("api", &own)
	if own.Fleet != nil || own.Store != nil {
		t.Error("took over what is not the fleet's")
	}
	p.Idempotency.Fleet = true
	f.AdjustProtection("api", &p)
	again := p
	f.AdjustProtection("api", &again)
	if p.Store == nil {
		t.Error("no store")
	}
	for i := range 5 {
		limiter := []inbound.FleetLimiter{p.Fleet, again.Fleet}[i%2]
		if d := limiter.Take(t.Context(), "k", 1); d.Allowed != (i < 3) {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	if _, err := inbound.NewGate("api", p); err != nil {
		t.Error(err)
	}
}
