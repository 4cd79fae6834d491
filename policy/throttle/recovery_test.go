package throttle_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/throttle"
)

// An outage of a minute is offered a tenth of the load; afterwards the throttle's own refusals do not keep it shut.
func TestRejectionEndsWithinAWindowOfTheRecovery(t *testing.T) {
	const begin, end = time.Minute, 2 * time.Minute
	for _, k := range []float64{1.01, 1.1, 1.5, 2, 4} {
		for _, window := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute} {
			r := rand.New(rand.NewPCG(1, 2))
			th := throttle.New(throttle.Config{K: k, Window: window})
			last, offered, sent := time.Duration(0), 0, 0
			for now := time.Duration(0); now < 4*time.Minute; now += 5 * time.Millisecond {
				down := now >= begin && now < end
				ok, over := th.Allow(now, r.Uint64())
				if down && now > begin+window {
					offered++
					if ok {
						sent++
					}
				}
				switch {
				case !ok && now < begin:
					t.Fatalf("refused at %v, before the outage", now)
				case over && now >= end:
					last = now - end
				case ok && down:
					th.Record(now, now, throttle.Rejected)
				case ok:
					th.Record(now, now, throttle.Accepted)
				}
			}
			if last > window || last == 0 {
				t.Errorf("K %v, window %v: the last refusal came %v after the recovery", k, window, last)
			}
			if share := float64(sent) / float64(offered+1); share > 0.13 && window < time.Minute {
				t.Errorf("K %v, window %v: %.3f of the load were sent while all failed, want a tenth", k, window, share)
			}
		}
	}
}

func TestAnOverloadedDependencyGetsKTimesWhatItCanDo(t *testing.T) {
	for _, k := range []float64{1.1, 1.5, 2, 3} {
		r := rand.New(rand.NewPCG(1, 2))
		th := throttle.New(throttle.Config{K: k, Window: 10 * time.Second})
		sent, accepted, tokens := 0, 0, 0.0
		for now := time.Duration(0); now < 5*time.Minute; now += time.Millisecond {
			tokens = min(tokens+0.2, 100) // it can do a fifth
			ok, _ := th.Allow(now, r.Uint64())
			if !ok {
				continue
			}
			result := throttle.Rejected
			if tokens >= 1 {
				tokens--
				result = throttle.Accepted
			}
			th.Record(now, now, result)
			if now > time.Minute {
				sent++
				if result == throttle.Accepted {
					accepted++
				}
			}
		}
		if got := float64(sent) / float64(accepted); got < 0.95*k || got > 1.1*k || accepted < 45_000 {
			t.Errorf("K %v: %d sent, %d accepted, %.2f for each", k, sent, accepted, got)
		}
	}
}
