package pacing_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/pacing"
)

func opener() pace { return pacing.NewOpener() }

// busy is one instance on a busy server with room for all, on which a connection carries 50 queries a second.
func busy(seed uint64) system {
	r := rand.New(rand.NewPCG(seed, 7))
	return system{instances: 1, pool: 20, pgx: seed%2 == 0, places: 100, open: 40 * ms, cores: 8, serve: 20 * ms,
		atOnce: 30, rate: 150, patience: 2 * s, down: s + time.Duration(r.Int64N(int64(600*ms)))}
}

// drawn is one instance on any server with room for all, whose queries have the time in which a recovery is noticed.
func drawn(seed uint64) system {
	r := rand.New(rand.NewPCG(seed, 7))
	pick := func(n ...int) int { return n[r.IntN(len(n))] }
	between := func(a, b time.Duration) time.Duration { return a + time.Duration(r.Int64N(int64(b-a))) }
	d := system{instances: 1, pool: pick(5, 10, 20, 40), pgx: seed%2 == 0, places: 100, open: between(2*ms, 40*ms),
		cores: pick(4, 8, 50), serve: between(ms/2, 30*ms), atOnce: pick(20, 100), patience: between(2*s, 4*s),
		down: between(300*ms, 2*s)}
	d.rate = min(float64(min(d.pool, d.atOnce))/d.serve.Seconds()*(0.05+0.55*r.Float64()), 300)
	return d
}

// few is fifty pods that share a hundred places, of which each may open twenty.
func few(seed uint64) system {
	return system{instances: 50, pool: 20, pgx: seed%2 == 0, places: 100, open: 4 * ms, cores: 2, serve: ms, atOnce: 20,
		workers: 20, patience: 2 * s, down: 2500 * ms}
}

// hurried is one of those whose queries have less time.
func hurried(seed uint64) system {
	d := drawn(seed)
	d.patience = 500*ms + time.Duration(rand.New(rand.NewPCG(seed, 99)).Int64N(int64(1500*ms)))
	return d
}

// Without a guard queries fail at once, and nothing is left to be done when the server is back. With one they wait, and
// the first round is as long as a fleet needs it: it must not cost more than that saves.
func TestTheBacklogOfAnOutageIsServedOnABusyServerToo(t *testing.T) {
	var plain, guarded outcome
	for seed := range uint64(20) {
		p, g := play(busy(seed), seed, nil), play(busy(seed), seed, opener)
		plain.failed, guarded.failed = plain.failed+p.failed, guarded.failed+g.failed
		plain.late, guarded.late = plain.late+p.late, guarded.late+g.late
	}
	t.Logf("%d failed, without a guard %d; late: %d and %d", guarded.failed, plain.failed, guarded.late, plain.late)
	if guarded.failed*4 > plain.failed*3 {
		t.Errorf("%d failed, without a guard %d", guarded.failed, plain.failed)
	}
	if guarded.late > plain.late+100 {
		t.Errorf("%d failed that came when the server was back for a second, without a guard %d", guarded.late, plain.late)
	}
}

func TestSystemsWithRoomLoseLessWithAGuard(t *testing.T) {
	compare(t, 40, drawn, 0.2, 1)
}

// It may be seconds until the guard notices that the server is back, and some have less time.
func TestQueriesWithLittleTimeLoseHardlyMoreInAllWithAGuard(t *testing.T) {
	compare(t, 80, hurried, 1.05, 30)
}

// compare plays systems with and without a guard. At most that share of queries fails with one in all, and more in so
// many systems at most.
func compare(t *testing.T, n int, draw func(seed uint64) system, share float64, worse int) {
	plain, guarded := 0, 0
	for seed := range uint64(n) {
		d := draw(seed)
		p, g := play(d, seed, nil), play(d, seed, opener)
		if g.failed > p.failed+p.failed/20+15 {
			worse--
			t.Logf("%+v: %d failed, without a guard %d; late: %d and %d", d, g.failed, p.failed, g.late, p.late)
		}
		plain, guarded = plain+p.failed, guarded+g.failed
	}
	t.Logf("%d failed, without a guard %d; worse in %d fewer than allowed, of %d", guarded, plain, worse, n)
	if float64(guarded) > share*float64(plain) || worse < 0 {
		t.Errorf("%d failed, without a guard %d; it was worse in %d systems more than allowed", guarded, plain, -worse)
	}
}

func TestPodsThatShareFewPlacesNearlyAllHaveOne(t *testing.T) {
	var plain, guarded outcome
	all, seeds := 0, uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		d := few(seed)
		p, g := play(d, seed, nil), play(d, seed, opener)
		t.Logf("pgx %v: %+v, without a guard %+v", d.pgx, g, p)
		all += d.instances
		plain.serving, guarded.serving = plain.serving+p.serving, guarded.serving+g.serving
		if g.refused*5 > p.refused || g.peak*10 > p.peak {
			t.Errorf("pgx %v: %d refused, up to %d in 100 ms; without a guard %d and %d", d.pgx, g.refused, g.peak, p.refused,
				p.peak)
		}
	}
	if (all-guarded.serving)*5 > all-plain.serving {
		t.Errorf("%d pods of %d have an answer in the last second, without a guard %d", guarded.serving, all, plain.serving)
	}
}
