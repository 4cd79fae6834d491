package balance_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/balance"
)

// world has a balancer send an attempt every millisecond, to endpoints that take their time.
type world struct {
	b     *balance.Balancer
	zones []string
	takes map[string]time.Duration // by zone
	fails map[string]float64
	now   time.Duration
	rnd   *rand.Rand
	open  []flight
}

type flight struct {
	b   *balance.Balancer
	i   int
	end time.Duration
	r   balance.Result
}

var thirds = []string{"a", "b", "c", "a", "b", "c"}

func newWorld(c balance.Config, own string, zones ...string) *world {
	w := &world{b: balance.New(c, len(zones)), zones: zones, rnd: rand.New(rand.NewPCG(4, 4)), now: time.Hour,
		takes: map[string]time.Duration{}, fails: map[string]float64{}}
	w.b.Locate(own, zones)
	return w
}

// run returns which share of the attempts goes to the first zone.
func (w *world) run(d time.Duration) float64 {
	own, all := 0., 0.
	for end := w.now + d; w.now < end; w.now += time.Millisecond {
		w.settle(w.now)
		i := w.b.Pick(w.now, w.rnd.Uint64(), -1)
		zone := w.zones[i]
		if all++; zone == w.zones[0] {
			own++
		}
		r := balance.Success
		if w.rnd.Float64() < w.fails[zone] {
			r = balance.Failure
		}
		takes := w.takes[zone]
		if takes == 0 {
			takes = 10 * time.Millisecond
		}
		takes = time.Duration(float64(takes) * w.rnd.ExpFloat64())
		w.open = append(w.open, flight{w.b, i, w.now + takes, r})
	}
	return own / all
}

// settle ends the attempts that are over.
func (w *world) settle(now time.Duration) {
	kept := w.open[:0]
	for _, f := range w.open {
		if f.end > now {
			kept = append(kept, f)
			continue
		}
		f.b.Done(f.i, f.end, f.r)
	}
	w.open = kept
}

func wantShare(t *testing.T, when string, got, least, most float64) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: the own zone gets %.3f, want %.2f to %.2f", when, got, least, most)
	}
}

func TestTheOwnZoneGetsMoreAsLongAsItDoesNoWorse(t *testing.T) {
	w := newWorld(three, "a", thirds...)
	wantShare(t, "at first", w.run(s), 0.3, 0.4)
	w.run(2 * time.Minute)
	wantShare(t, "after two minutes", w.run(10*s), 0.95, 0.99)
	w.takes["a"] = 40 * time.Millisecond
	w.run(time.Minute)
	wantShare(t, "when it is slower", w.run(30*s), 0, 0.4)
	w.takes["a"] = 0
	w.run(2 * time.Minute)
	wantShare(t, "when it is as fast again", w.run(10*s), 0.95, 0.99)
	w.takes["b"], w.takes["c"] = 11*time.Millisecond, 9*time.Millisecond
	w.run(time.Minute)
	wantShare(t, "where differences are small", w.run(10*s), 0.9, 0.99)
}

func TestAnOwnZoneThatFailsMoreIsNotPreferred(t *testing.T) {
	w := newWorld(balance.Config{Disabled: true}, "a", thirds...)
	w.run(2 * time.Minute)
	w.fails["a"] = 0.3
	w.run(time.Minute)
	wantShare(t, "while it fails", w.run(30*s), 0.2, 0.45)
	w.fails["b"], w.fails["c"] = 0.3, 0.3
	w.run(3 * time.Minute)
	if got := w.run(30 * s); got < 0.5 {
		t.Errorf("when all fail alike: %.3f", got)
	}
}

// Half of the own zone is ejected: what is left there gets no more than before.
func TestWhatTheOwnZoneLacksGoesElsewhere(t *testing.T) {
	w := newWorld(three, "a", "a", "b", "c", "a", "b", "c", "a", "b", "c", "a", "b", "c")
	w.run(2 * time.Minute)
	for _, tt := range []struct{ out, want float64 }{
		{0, 63. / 64}, {1, 0.75 * 12 / 11}, {2, 0.5 * 12 / 10}, {3, 0.25 * 12 / 9},
	} {
		for _, i := range []int{0, 3, 6}[:int(tt.out)] {
			w.b.Judge(i, w.now, false)
		}
		if got := w.b.State(w.now); math.Abs(got.Share-tt.want) > 0.01 || !got.Preferred || got.HereIn != 4-int(tt.out) {
			t.Errorf("%v out: %+v, want a share of %.3f", tt.out, got, tt.want)
		}
	}
	for _, i := range []int{1, 2, 4, 5, 7, 8} { // the others lack as much, as far as can be known
		w.b.Judge(i, w.now, false)
	}
	if got := w.b.State(w.now); got.Panic != true {
		t.Errorf("%+v", got)
	}
}

