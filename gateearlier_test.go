package abate_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate"
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
	one, two := idempotency.NewMemory(1<<20, abate.Now), idempotency.NewMemory(1<<20, abate.Now)
	place := new(int)
	with := func(s idempotency.Store) abate.Protection {
		return abate.Protection{Store: s, Idempotency: idempotency.Config{Methods: []string{"POST"}, Retention: time.Hour}}
	}
	away := with(nil)
	away.Idempotency.Fleet = true
	for name, c := range map[string]struct {
		updates []abate.Protection
		want    []idempotency.Store
	}{
		"nowhere else":                          {[]abate.Protection{with(one), with(one)}, nil},
		"in one":                                {[]abate.Protection{with(one), with(two)}, []idempotency.Store{one}},
		"in one, and there again":               {[]abate.Protection{with(one), with(two), with(one)}, []idempotency.Store{two}},
		"in one, while keys are not looked at":  {[]abate.Protection{with(one), {}}, []idempotency.Store{one}},
		"in one, when they are looked at again": {[]abate.Protection{with(one), {}, with(one)}, nil},
		"where nobody could be reached":         {[]abate.Protection{away, with(one)}, nil},
		"in one that is made anew":              {[]abate.Protection{with(&twin{one, place}), with(&twin{one, place})}, nil},
		"in one that cannot be compared":        {[]abate.Protection{with(listing{Store: one}), with(listing{Store: one})}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := abate.NewGate("shop", c.updates[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range c.updates[1:] {
				if err := g.UpdateAt(abate.Now(), p); err != nil {
					t.Fatal(err)
				}
			}
			got := g.EarlierStores(abate.Now())
			if len(got) != len(c.want) || len(got) == 1 && got[0] != c.want[0] {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestWhereKeysWereBeforeIsForgottenWithTheKeys(t *testing.T) {
	one := idempotency.NewMemory(1<<20, abate.Now)
	p := abate.Protection{Store: one, Idempotency: idempotency.Config{Methods: []string{"POST"}, Retention: time.Hour}}
	g, err := abate.NewGate("shop", p)
	if err != nil {
		t.Fatal(err)
	}
	p.Store = idempotency.NewMemory(1<<20, abate.Now)
	if err := g.UpdateAt(abate.Now()-2*time.Hour, p); err != nil {
		t.Fatal(err)
	}
	if got := g.EarlierStores(abate.Now()); len(got) != 0 {
		t.Errorf("after the retention: %v", got)
	}
}
