package abate

import (
	"hash/maphash"
	"math/rand/v2"
	"time"
)

// origin is where the guards' clock starts. Only differences count.
var origin = time.Now()

// clock is the time the drivers of this package give to the state machines: monotonic, one register wide, and half the
// price of time.Now (a bench of the floor: 24 against 43 ns).
func clock() time.Duration { return time.Since(origin) }

// Now is the time on the guards' clock: what Do and Run tell a Call, and what Guard.Update and Guard.State go by. A driver of
// Calls in production uses it, so that its guards can be updated and looked at. Its cost is one read of the monotonic clock.
func Now() time.Duration { return clock() }

// onClock places a context's deadline on the guards' clock.
func onClock(t time.Time) time.Duration { return t.Sub(origin) }

// globalRandom is the random source of guards whose policy names none: no lock, seeded by the runtime.
var globalRandom = rand.Uint64

// hashSeed is the seed of the hashes by which keys are told apart: nobody outside this process can choose keys that collide.
// It decides nothing else, so runs of a simulator are the same under any.
var hashSeed = maphash.MakeSeed()
