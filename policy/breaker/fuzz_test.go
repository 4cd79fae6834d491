package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// fuzzConfigs are small, so that a short input reaches every state.
var fuzzConfigs = []breaker.Config{
	{FailureThreshold: 2, SuccessThreshold: 2, PermittedCallsInHalfOpen: 2, HalfOpenPermitLease: 300 * ms},
	{FailureRateThreshold: 0.5, MinimumNumberOfCalls: 3, SlidingWindow: breaker.Window{Calls: 5}, RampUp: 2 * s},
	{FailureRateThreshold: 0.5, MinimumNumberOfCalls: 3, SlidingWindow: breaker.Window{Duration: s},
		PermittedCallsInHalfOpen: 1},
	{SlowCallRateThreshold: 0.5, SlowCallDurationThreshold: 200 * ms, MinimumNumberOfCalls: 2,
		SlidingWindow: breaker.Window{Calls: 5}, RampUp: s},
	{SlowCallRateThreshold: 0.5, SlowCallDurationThreshold: 300 * ms, FailureThreshold: 3, MinimumNumberOfCalls: 2,
		SuccessThreshold: 1},
	{FailureThreshold: 1, Mode: breaker.Shadow, SuccessThreshold: 1, RampUp: s},
	{FailureThreshold: 1, Mode: breaker.ForcedOpen},
	{FailureThreshold: 1, Disabled: true},
}

var fuzzSteps = []time.Duration{0, 1, ms, 40 * ms, 110 * ms, 350 * ms, s, 3 * s, 20 * s, time.Hour, -ms, -400 * ms}

// rig drives a breaker by bytes and holds it to its promises.
type rig struct {
	t       *testing.T
	b       *breaker.Breaker
	cfg     breaker.Config // with defaults
	now     time.Duration
	latest  time.Duration
	flying  []breaker.Permit // admitted, not recorded
	done    []breaker.Permit // recorded
	begun   []breaker.Permit // answered, not ended
	twice   bool             // something was recorded twice
	probes  map[breaker.Permit]time.Duration
	gen     uint32
	changes []breaker.Change
}

func newRig(t *testing.T, c breaker.Config) *rig {
	r := &rig{t: t, cfg: c.WithDefaults(), probes: map[breaker.Permit]time.Duration{}}
	r.b = breaker.New(c, nil, func(c breaker.Change) { r.changes = append(r.changes, c) })
	return r
}

func (r *rig) failf(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("at %v, %+v, %+v: %s", r.now, r.cfg, r.b.Snapshot(r.now), fmt.Sprintf(format, args...))
}

func (r *rig) move(d time.Duration) {
	r.now += d
	r.latest = max(r.latest, r.now)
}

func (r *rig) allow() {
	before := r.b.Snapshot(r.now)
	rejecting, hint := r.b.Rejecting(r.now), r.b.RetryIn(r.now)
	if r.b.Snapshot(r.now) != before {
		r.failf("asking changed something, was %+v", before)
	}
	p, ok := r.b.Allow(r.now)
	after := r.b.Snapshot(r.now)
	admitted := ok && !p.WouldReject()
	shadow := r.cfg.Mode == breaker.Shadow && !r.cfg.Disabled
	switch {
	case shadow && !ok:
		r.failf("shadow mode rejected")
	case !shadow && ok == p.WouldReject():
		r.failf("admitted %v but the permit says rejected %v", ok, p.WouldReject())
	case rejecting && admitted && before.State != breaker.RampUp:
		r.failf("admitted while rejecting")
	case !r.cfg.Enabled() && !admitted:
		r.failf("switched off but rejected")
	case r.cfg.Enabled() && r.cfg.Mode == breaker.ForcedOpen && admitted:
		r.failf("forced open but admitted")
	case before.State == breaker.Open && r.now < before.OpenUntil && admitted:
		r.failf("admitted before its time")
	case hint < 0 || hint > 0 && (before.State != breaker.Open || !rejecting):
		r.failf("hint %v, rejecting %v", hint, rejecting)
	case after.State == breaker.Closed && !admitted:
		r.failf("closed but rejected")
	}
	if !admitted {
		return
	}
	r.flying = append(r.flying, p)
	if after.State == breaker.HalfOpen {
		r.probe(p, after.Generation)
	}
}

