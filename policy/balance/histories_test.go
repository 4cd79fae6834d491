//go:build !race

package balance_test

import (
	"math/rand/v2"
	"testing"

	"github.com/abate-go/abate/policy/balance"
)

// Long random histories, as the fuzzer's short ones rarely eject one endpoint many times.
func TestLongHistoriesFollowTheModel(t *testing.T) {
	for seed := range uint64(60) {
		p := &pair{rnd: rand.New(rand.NewPCG(seed, 1))}
		c := configOf(byte(seed), p.rnd)
		n := int(seed % 9)
		p.b, p.m = balance.New(c, n), newModel(c, n)
		for range 5000 {
			op, arg := byte(p.rnd.IntN(7)), byte(p.rnd.IntN(256))
			if p.rnd.IntN(60) == 0 {
				op = 8
			}
			if op == 5 {
				arg /= 4
			}
			if p.rnd.IntN(500) == 0 {
				op = 7
			}
			p.step(t, op, arg)
			if p.rnd.IntN(4) == 0 {
				p.check(t)
			}
		}
	}
}
