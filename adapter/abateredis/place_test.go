package abateredis_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
)

// shop is a service behind a gate whose keys are a fleet's.
type shop struct {
	t    *testing.T
	gate *inbound.Gate
	runs int
	work func() // of each run
}

func keyed(fleet bool) inbound.Protection {
	return inbound.Protection{
		Idempotency: idempotency.Config{Methods: []string{"POST"}, Fleet: fleet, Lease: time.Second},
	}
}

func shopOf(t *testing.T, f *abateredis.Fleet) *shop {
	p := keyed(true)
	f.AdjustProtection("shop", &p)
	g, err := inbound.NewGate("shop", p)
	if err != nil {
		t.Fatal(err)
	}
	return &shop{t: t, gate: g, work: func() {}}
}

// post has the one request done that there is, as drivers of gates do. It reports whether it was answered.
func (s *shop) post() bool {
	s.t.Helper()
	ctx := s.t.Context()
	store, c, _ := s.gate.Idempotency()
	for _, e := range s.gate.EarlierStores(core.Now()) {
		b, err := e.Begin(ctx, "k", fp, c.Lease)
		switch {
		case err != nil:
			s.t.Error(err)
		case b.State != idempotency.Run:
			return b.State == idempotency.Replay
		default:
			_ = e.Fail(ctx, "k", b.Token)
		}
	}
	b, err := store.Begin(ctx, "k", fp, c.Lease)
	if err != nil {
		s.t.Error(err)
	}
	if b.State != idempotency.Run {
		return b.State == idempotency.Replay
	}
	s.runs++
	s.work()
	if err := store.Complete(ctx, "k", b.Token, idempotency.Response{Status: 201}, c.Retention); err != nil {
		s.t.Error(err)
		return false
	}
	return true
}

// reload is what a policy file does with a gate when it is read again.
func (s *shop) reload(f *abateredis.Fleet) {
	s.t.Helper()
	p := keyed(f != nil)
	if f != nil {
		f.AdjustProtection("shop", &p)
	}
	if err := s.gate.Update(p); err != nil {
		s.t.Fatal(err)
	}
}

// reconfigure is a fleet's way to another Redis.
func reconfigure(t *testing.T, f *abateredis.Fleet, addr, prefix string) {
	t.Helper()
	if err := f.Reconfigure(abateredis.Config{Addresses: []string{addr}, Prefix: prefix, Timeout: slack}); err != nil {
		t.Fatal(err)
	}
}

// A gate forgets no key when its fleet goes elsewhere, whether the gate is updated before, after, or not at all.
func TestAFleetThatGoesElsewhereForgetsNoKey(t *testing.T) {
	one, two := start(t), start(t)
	for name, move := range map[string]func(f *abateredis.Fleet, s *shop){
		"to another Redis": func(f *abateredis.Fleet, s *shop) {
			reconfigure(t, f, two.Addr(), "")
			s.reload(f)
		},
		"to another Redis, which the gate does not know": func(f *abateredis.Fleet, s *shop) {
			s.reload(f)
			reconfigure(t, f, two.Addr(), "")
		},
		"to another prefix": func(f *abateredis.Fleet, s *shop) {
			reconfigure(t, f, one.Addr(), "shop:")
			s.reload(f)
		},
		"to another one and back": func(f *abateredis.Fleet, s *shop) {
			reconfigure(t, f, two.Addr(), "")
			s.reload(f)
			reconfigure(t, f, one.Addr(), "")
			s.reload(f)
		},
		"nowhere": func(f *abateredis.Fleet, s *shop) {
			s.reload(nil)
			f.Close()
		},
		"to another one and then nowhere": func(f *abateredis.Fleet, s *shop) {
			reconfigure(t, f, two.Addr(), "")
			s.reload(f)
			s.reload(nil)
			f.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			one.client().FlushAll(t.Context())
			f := open(t, one.Addr())
			s := shopOf(t, f)
			if !s.post() {
				t.Fatal("not done")
			}
			move(f, s)
			if !s.post() || s.runs != 1 {
				t.Errorf("acknowledged and done %d times", s.runs)
			}
		})
	}
}

// Who asks for something while its fleet ends gets the answer, and so do the repeats.
func TestARunAcrossTheEndOfItsFleetIsRecorded(t *testing.T) {
	f := open(t, start(t).Addr())
	s := shopOf(t, f)
	s.work = func() {
		s.reload(nil)
		f.Close()
	}
	for _, who := range []string{"the first caller", "the repeat"} {
		if !s.post() || s.runs != 1 {
			t.Errorf("%s is not answered, or it was done again: %d times", who, s.runs)
		}
	}
}
