// Package chance has what guards and gates draw from where nobody gives them a source of their own.
package chance

import (
	"hash/maphash"
	"math/rand/v2"
)

// Source is the random source of a policy that names none: no lock, seeded by the runtime.
var Source = rand.Uint64

// Seed is the seed of the hashes by which keys are told apart: nobody outside this process can choose keys that
// collide. It decides nothing else, so runs of a simulator are the same under any.
var Seed = maphash.MakeSeed()
