//go:build !race

package ratelimit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

const ms = time.Millisecond

// What was spent is owed, and what the bucket has lost meanwhile because it was full is not.
func TestADebtShrinksOnlyWhenTheBucketMustBeFull(t *testing.T) {
	var s ratelimit.Share
	if _, ok := s.Take(0, 1); ok || s.Debt(0) != 0 {
		t.Error("a closed share spends or owes")
	}
	s.Begin(0, 10, 1/float64(ms), 4) // ten at most, one in a millisecond, four to begin with
	for range 4 {
		if _, ok := s.Take(0, 1); !ok {
			t.Fatal("refused")
		}
	}
	if wait, ok := s.Take(0, 1); ok || wait != ms {
		t.Errorf("%v, wait %v", ok, wait)
	}
	for _, c := range []struct {
		at   time.Duration
		debt float64
	}{{0, 4}, {6 * ms, 4}, {10 * ms, 4}, {12 * ms, 2}, {14 * ms, 0}, {time.Hour, 0}} {
		if c.at > 0 { // before, others may have taken from it for so long
			c.at += ratelimit.ShareAfter
		}
		if d := s.Debt(c.at); math.Abs(d-c.debt) > 1e-9 {
			t.Errorf("after %v %v is owed, want %v", c.at, d, c.debt)
		}
	}
}

func TestWhatIsSpentWhileADebtIsPaidIsStillOwed(t *testing.T) {
	var s ratelimit.Share
	s.Begin(0, 10, 0, 10)
	s.Take(0, 3)
	debt := s.Debt(0)
	s.Take(0, 2)
	s.Paid(0, debt)
	if s.Close(0); s.Open() || s.Debt(time.Hour) != 2 {
		t.Errorf("%v is owed, want 2", s.Debt(0))
	}
	s.Begin(0, 10, 0, 1)
	if s.Take(0, 1); s.Debt(0) != 3 {
		t.Errorf("%v is owed, want 3", s.Debt(0))
	}
}

// fleetModel is instances that share a bucket which comes and goes, in virtual time, with the batches of
// adapter/abateredis.
type fleetModel struct {
	rnd        *rand.Rand
	gone       bool    // the bucket was lost with its store
	deaf       int     // one in so many instances does not notice an outage; 0 for none
	over       float64 // the most that any window has had above what the rate allows
	n          int
	burst      float64
	rate       float64 // per nanosecond
	tokens     float64
	at         time.Duration
	members    []member
	admissions []time.Duration
}

// member is one instance.
type member struct {
	share  ratelimit.Share
	batch  float64       // tokens in hand
	ends   time.Duration // the batch
	left   float64       // what it knew last
	knew   time.Duration // when
	cut    bool          // it cannot reach the bucket
	keeps  time.Duration // until when it keeps to its share
	pays   time.Duration // when it pays next
	backAt time.Duration
}

// The numbers of adapter/abateredis.
const (
	longest   = ratelimit.ShareAfter * 2 / 3 // before an instance notices that the store is back
	payEvery  = 100 * ms
	batchLife = 500 * ms
	batches   = 4 // all of them together are burst divided by this
)

// ask is one question of an instance, which pays what it owes and brings back its batch first. heard is false if the
// question or the answer is lost.
func (m *fleetModel) ask(now time.Duration, i *member, need float64) (heard, granted bool) {
	debt, back, lost := i.share.Debt(now), i.batch, m.rnd.IntN(50)
	if i.cut {
		return false, false
	}
	if i.batch = 0; lost == 0 {
		return false, false
	}
	if m.gone {
		m.gone, m.tokens, m.at = false, max(i.left+float64(now-i.knew)*m.rate, 0), now
	}
	m.tokens = min(m.burst, m.tokens+float64(now-m.at)*m.rate+back)
	m.at = now
	m.tokens = max(m.tokens-debt, ratelimit.Deepest(m.burst, m.rate))
	batch := 0.0
	if granted = need > 0 && m.tokens >= need; granted {
		batch = min(m.tokens-need, m.rnd.Float64()*m.burst/batches/float64(m.n))
		m.tokens -= need + batch
	}
	if lost == 1 { // the answer
		return false, false
	}
	i.left, i.knew, i.batch, i.ends = m.tokens, now, batch, now+batchLife
	if i.share.Paid(now, debt); now >= i.keeps {
		i.share.Close(now)
	}
	return true, granted
}

// request is one request at an instance.
func (m *fleetModel) request(now time.Duration, i *member) {
	if i.batch >= 1 && now < i.ends {
		i.batch--
		m.admissions = append(m.admissions, now)
		return
	}
	heard, granted := false, false
	if !i.cut && now >= i.keeps {
		heard, granted = m.ask(now, i, 1)
	}
	if !heard {
		if n := float64(m.n); !i.share.Open() {
			i.share.Begin(now, m.burst/n, m.rate/n, min(m.burst, i.left+float64(now-i.knew)*m.rate)/n)
		}
		_, granted = i.share.Take(now, 1)
	}
	if granted {
		m.admissions = append(m.admissions, now)
	}
}

