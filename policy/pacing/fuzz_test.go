package pacing_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/pacing"
)

// FuzzAnyClock lets the clock jump anywhere, with any policy: whoever gets a turn waits no longer than agreed, who is
// refused takes nothing, and the answers never contradict State.
func FuzzAnyClock(f *testing.F) {
	f.Add(10.0, 1, 0.5, int64(5*s), 0.1, int64(s), []byte{0, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add(0.01, 1_000_000, 1.0, int64(time.Hour), 0.001, int64(time.Hour), []byte{
		255, 255, 255, 255, 255, 255, 255, 127, 9, 0, 0, 0, 0, 0, 0, 0, 128, 2,
	})
	f.Add(math.NaN(), -1, math.Inf(1), int64(never), math.NaN(), int64(-1), []byte{
		1, 2, 3, 4, 5, 6, 7, 8, 3, 8, 7, 6, 5, 4, 3, 2, 1, 4,
	})
	f.Add(1e6, 3, 0.001, int64(1), 1.0, int64(ms), []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1})
	// the first turn of all, in the first hour that there is
	f.Add(0.01, 1_000_039, 33.2, int64(time.Hour), 0.001, int64(time.Hour), []byte("1921X\x00\x00\x802"))
	f.Fuzz(func(t *testing.T, perSecond float64, burst int, jitter float64, rampUp int64, from float64, maxWait int64,
		ops []byte) {
		c := pacing.Config{PerSecond: perSecond, Burst: burst, Jitter: jitter, RampUp: time.Duration(rampUp),
			RampUpFrom: from, MaxWait: time.Duration(maxWait)}
		p := pacing.New(c)
		full := c.WithDefaults()
		for ; len(ops) >= 9; ops = ops[9:] {
			now := time.Duration(binary.LittleEndian.Uint64(ops))
			draw := binary.LittleEndian.Uint64(ops) * 0x9e3779b97f4a7c15
			patience := never >> (ops[8] >> 3)
			before := p.State(now)
			if before.Wait < 0 || !(before.PerSecond >= 0 && before.PerSecond <= max(full.PerSecond, 0)) {
				t.Fatalf("%+v at %v: %+v", full, now, before)
			}
			switch ops[8] & 7 {
			case 0:
				p.Restart(now, draw)
			case 1:
				p.Reconfigure(pacing.Config{})
				p.Reconfigure(c)
			default:
				wait, ok := p.Take(now, draw, patience)
				switch {
				case wait != before.Wait:
					t.Fatalf("%+v at %v: waits %v, State said %v", full, now, wait, before.Wait)
				case ok && full.Enabled() && wait > max(min(patience, full.MaxWait), 0):
					t.Fatalf("%+v at %v: waits %v, patience %v", full, now, wait, patience)
				case !ok && wait <= min(patience, full.MaxWait):
					t.Fatalf("%+v at %v: refused %v, patience %v", full, now, wait, patience)
				}
				if after := p.State(now); !ok && after != before {
					t.Fatalf("%+v at %v: a refusal made %+v of %+v", full, now, after, before)
				}
			}
		}
	})
}

// FuzzBound asks in an order of time that only goes forwards, as guards do: no window has more turns than it may.
func FuzzBound(f *testing.F) {
	f.Add(uint16(1000), uint8(1), uint8(50), uint16(5000), []byte{0, 0, 0, 10, 0, 200, 1, 99})
	f.Add(uint16(1), uint8(9), uint8(99), uint16(0), []byte{255, 0, 0, 0, 255, 255, 7, 0, 0})
	f.Add(uint16(65535), uint8(0), uint8(0), uint16(100), []byte{0, 1, 0, 1, 0, 255, 128})
	f.Fuzz(func(t *testing.T, rate uint16, burst, jitter uint8, rampUp uint16, ops []byte) {
		c := pacing.Config{PerSecond: float64(rate) / 100, Burst: int(burst), Jitter: float64(jitter%100) / 100,
			RampUp: time.Duration(rampUp) * ms, MaxWait: time.Hour}.WithDefaults()
		if !c.Enabled() {
			return
		}
		p, now, at := pacing.New(c), time.Duration(0), []time.Duration(nil)
		for i, op := range ops[:min(len(ops), 300)] {
			draw := uint64(op) << 56
			switch {
			case op == 7:
				p.Restart(now, draw)
			case i%3 == 2:
				now += time.Duration(float64(op) / 64 * float64(s) / c.PerSecond)
			}
			if wait, ok := p.Take(now, draw, never); ok {
				at = append(at, now+wait)
			}
		}
		for i := 1; i < len(at); i++ {
			if at[i] < at[i-1] {
				t.Fatalf("%+v: turn %d at %v, after one at %v", c, i, at[i], at[i-1])
			}
		}
		checkBound(t, c, at)
	})
}