func TestAZoneThatIsAllOrNothingIsNoPreference(t *testing.T) {
	for _, tt := range []struct {
		own   string
		zones []string
		here  int
	}{
		{"nowhere", thirds, 0}, {"", thirds, 0}, {"a", []string{"a", "a", "a"}, 3}, {"a", []string{"", "", ""}, 0},
		{"", []string{"", "", ""}, 0}, {"a", nil, 0},
	} {
		b, plain := balance.New(three, max(len(tt.zones), 2)), balance.New(three, max(len(tt.zones), 2))
		b.Locate(tt.own, tt.zones)
		if got := b.State(0); got.Zone != tt.own || got.Here != tt.here || got.Preferred {
			t.Errorf("own %q of %v: %+v", tt.own, tt.zones, got)
		}
		for n := range uint64(500) {
			if i, k := b.Pick(0, n*golden, -1), plain.Pick(0, n*golden, -1); i != k {
				t.Fatalf("own %q of %v: Pick = %d, %d without zones", tt.own, tt.zones, i, k)
			}
		}
	}
}

// What is known of zones survives changes of the list that come more often than it is looked at.
func TestZonesAreLearnedWhileEndpointsAreReplaced(t *testing.T) {
	w := newWorld(three, "a", thirds...)
	for n := range 400 {
		w.run(400 * time.Millisecond)
		next := balance.New(three, len(w.zones))
		next.Locate("a", w.zones)
		index := []int{0, 1, 2, 3, 4, 5}
		index[n%6] = -1
		next.Carry(w.b, index)
		w.b = next
	}
	wantShare(t, "after 160 s", w.run(10*s), 0.8, 0.99)
}

func TestChecksTakeOutAndBringBack(t *testing.T) {
	b := balance.New(three, 4)
	b.Judge(1, s, false)
	wantShares(t, "one is not healthy", shares(b, 4, s, -1, 1), []float64{1. / 3, 0, 1. / 3, 1. / 3})
	if got := b.Endpoint(1, s); !got.Unhealthy || got.Ejected {
		t.Errorf("%+v", got)
	}
	b.Judge(1, 2*s, true)
	wantShares(t, "it is again", shares(b, 4, 2*s, -1, 2), []float64{0.25, 0.25, 0.25, 0.25})
}

func TestAnEndpointThatIsHealthyAgainStartsSlowly(t *testing.T) {
	b := balance.New(slow(16*s), 4)
	b.Judge(2, 0, false)
	b.Judge(2, 10*s, true)
	wantShares(t, "at first", shares(b, 4, 10*s, -1, 1), []float64{16. / 50, 16. / 50, 2. / 50, 16. / 50})
}

func TestACheckThatPassesDoesNotEndAnEjection(t *testing.T) {
	b := balance.New(three, 3)
	attempts(t, b, 0, 0, "FFF")
	b.Judge(0, s, false)
	b.Judge(0, 2*s, true)
	wantEjected(t, b, 9*s, 0, 10*s)
	wantEjected(t, b, 10*s, 0, 0)
}

func TestChecksThatCondemnTooManyAreNotBelieved(t *testing.T) {
	b := balance.New(balance.Config{MaxEjectionShare: 0.5, PanicThreshold: 0.4}, 5)
	for n, want := range []struct {
		in     int
		panics bool
	}{{4, false}, {3, false}, {2, false}, {5, true}, {5, true}} {
		b.Judge(n, 0, false)
		if got := b.State(0); got.In != want.in || got.Panic != want.panics {
			t.Errorf("%d are not healthy: %+v, want %+v", n+1, got, want)
		}
	}
	b.Judge(2, 0, true)
	b.Judge(3, 0, true)
	if got := b.State(0); got.In != 2 || got.Panic {
		t.Errorf("two are healthy again: %+v", got)
	}
	off := balance.New(balance.Config{}, 2)
	off.Judge(0, 0, false)
	off.Judge(1, 0, false)
	if got := off.State(0); got.In != 2 || !got.Panic {
		t.Errorf("without ejection: %+v", got)
	}
}

func TestChecksRaiseNoShare(t *testing.T) {
	c := three
	c.MaxEjectionShare = 0.25
	b := balance.New(c, 8)
	for i := range 6 {
		b.Judge(i, 0, false)
	}
	for i := range 5 {
		attempts(t, b, 0, i, "FFF")
	}
	if got := b.State(0); got.In != 6 || !got.Panic {
		t.Errorf("%+v, want two of eight out", got)
	}
}

func TestResultsAreCounted(t *testing.T) {
	b := balance.New(three, 2)
	attempts(t, b, 0, 1, "SFNSS")
	begin(t, b, 0, 1)
	if answered, failed := b.Results(1); answered != 3 || failed != 1 {
		t.Errorf("%d answered, %d failed, want 3 and 1", answered, failed)
	}
}
