package abateredis_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abateredis"
)

// Eight instances, each with its own client, share 1,000/s. They are asked for more than there is, the eighth for much
// more than the others.
func TestEightInstancesShareOneLimit(t *testing.T) {
	long := 20 * time.Second
	if testing.Short() {
		long = 3 * time.Second
	}
	s := start(t)
	const instances, rate, burst = 8, 1000, 1000
	w := &watch{}
	fleets := make([]*abateredis.Fleet, instances)
	for i := range fleets {
		fleets[i] = open(t, s.Addr(), w.into)
	}
	ready(t, instances, fleets...)
	before := w.count("take") + w.count("refill")
	var admitted, asked, last, lost atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for i, f := range fleets {
		l := f.Limiter("api", per(rate, time.Second, burst))
		perTick := 1 // a millisecond
		if i == instances-1 {
			perTick = 5
		}
		all.Go(func() {
			during(long, func() {
				// A machine that stands still asks for nothing. The bucket holds a second, but is not asked for all of it at
				// once: an instance takes what it needed lately.
				now := int64(time.Since(began))
				lost.Add(max(now-last.Swap(now)-int64(50*time.Millisecond), 0))
				for range perTick {
					asked.Add(1)
					if take(l, "tenant", 1).Allowed {
						admitted.Add(1)
					}
				}
			})
		})
	}
	all.Wait()
	took := time.Since(began)
	lost.Add(int64(took) - last.Load())
	want := burst + rate*took.Seconds()
	trips := w.count("take") + w.count("refill") - before
	t.Logf("%d of %d admitted in %v: %+.2f %%; %.1f round trips per second and instance", admitted.Load(), asked.Load(),
		took.Round(time.Millisecond),
		100*(float64(admitted.Load())/want-1), float64(trips)/took.Seconds()/instances)
	if got := float64(admitted.Load()); got > 1.01*want || got < 0.97*(want-rate*time.Duration(lost.Load()).Seconds()) {
		t.Errorf("%.0f admitted, want %.0f, within 1 %% above and 3 %% below", got, want)
	}
	if perSecond := float64(trips) / took.Seconds() / instances; perSecond > 60 {
		t.Errorf("%.1f round trips per second and instance", perSecond)
	}
	if w.errs.Load() > 0 || w.fallbacks.Load() > 0 {
		t.Errorf("%d errors, %d fallbacks", w.errs.Load(), w.fallbacks.Load())
	}
}

func TestInstancesAreCounted(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	everywhere(t, func(t *testing.T, addr string) {
		var fleets []*abateredis.Fleet
		for n := 1; n <= 3; n++ {
			fleets = append(fleets, open(t, addr))
			ready(t, n, fleets...)
		}
		other := open(t, addr, func(c *abateredis.Config) { c.Prefix = "other:" })
		ready(t, 1, other)
	})
}

func TestManyKeysAtOnce(t *testing.T) {
	s := start(t)
	f := open(t, s.Addr())
	ready(t, 1, f)
	l := f.Limiter("api", per(1, time.Hour, 100))
	var allowed atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 20 {
				for key := range 50 {
					if take(l, fmt.Sprint(key), 1).Allowed {
						allowed.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	if got := allowed.Load(); got > 50*100 || got < 50*97 {
		t.Errorf("%d of %d", got, 50*100)
	}
}