// probe holds half-open to its limit: permits out, neither reported nor past their lease.
func (r *rig) probe(p breaker.Permit, gen uint32) {
	if gen != r.gen {
		clear(r.probes)
		r.gen = gen
	}
	for q, until := range r.probes {
		if r.latest >= until {
			delete(r.probes, q)
		}
	}
	r.probes[p] = r.now + r.cfg.HalfOpenPermitLease
	if len(r.probes) > r.cfg.PermittedCallsInHalfOpen {
		r.failf("%d probes out", len(r.probes))
	}
}

func (r *rig) record(i int, res breaker.Result) {
	if len(r.flying) == 0 {
		return
	}
	i %= len(r.flying)
	p := r.flying[i]
	r.flying = append(r.flying[:i], r.flying[i+1:]...)
	r.done = append(r.done, p)
	delete(r.probes, p)
	r.b.Record(r.now, p, res)
}

// answer begins the answer of a call. A probe holds its place still.
func (r *rig) answer(i int) {
	if len(r.flying) == 0 {
		return
	}
	i %= len(r.flying)
	p := r.flying[i]
	r.flying = append(r.flying[:i], r.flying[i+1:]...)
	r.begun = append(r.begun, r.b.Answered(r.now, p))
}

func (r *rig) end(i int) {
	if len(r.begun) == 0 {
		return
	}
	p := r.begun[i%len(r.begun)]
	r.begun = slices.Delete(r.begun, i%len(r.begun), i%len(r.begun)+1)
	delete(r.probes, p)
	before := r.b.Snapshot(r.now)
	r.b.Ended(r.now, p, breaker.Result(i%3))
	if after := r.b.Snapshot(r.now); after.Calls > before.Calls+1 && after.Generation == before.Generation {
		r.failf("the end of an answer counted as more than a call")
	}
}

func (r *rig) step(op byte) {
	arg := int(op >> 4)
	switch op & 15 {
	case 0, 1, 2, 3, 4:
		r.allow()
	case 5, 6:
		r.record(arg, breaker.Failure)
	case 7, 8, 9:
		r.record(arg, breaker.Success)
	case 10:
		switch {
		case arg < 4:
			r.record(arg, breaker.Result(2+arg))
		case arg < 10:
			r.answer(arg)
		default:
			r.end(arg)
		}
	case 11, 12, 13:
		r.move(fuzzSteps[arg%len(fuzzSteps)])
	case 14:
		c := fuzzConfigs[arg%len(fuzzConfigs)]
		r.cfg = c.WithDefaults()
		r.b.Reconfigure(r.now, c)
	case 15:
		if len(r.done) > 0 {
			r.twice = true
			r.b.Record(r.now, r.done[arg%len(r.done)], breaker.Result(arg%3))
		}
	}
	r.check()
}

func (r *rig) check() {
	snap := r.b.Snapshot(r.now)
	switch {
	case snap.Calls < 0 || snap.Hanging < 0 || snap.Hanging > len(r.flying)+len(r.done):
		r.failf("impossible counts")
	case !r.twice && snap.Hanging > len(r.flying):
		r.failf("%d hang, but only %d are out", snap.Hanging, len(r.flying))
	case snap.FailureRate < 0 || snap.FailureRate > 1 || snap.SlowRate < 0 || snap.SlowRate > 1:
		r.failf("impossible rates")
	case r.cfg.SlidingWindow.Calls > 0 && snap.Calls > r.cfg.SlidingWindow.Calls:
		r.failf("more calls than the window holds")
	case snap.OpenUntil > r.latest+r.cfg.MaxWaitDurationInOpenState:
		r.failf("open for longer than the longest wait")
	}
	for _, c := range r.changes {
		switch [2]breaker.State{c.From, c.To} {
		case [2]breaker.State{breaker.Closed, breaker.Open},
			[2]breaker.State{breaker.Open, breaker.HalfOpen},
			[2]breaker.State{breaker.HalfOpen, breaker.Open},
			[2]breaker.State{breaker.HalfOpen, breaker.RampUp},
			[2]breaker.State{breaker.HalfOpen, breaker.Closed},
			[2]breaker.State{breaker.RampUp, breaker.Open},
			[2]breaker.State{breaker.RampUp, breaker.Closed}:
		default:
			if c.Reason != "reconfigured" && c.Reason != "forced open" {
				r.failf("change %+v", c)
			}
		}
	}
	r.changes = r.changes[:0]
}

