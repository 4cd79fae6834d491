package ratelimit_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

const micro = ratelimit.Micro

func terms(tokens float64, per time.Duration, burst int) *ratelimit.Terms {
	return ratelimit.NewTerms(ratelimit.Config{Limit: ratelimit.Rate{Tokens: tokens, Per: per}, Burst: burst})
}

// A batch that comes is not counted twice: as what is in the bucket still, and as what is here already.
func TestWhatRemainsIsRightWhileABatchComes(t *testing.T) {
	const tokens, batches = 10_000_000, 50_000
	limit := terms(1, time.Hour, 2*tokens)
	l := new(ratelimit.Lease)
	l.Postpone(math.MaxInt64)
	batch := func(i int) {
		l.Answered(0, limit, ratelimit.Question{Want: 100 * micro}, 100*micro, (tokens-100*int64(i))*micro, true, 0)
	}
	batch(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 2; i <= batches; i++ {
			batch(i)
		}
	}()
	least, most := int64(tokens), int64(0)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if d, ok, _ := l.Take(1, limit, 1); ok {
			least, most = min(least, d.Remaining), max(most, d.Remaining)
		}
	}
	if least < tokens-99 || most > tokens {
		t.Errorf("of %d tokens %d to %d were said to remain", tokens, least, most)
	}
}

// A Redis that was away for long and comes back empty counts one instance first. Who believes it has the whole limit
// for itself when Redis goes away again.
func TestTheFirstCountAfterALongOutageIsNotBelieved(t *testing.T) {
	believed := func(counted ...int64) (all []int64) {
		var c ratelimit.Census
		for i, n := range counted {
			c.Count(time.Duration(i)*time.Second, n)
			all = append(all, c.Instances())
		}
		return all
	}
	got := believed(8, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 8)
	if want := []int64{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}; !slices.Equal(got, want) {
		t.Errorf("restarted: %d", got)
	}
	if got = believed(8, 1, 1, 1, 0, 0, 0, 1, 1, 1); slices.Min(got) != 8 {
		t.Errorf("away in between: %d", got)
	}
	if got = believed(8, 5, 5, 5, 5, 4, 4, 4, 4); got[4] != 8 || got[8] != 4 {
		t.Errorf("fewer for long: %d", got)
	}
}

func TestAnOutageIsOneWhenItIsCertainOrSeenTwice(t *testing.T) {
	var o ratelimit.Outage
	o.Missed(false)
	o.Answered(time.Second)
	if !o.Over(time.Second) {
		t.Error("one answer that did not come was taken for an outage")
	}
	o.Missed(false)
	o.Missed(false)
	o.Answered(10 * time.Second)
	if o.Over(10*time.Second+ratelimit.ShareAfter-1) || !o.Over(10*time.Second+ratelimit.ShareAfter) {
		t.Error("two in a row: the instance does not keep to its share for as long as the others may need")
	}
	o.Missed(true)
	o.Answered(20 * time.Second)
	if o.Over(20 * time.Second) {
		t.Error("a certain one was not taken for an outage")
	}
}

// playFleet plays instances that share a bucket, with questions that are answered at once, and outages of it. It
// returns when what was admitted, in order.
func playFleet(limit *ratelimit.Terms, instances int, r *rand.Rand, outage bool) (admitted []time.Duration) {
	leases, pool := make([]ratelimit.Lease, instances), new(ratelimit.Pool)
	outages := make([]ratelimit.Outage, instances)
	away, busy := false, int64(instances)
	gap := 1.3 / limit.Rate() * micro
	for now := time.Duration(0); now < 60*time.Second; now += time.Duration(r.ExpFloat64() * gap) {
		if r.IntN(300) == 0 { // what is asked for is a little less than there is, or much more
			gap = []float64{1.3, 0.05}[r.IntN(2)] / limit.Rate() * micro
		}
		if outage && r.IntN(3000) == 0 {
			away = !away
		}
		i := r.IntN(instances)
		if i > 0 && r.IntN(2) == 0 { // one is busier than the others
			i = 0
		}
		l, o := &leases[i], &outages[i]
		ask := func(q ratelimit.Question) (ratelimit.Decision, bool) {
			if away {
				l.Unsent(q)
				o.Missed(true)
				return ratelimit.Decision{}, false
			}
			o.Answered(now)
			given, left := pool.Take(now, limit, q)
			return l.Answered(now, limit, q, given, left, o.Over(now), r.Uint64()), true
		}
		if l.Overdue(now) && (l.InHand() > 0 || l.Owes(now)) {
			ask(l.GiveBack(now, limit))
		}
		d, ok, low := l.Take(now, limit, micro)
		if low {
			ask(l.Ask(now, limit, 0, 0, busy))
		}
		if !ok && o.Over(now) {
			d, ok = ask(l.Ask(now, limit, micro, 0, busy))
		}
		if !ok {
			d = l.Alone(now, limit, micro, busy, time.Second)
		}
		if d.Allowed {
			admitted = append(admitted, now)
		}
	}
	return admitted
}

// The bound that Limiter in adapter/abateredis promises: any window sees at most 1¼ bursts and what the limit grants in
// it, also over outages of the bucket.
func TestAFleetStaysWithinOneAndAQuarterBursts(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		burst, rate := 20+r.IntN(200), float64(20+r.IntN(300))
		instances, outage := 1+r.IntN(12), seed%2 == 1
		limit := terms(rate, time.Second, burst)
		admitted := playFleet(limit, instances, r, outage)
		if len(admitted) < int(rate*60/3) {
			t.Errorf("seed %d: only %d admitted of %v a second", seed, len(admitted), rate)
		}
		for from := 0; from < len(admitted); from += 7 {
			for to := from; to < len(admitted); to += 13 {
				window := admitted[to] - admitted[from]
				most := 1.25*float64(burst) + rate*window.Seconds() + 1
				if n := float64(to - from + 1); n > most {
					t.Fatalf("seed %d: %v in %v from %v, at most %.0f (burst %d, %v/s, %d instances)", seed, n, window,
						admitted[from], most, burst, rate, instances)
				}
			}
		}
	}
}
