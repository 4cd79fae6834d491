package abateprom_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
)

func TestAGateShowsHowFullItsStoreOfKeysIs(t *testing.T) {
	m := metrics(t)
	m.gate(t, "without", inbound.Protection{})
	memory := idempotency.NewMemory(65536, core.Now)
	memory.Shorten(time.Nanosecond, nil)
	g := m.gate(t, "s", inbound.Protection{
		Store: memory, Idempotency: idempotency.Config{Methods: []string{"POST"}, Retention: time.Hour},
	})
	store, c, _ := g.Idempotency()
	put := func(n int) {
		key := idempotency.StoreKey("s", "", fmt.Sprint(n))
		begun, err := store.Begin(t.Context(), key, idempotency.Fingerprint{}, c.Lease)
		if err == nil {
			err = store.Complete(t.Context(), key, begun.Token, idempotency.Response{Status: 200}, c.Retention)
		}
		if err != nil && !errors.Is(err, idempotency.ErrFull) {
			t.Fatal(err)
		}
	}
	put(0)
	m.scrape(t).want(t, map[string]float64{
		`abate_idempotency_keys{service="s"}`: 1, `abate_idempotency_max_bytes{service="s"}`: 65536,
		`abate_idempotency_retention_seconds{service="s"}`: 3600,
		`abate_idempotency_held_seconds{service="s"}`:      3600, `abate_idempotency_forgotten_total{service="s"}`: 0,
	})
	for n := range 400 { // more than there is room for
		put(n + 1)
	}
	u, ok := g.KeysUsage()
	if !ok || u.Shortened.Keys == 0 {
		t.Fatalf("%+v", u)
	}
	m.scrape(t).want(t, map[string]float64{`abate_idempotency_keys{service="s"}`: float64(u.Keys),
		`abate_idempotency_max_keys{service="s"}`:        float64(u.MaxKeys),
		`abate_idempotency_bytes{service="s"}`:           float64(u.Bytes),
		`abate_idempotency_forgotten_total{service="s"}`: float64(u.Shortened.Keys)})
	if held := u.Held(c.Retention); held >= c.Retention {
		t.Errorf("held for %v", held)
	}
	if n := len(m.scrape(t).of("abate_idempotency_keys")); n != 1 {
		t.Errorf("%d gates show keys, want the one that keeps them", n)
	}
}
