package kernel

import "math/bits"

// Stream is a sequence of random numbers: 16 bytes, so that every entity of a model
// has its own and adding one entity changes the numbers of no other. It is for
// simulation, not for secrets. Make one with NewStream; the zero value returns
// zeros. A Stream is for one goroutine; a copy repeats what the original will return.
//
// A counter with an odd step of its own goes through one 128-bit multiplication whose
// halves are folded together (the construction of Wang Yi's wyrand). Two streams
// count in different steps, so that they do not repeat one another shifted.
type Stream struct{ state, step uint64 }

// NewStream returns the stream of one entity in the run of one seed. All values of
// both are good, 0 included, and neighbouring ones are unrelated.
func NewStream(seed, entity uint64) Stream {
	state := scramble(scramble(seed) + entity*0x9e3779b97f4a7c15)
	step := scramble(state+0xd1b54a32d192ed03) | 1
	if bits.OnesCount64(step^step>>1) < 24 { // long runs of equal bits make poor steps
		step ^= 0xaaaaaaaaaaaaaaaa
	}
	return Stream{state, step}
}

// scramble maps numbers one to one so that a change of one bit changes half of the
// result (the constants are Pelle Evensen's, rrmxmx).
func scramble(x uint64) uint64 {
	x ^= bits.RotateLeft64(x, -49) ^ bits.RotateLeft64(x, -24)
	x *= 0x9fb21c651e98df25
	x ^= x >> 28
	x *= 0x9fb21c651e98df25
	return x ^ x>>28
}

// Uint64 returns a number of 64 random bits.
func (s *Stream) Uint64() uint64 {
	s.state += s.step
	high, low := bits.Mul64(s.state, s.state^0xe7037ed1a0b428db)
	return high ^ low
}

// Float64 returns a number in [0, 1), a multiple of 2**-53.
func (s *Stream) Float64() float64 { return float64(float64(s.Uint64()>>11) * 0x1p-53) }

// IntN returns a number in [0, n), each with the same probability. It panics when n
// is not positive.
func (s *Stream) IntN(n int) int {
	if n <= 0 {
		panic("kernel: IntN needs a positive n")
	}
	// Lemire's method: the high half of a product is the number, and the few low
	// halves that would favour some numbers are drawn again.
	high, low := bits.Mul64(s.Uint64(), uint64(n))
	if low < uint64(n) {
		for least := -uint64(n) % uint64(n); low < least; {
			high, low = bits.Mul64(s.Uint64(), uint64(n))
		}
	}
	return int(high)
}
