package abate_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
)

// listing is a store that cannot be compared.
type listing struct {
	idempotency.Store
	_ []string
}

// twin is a store that is made anew for each protection, for the same keys.
type twin struct {
	idempotency.Store
	of *int
}

func (t *twin) SameKeys(other idempotency.Store) bool {
	o, ok := other.(*twin)
	return ok && o.of == t.of
}

func TestAGateKnowsWhereItsKeysWereBefore(t *testing.T) {
	one, two := idempotency.NewMemory(1<<20, core.Now), idempotency.NewMemory(1<<20, core.Now)
	place := new(int)
	with := func(s idempotency.Store) inbound.Protection {
		return inbound.Protection{Store: s, Idempotency: idempotency.Config{Methods: []string{"POST"}, Retention: time.Hour}}
	}
	away := with(nil)
	away.Idempotency.Fleet = true
	for name, c := range map[string]struct {
		updates []inbound.Protection
		want    []idempotency.Store
	}{
		"nowhere else": {[]inbound.Protection{with(one), with(one)}, nil},
		"in one":       {[]inbound.Protection{with(one), with(two)}, []idempotency.Store{one}},
		"in one, and there again": {
			[]inbound.Protection{with(one), with(two), with(one)}, []idempotency.Store{two},
		},
		"in one, while keys are not looked at":  {[]inbound.Protection{with(one), {}}, []idempotency.Store{one}},
		"in one, when they are looked at again": {[]inbound.Protection{with(one), {}, with(one)}, nil},
		"where nobody could be reached":         {[]inbound.Protection{away, with(one)}, nil},
		"in one that is made anew": {
			[]inbound.Protection{with(&twin{one, place}), with(&twin{one, place})}, nil,
		},
		"in one that cannot be compared": {[]inbound.Protection{with(listing{Store: one}), with(listing{Store: one})}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := inbound.NewGate("shop", c.updates[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range c.updates[1:] {
				if err := g.UpdateAt(core.Now(), p); err != nil {
					t.Fatal(err)
				}
			}
			got := g.EarlierStores(core.Now())
			if len(got) != len(c.want) || len(got) == 1 && got[0] != c.want[0] {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestWhereKeysWereBeforeIsForgottenWithTheKeys(t *testing.T) {
	one := idempotency.NewMemory(1<<20, core.Now)
	p := inbound.Protection{Store: one, Idempotency: idempotency.Config{Methods: []string{"POST"}, Retention: time.Hour}}
	g, err := inbound.NewGate("shop", p)
	if err != nil {
		t.Fatal(err)
	}
	p.Store = idempotency.NewMemory(1<<20, core.Now)
	if err := g.UpdateAt(core.Now()-2*time.Hour, p); err != nil {
		t.Fatal(err)
	}
	if got := g.EarlierStores(core.Now()); len(got) != 0 {
		t.Errorf("after the retention: %v", got)
	}
}
