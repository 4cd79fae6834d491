package hedge_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/hedge"
)

// Drives a policy through any history: each 9 bytes are an operation and its
// number. What must hold afterwards does not depend on the history.
func FuzzPolicy(f *testing.F) {
	f.Add(int64(0), 0.9, int64(0), 1, []byte("\x00\x00\x00\x00\x00\x00\x00\x10\x00\x01\x00\x00\x00\x00\x40\x00\x00\x00"))
	f.Add(int64(time.Second), 0.5, int64(time.Millisecond), 3,
		[]byte("\x03\xff\xff\xff\xff\xff\xff\xff\x7f\x02\x00\x00\x00\x00\x00\x00\x00\x80"))
	f.Add(int64(-1), math.NaN(), int64(math.MaxInt64), -7, []byte{})
	f.Fuzz(func(t *testing.T, delay int64, q float64, floor int64, hedges int, history []byte) {
		c := hedge.Config{Delay: time.Duration(delay), Quantile: q, MinDelay: time.Duration(floor), MaxHedges: hedges}
		p := hedge.New(c)
		now, recorded := time.Duration(0), 0
		for ; len(history) >= 9; history = history[9:] {
			number := time.Duration(binary.LittleEndian.Uint64(history[1:9]))
			switch history[0] % 5 {
			case 0: // many successes
				for range hedge.MinSamples {
					p.Record(now, number)
				}
				recorded += hedge.MinSamples
			case 1: // one success
				p.Record(now, number)
				recorded++
			case 2: // time passes
				now += number % (2 * time.Minute)
			case 3: // the clock does as it likes
				now = number
			case 4: // another configuration
				c.Disabled = !c.Disabled
				p.Reconfigure(now, c)
			}
			check(t, p, c, now, recorded)
		}
		check(t, p, c, now, recorded)
	})
}

func check(t *testing.T, p *hedge.Policy, c hedge.Config, now time.Duration, recorded int) {
	t.Helper()
	s := p.State() // what the next delay will be, when it is computed
	d, ok := p.Delay(now)
	switch {
	case ok != (d > 0) || d < 0:
		t.Fatalf("Delay = %v, %v; state %+v", d, ok, s)
	case !c.Enabled() && (ok || p.MaxHedges() != 0):
		t.Fatalf("off: Delay = %v, %v, MaxHedges = %d", d, ok, p.MaxHedges())
	case c.Enabled() && (p.MaxHedges() < 1 || p.MaxHedges() > 3):
		t.Fatalf("MaxHedges = %d", p.MaxHedges())
	case s.Samples < 0 || s.Samples > recorded || s.Learned && s.Samples < hedge.MinSamples:
		t.Fatalf("%d recorded: state %+v", recorded, s)
	case s.Learned && (s.Delay > time.Hour || c.MinDelay > 0 && s.Delay < min(c.MinDelay, time.Hour)):
		t.Fatalf("learned delay %v with a floor of %v", s.Delay, c.MinDelay)
	case !s.Learned && c.Enabled() && s.Delay != fixed(c):
		t.Fatalf("delay = %v, want the fixed one, %v", s.Delay, fixed(c))
	}
}

// fixed returns the configured delay in its range, 0 if it is not set.
func fixed(c hedge.Config) time.Duration {
	if c.Delay <= 0 {
		return 0
	}
	return min(max(c.Delay, time.Millisecond), time.Hour)
}