func FuzzBreakerKeepsItsPromises(f *testing.F) {
	for c := range byte(len(fuzzConfigs)) {
		f.Add(c, []byte{0, 5, 0, 5, 0, 5, 0x6b, 0, 0, 0, 0x17, 7, 7, 0, 0, 0x4b, 5, 5, 15, 0xab, 0x1e, 0, 0x9b, 0,
			0x3e, 0, 7})
		f.Add(c, []byte{0, 0, 0, 0, 0x5b, 0, 0, 0x6b, 7, 5, 10, 0x7b, 0, 0, 7, 15, 7, 0x6b, 0, 0xbb, 0, 7, 0x6e, 0, 0x1e, 0})
	}
	f.Fuzz(func(t *testing.T, c byte, ops []byte) {
		r := newRig(t, fuzzConfigs[int(c)%len(fuzzConfigs)])
		for _, op := range ops[:min(len(ops), 400)] {
			r.step(op)
		}
		for len(r.flying) > 0 {
			r.record(0, breaker.Neutral)
		}
		if got := r.b.Snapshot(r.latest + time.Hour).Hanging; got != 0 && !r.twice {
			r.failf("%d calls hang after all have ended", got)
		}
	})
}

// plain is the closed breaker written the slow and obvious way: every call is kept.
type plain struct {
	c     breaker.Config
	calls []struct{ failed, slow bool }
	row   int
}

func (m *plain) record(failed, slow bool) (open bool) {
	m.calls = append(m.calls, struct{ failed, slow bool }{failed, slow})
	m.calls = m.calls[max(0, len(m.calls)-m.c.SlidingWindow.Calls):]
	m.row++
	if !failed {
		m.row = 0
	}
	var nf, ns float64
	for _, c := range m.calls {
		if c.failed {
			nf++
		}
		if c.slow {
			ns++
		}
	}
	n := float64(len(m.calls))
	enough := len(m.calls) >= m.c.MinimumNumberOfCalls
	return m.c.FailureThreshold > 0 && m.row >= m.c.FailureThreshold ||
		m.c.FailureRateThreshold > 0 && enough && nf/n >= m.c.FailureRateThreshold ||
		m.c.SlowCallRateThreshold > 0 && enough && ns/n >= m.c.SlowCallRateThreshold
}

// The real breaker must open at exactly the call at which the obvious one does.
func FuzzCountWindowAgreesWithTheObviousOne(f *testing.F) {
	f.Add(uint8(10), uint8(4), uint8(3), uint8(50), uint8(80), []byte{0, 1, 2, 3, 0, 0, 1, 1, 1, 0, 2, 2, 3})
	f.Add(uint8(70), uint8(30), uint8(0), uint8(20), uint8(0),
		[]byte("some calls fail and some calls are slow and some are neither and so on and on"))
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 { // enough for every plain test run to compare both at length
		results := make([]byte, 300)
		for i := range results {
			if r.IntN(3) == 0 {
				results[i] = byte(r.IntN(4))
			}
		}
		f.Add(uint8(r.IntN(200)), uint8(r.IntN(100)), uint8(r.IntN(8)), uint8(20+r.IntN(30)), uint8(20+r.IntN(30)), results)
	}
	f.Fuzz(func(t *testing.T, size, minimum, row, failPercent, slowPercent uint8, results []byte) {
		c := breaker.Config{
			FailureThreshold:      int(row),
			FailureRateThreshold:  float64(failPercent) / 100,
			SlowCallRateThreshold: float64(slowPercent) / 100,
			MinimumNumberOfCalls:  int(minimum),
			SlidingWindow:         breaker.Window{Calls: max(int(size), 1)},
		}.WithDefaults()
		if !c.Enabled() {
			return
		}
		b, m := breaker.New(c, nil, nil), &plain{c: c}
		for i, x := range results {
			failed, slow := x&1 != 0, x&2 != 0
			now := time.Duration(i) * time.Minute
			p, ok := b.Allow(now)
			if !ok {
				t.Fatalf("call %d: refused while closed", i)
			}
			if slow {
				now += s
			}
			r := breaker.Success
			if failed {
				r = breaker.Failure
			}
			b.Record(now, p, r)
			open := m.record(failed, slow && c.SlowCallRateThreshold > 0)
			if got := b.State() == breaker.Open; got != open {
				t.Fatalf("after call %d: open %v, the obvious one %v: %+v", i, got, open, b.Snapshot(now))
			}
			if open {
				return
			}
		}
	})
}
