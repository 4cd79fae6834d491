package idempotency_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

// model is a store as its comments promise it, without a bound on memory, beside a real one.
type model struct {
	t     *testing.T
	real  *idempotency.Memory
	small bool // the real one may drop answers and refuse keys
	clock clock
	keys  map[string]*modelKey
	last  uint64   // token
	given []uint64 // some tokens, for calls of those who have lost
}

type modelKey struct {
	fp                       idempotency.Fingerprint
	token                    uint64
	done, takenOver, dropped bool
	lease, due               time.Duration
	body                     string
}

// get returns what is known of a key by now.
func (m *model) get(key string) *modelKey {
	k := m.keys[key]
	if k != nil && k.due <= m.clock.now() {
		delete(m.keys, key)
		return nil
	}
	return k
}

func (m *model) begin(key string, fp idempotency.Fingerprint, lease time.Duration) {
	got, err := m.real.Begin(m.t.Context(), key, fp, lease)
	k, now := m.get(key), m.clock.now()
	if m.small && k == nil && errors.Is(err, idempotency.ErrFull) {
		return
	}
	if err != nil {
		m.t.Fatalf("Begin: %v", err)
	}
	want := idempotency.Begun{}
	switch {
	case k == nil:
		k = &modelKey{fp: fp}
		m.keys[key] = k
	case k.fp != fp:
		want.State = idempotency.Mismatch
	case k.done:
		want.State = idempotency.Replay
	case k.lease > now:
		want.State, want.Lease = idempotency.Running, k.lease-now
	default:
		k.takenOver = true
	}
	if want.State == idempotency.Run {
		want.TakenOver = k.takenOver
		if got.Token <= m.last {
			m.t.Fatalf("token %d after %d", got.Token, m.last)
		}
		m.last, k.token = got.Token, got.Token
		m.given = append(m.given, got.Token)
		k.lease, k.due = now+lease, now+lease+idempotency.Abandoned
	}
	if got.State != want.State || got.TakenOver != want.TakenOver || got.Lease != want.Lease {
		m.t.Fatalf("at %v, %q: %+v, want %+v", now, key, got, want)
	}
	if got.State == idempotency.Replay {
		m.answer(k, got.Response)
	}
}

// answer compares an answer. One that is gone stays so.
func (m *model) answer(k *modelKey, r idempotency.Response) {
	switch {
	case r.Status != 200+len(k.body)%100:
		m.t.Fatalf("status %d for a body of %d bytes", r.Status, len(k.body))
	case r.Truncated && m.small:
		k.dropped = true
	case r.Truncated || k.dropped || string(r.Body) != k.body:
		m.t.Fatalf("truncated %v, dropped before %v, body %q, want %q", r.Truncated, k.dropped, r.Body, k.body)
	}
}

// end calls Renew, Complete or Fail, by the holder or another.
func (m *model) end(key string, how, who byte, d time.Duration) {
	k, now := m.get(key), m.clock.now()
	token := m.last + uint64(who)
	if k != nil && who%4 > 0 {
		token = k.token
	} else if len(m.given) > 0 && who%8 > 0 {
		token = m.given[int(who)%len(m.given)]
	}
	holds := k != nil && !k.done && k.token == token && token != 0 // which nobody was given
	body := fmt.Sprintf("%0*d", 1+int(who)*int(how), token)
	var err error
	if how%3 == 1 && m.small && k != nil && k.done && k.token == token {
		return // whether its answer was dropped, and comes back, only the real one knows
	}
	switch how % 3 {
	case 0:
		err = m.real.Renew(m.t.Context(), key, token, d)
		if holds {
			k.lease, k.due = now+d, now+d+idempotency.Abandoned
		}
	case 1:
		r := idempotency.Response{Status: 200 + len(body)%100, Body: []byte(body)}
		err = m.real.Complete(m.t.Context(), key, token, r, d)
		if holds {
			k.done, k.body, k.due = true, body, now+d
		} else if k != nil && k.done && k.token == token { // told before: what is stored stays
			holds = true
		}
	case 2:
		err = m.real.Fail(m.t.Context(), key, token)
		if holds && k.takenOver {
			k.token, k.lease, k.due = 0, now, now+idempotency.Abandoned
		} else if holds {
			delete(m.keys, key)
		}
	}
	if (err == nil) != holds || err != nil && !errors.Is(err, idempotency.ErrLost) {
		m.t.Fatalf("at %v, %q, token %d: %v, holds it %v", now, key, token, err, holds)
	}
}

