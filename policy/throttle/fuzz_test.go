package throttle_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/throttle"
)

// request is one that was made, as the model remembers it.
type request struct {
	step             int64
	refused, settled bool
	accepted         bool
}

// FuzzCounts compares the counts with a list of all requests, and the rejection with the plain formula, which it may
// only correct downwards. Two bytes are one operation.
func FuzzCounts(f *testing.F) {
	f.Add(uint8(20), []byte{0, 30, 1, 9, 0, 200, 2, 20, 3, 5, 0, 30, 1, 90, 3, 100, 0, 255, 4, 3, 2, 7, 0, 9})
	f.Add(uint8(3), []byte{0, 255, 2, 255, 3, 1, 0, 255, 2, 255, 3, 3, 0, 99, 1, 99, 3, 2, 0, 99, 1, 99, 3, 9, 0, 50,
		5, 1, 0, 9})
	f.Fuzz(func(t *testing.T, k uint8, ops []byte) {
		c := throttle.Config{K: 1.01 + float64(k)/20, Window: 10 * time.Second, Shadow: k%2 == 0}
		th, all := throttle.New(c), []request(nil)
		now, latest, refused := time.Duration(0), time.Duration(0), uint64(0)
		settle := func(n int, result throttle.Result) {
			for i := len(all) - 1; i >= 0 && n > 0; i-- { // the newest first, so that some are left behind
				r := &all[i]
				if r.refused || r.settled {
					continue
				}
				n--
				r.settled, r.accepted = true, result == throttle.Accepted
				th.Record(now, time.Duration(r.step)*time.Second, result)
				if result == throttle.Neutral && int64(now/time.Second)-r.step < 10 {
					all = append(all[:i], all[i+1:]...)
				}
			}
		}
		for ; len(ops) >= 2; ops = ops[2:] {
			n := int(ops[1])
			switch ops[0] % 6 {
			case 0:
				for i := range n {
					share := th.State(now).Rejection
					ok, over := th.Allow(now, uint64(i)<<56)
					if want := float64(i)/256 < share; over != want || ok != (!over || c.Shadow) {
						t.Fatalf("random number %d/256, share %v: ok %v, over %v", i, share, ok, over)
					}
					if over {
						refused++
					}
					all = append(all, request{step: int64(now / time.Second), refused: over})
				}
			case 1:
				settle(n, throttle.Accepted)
			case 2:
				settle(n, throttle.Rejected)
			case 3:
				now += time.Duration(n) * 100 * time.Millisecond
			case 4:
				settle(n, throttle.Neutral)
			case 5:
				th.Reconfigure(now, c)
			}
			latest = max(latest, now)
			want := throttle.State{Refused: refused}
			for _, r := range all {
				if r.step > int64(latest/time.Second)-10 {
					want.Requests++
					switch {
					case r.accepted:
						want.Accepts++
					case !r.refused && !r.settled:
						want.Waiting++
					}
				}
			}
			got := th.State(now)
			plain := min(max((want.Requests-c.K*want.Accepts)/(want.Requests+1), 0), 0.9)
			if want.Rejection = got.Rejection; got.Requests < 20 {
				plain = 0
			}
			if got != want || got.Rejection > plain+1e-12 || got.Rejection < 0 || math.IsNaN(got.Rejection) {
				t.Fatalf("%+v, want %+v, rejection at most %v", got, want, plain)
			}
		}
	})
}

// FuzzAnyClock lets the clock jump and the window change. The counts never become negative or more than was made.
func FuzzAnyClock(f *testing.F) {
	f.Add([]byte{0, 30, 1, 9, 0, 200, 2, 20, 3, 5, 0, 30, 1, 90, 3, 100, 0, 255, 4, 3, 2, 7, 0, 9})
	f.Fuzz(func(t *testing.T, ops []byte) {
		th := throttle.New(throttle.Config{K: 2, MinimumNumberOfCalls: 1})
		now, made := time.Duration(0), 0
		for ; len(ops) >= 2; ops = ops[2:] {
			n := time.Duration(ops[1])
			switch ops[0] % 6 {
			case 0:
				for range n {
					th.Allow(now, uint64(n)<<56)
					made++
				}
			case 1:
				now += n * n * n * n * time.Millisecond
			case 2:
				now -= n * n * n * n * time.Millisecond
			case 3:
				th.Record(now, now-n*n*time.Millisecond, throttle.Result(n%4))
			case 4:
				th.Record(now, now+n*n*time.Millisecond, throttle.Result(n%4))
			case 5:
				th.Reconfigure(now, throttle.Config{K: 2, MinimumNumberOfCalls: 1, Window: n * time.Second})
			}
			got := th.State(now)
			if got.Requests < 0 || got.Requests > float64(made) || got.Accepts < 0 || got.Accepts > got.Requests ||
				!(got.Rejection >= 0 && got.Rejection <= 0.9) {
				t.Fatalf("%+v of %d", got, made)
			}
		}
	})
}