// check finds the window with the most admissions for its length: most bursts, and what the rate allows in its length
// and in more.
func (m *fleetModel) check(t *testing.T, what string, most float64, more time.Duration) {
	t.Helper()
	worst, from, to := 0.0, time.Duration(0), time.Duration(0)
	lowest := math.Inf(1) // of count - rate × time, before the admission at hand
	var since time.Duration
	for k, at := range m.admissions {
		level := float64(k) - float64(at)*m.rate
		if level < lowest {
			lowest, since = level, at
		}
		if over := level + 1 - lowest; over > worst {
			worst, from, to = over, since, at
		}
	}
	m.over = (worst - m.rate*float64(more)) / m.burst
	bound := most*m.burst + m.rate*float64(to-from+more)
	if least := m.rate * float64(m.at) / 3; float64(len(m.admissions)) < least {
		t.Errorf("%s: %d admitted: it must not hold because nothing passes", what, len(m.admissions))
	}
	if got := worst + m.rate*float64(to-from); got > bound*1.01+1 {
		t.Errorf("%s: %.0f admitted from %v to %v, the bound is %.0f: %.0f %%", what, got, from, to, bound, 100*got/bound)
	}
}

// fleetOf is a fleet as seed wants it, which has run.
func fleetOf(seed uint64, deaf int) (m *fleetModel, what string) {
	rnd := rand.New(rand.NewPCG(seed, 16))
	n := 1 + rnd.IntN(8)
	m = &fleetModel{
		rnd: rnd, deaf: deaf, n: n, burst: float64(n * (5 + rnd.IntN(100))),
		rate: float64(1+rnd.IntN(300)) / float64(time.Second), members: make([]member, n),
	}
	m.tokens = m.burst
	for i := range m.members {
		m.members[i].left = m.burst
	}
	m.play(2*time.Minute, 1+rnd.Float64()*5)
	return m, fmt.Sprintf("seed %d, %d instances, burst %.0f, %.0f/s", seed, n, m.burst, m.rate*float64(time.Second))
}

func fleets() uint64 {
	if testing.Short() {
		return 75
	}
	return 300
}

// The documented bound of the whole fleet, 1¼ bursts and what the rate allows, holds over any window, however often the
// store comes and goes, with or without its data, and whatever questions and answers are lost: what each has spent of
// its share is paid on return, and nobody has more than his share before the others are back too.
func TestTheFleetsBoundHoldsWhileTheStoreFlaps(t *testing.T) {
	worst := 0.0
	for seed := range fleets() {
		m, what := fleetOf(seed, 0)
		m.check(t, what, 1.25, 0)
		worst = max(worst, m.over)
	}
	t.Logf("%.2f bursts above what the rate allows", worst)
}

// Instances that do not notice an outage have the whole bucket while the others, who look for two seconds at most
// whether it is over, keep to their shares: the documented exception.
func TestAnOutageThatSomeDoNotNoticeCostsABurstAndTwoSeconds(t *testing.T) {
	worst := 0.0
	for seed := range fleets() {
		m, what := fleetOf(seed, 2)
		m.check(t, what, 2.25, longest)
		worst = max(worst, m.over)
	}
	t.Logf("%.2f bursts above what the rate allows", worst)
}

// play has requests come, load times as many as the limit allows, while the store comes and goes.
func (m *fleetModel) play(length time.Duration, load float64) {
	up, next := true, time.Duration(m.rnd.Int64N(int64(5*time.Second)))
	gap := max(time.Duration(1/(m.rate*load)), 1)
	for now := time.Duration(0); now < length; now += time.Duration(m.rnd.Int64N(int64(2*gap))) + 1 {
		for now >= next {
			lasts := time.Duration(m.rnd.Int64N(int64(9*time.Second))) + 100*ms
			if m.deaf > 0 && m.rnd.IntN(2) == 0 {
				lasts = min(lasts, time.Second)
			}
			up, next = !up, next+lasts
			m.turn(now, up, lasts)
		}
		for i := range m.members {
			k := &m.members[i]
			if k.cut && now >= k.backAt {
				k.cut, k.keeps = false, now+ratelimit.ShareAfter
			}
			if overdue := k.batch > 0 && now >= k.ends; up && !k.cut && now >= k.pays && (k.share.Debt(now) > 0 || overdue) {
				m.ask(now, k, 0)
				k.pays = now + payEvery
			}
		}
		if i := &m.members[m.rnd.IntN(m.n)]; up || i.cut { // who asked would notice
			m.request(now, i)
		}
	}
}

// turn has the store go, with or without its data, or come back.
func (m *fleetModel) turn(now time.Duration, up bool, lasts time.Duration) {
	if !up {
		m.gone = m.gone || m.rnd.IntN(2) == 0
	}
	for i := range m.members {
		k := &m.members[i]
		switch {
		case !up && m.deaf > 0 && lasts <= time.Second && !k.cut && m.rnd.IntN(m.deaf) == 0: // it does not ask meanwhile
		case !up:
			k.cut, k.backAt = true, math.MaxInt64
		case k.cut:
			k.backAt = now + time.Duration(m.rnd.Int64N(int64(longest)))
		}
	}
}