func (m *model) step(op, a, b, c byte) {
	key := fmt.Sprint("key ", a%16)
	d := time.Duration(b) * time.Second
	switch op % 6 {
	case 0, 1:
		m.begin(key, idempotency.Fingerprint{c / 240}, d)
	case 2, 3, 4:
		m.end(key, op/6, c, d)
	case 5:
		m.clock.advance(d)
		if c == 0 {
			m.clock.advance(idempotency.Abandoned)
		}
	}
	if n := m.real.Bytes(); n < 0 || n > m.size() {
		m.t.Fatalf("%d bytes in use of %d", n, m.size())
	}
}

func (m *model) size() int64 {
	if m.small {
		return 4000
	}
	return 64 << 20
}

func play(t *testing.T, program []byte) {
	for _, small := range []bool{false, true} {
		m := &model{t: t, small: small, keys: map[string]*modelKey{}}
		m.real = idempotency.NewMemory(m.size(), m.clock.now)
		for p := program; len(p) >= 4; p = p[4:] {
			m.step(p[0], p[1], p[2], p[3])
		}
		m.finally()
	}
}

// finally checks that what is over leaves nothing behind: a store that has forgotten all takes as many keys as a new
// one.
func (m *model) finally() {
	m.clock.advance(idempotency.Abandoned + 256*time.Second)
	for m.real.Len() > 0 {
		_ = m.real.Fail(m.t.Context(), "of a store that forgets", 1)
	}
	if now, fresh := m.takes(m.real), m.takes(idempotency.NewMemory(m.size(), m.clock.now)); now != fresh {
		m.t.Fatalf("it takes %d keys, a new one %d", now, fresh)
	}
}

// takes returns how many keys there is room for, some hundred at most.
func (m *model) takes(s *idempotency.Memory) (n int) {
	for ; n < 300; n++ {
		if _, err := s.Begin(m.t.Context(), fmt.Sprintf("key %03d", n), idempotency.Fingerprint{}, time.Hour); err != nil {
			break
		}
	}
	return n
}

func FuzzMemoryAgainstItsModel(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x03\x01\x20\x01\x00\x01\x02\x03"))
	random := rand.New(rand.NewPCG(3, 4))
	for range 4 {
		var program []byte
		for range 200 {
			program = binary.LittleEndian.AppendUint32(program, random.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) { play(t, program[:min(len(program), 1<<10)]) })
}

func TestRandomLoadKeepsTheRules(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 150 {
		program := make([]byte, 4*(10+random.IntN(400)))
		for i := range program {
			program[i] = byte(random.Uint32())
		}
		play(t, program)
	}
}

// FuzzPrincipal: whoever shows another credential is another principal, whatever else he writes, unless the scope makes
// one of all or looks at something that only trusted peers can say.
func FuzzPrincipal(f *testing.F) {
	f.Add("", "Bearer a", "Bearer b", "x", "sid=1; a=2")
	f.Add("header:x-user", "", "a", "ann", "")
	f.Add("cookie:sid", "a", "", "", "sid=;sid=1,sid")
	f.Add("credential", "a\x00", "a", "\x00", ";=")
	f.Fuzz(func(t *testing.T, scope, one, two, other, cookie string) {
		sender := func(credential string) idempotency.Sender {
			return idempotency.Sender{Field: func(name string) string {
				switch name {
				case "authorization":
					return credential
				case "cookie":
					return cookie
				}
				return other
			}}
		}
		a, _ := idempotency.Principal(scope, sender(one))
		b, _ := idempotency.Principal(scope, sender(two))
		if again, _ := idempotency.Principal(scope, sender(one)); again != a || a == "" {
			t.Fatalf("%q, then %q", a, again)
		}
		if shared := scope == idempotency.ScopeEverybody || len(scope) > 7 && scope[:7] == "cookie:"; !shared &&
			(a == b) != (one == two) {
			t.Errorf("scope %q: %q and %q are %q and %q", scope, one, two, a, b)
		}
	})
}
