package balance_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/balance"
)

const s = time.Second

// three ejects after three failures, for 10 s times the number of ejections but at most 35 s, all endpoints but one.
var three = balance.Config{
	ConsecutiveFailures: 3, BaseEjectionTime: 10 * s, MaxEjectionTime: 35 * s, MaxEjectionShare: 1,
}

// begin begins one attempt on endpoint i. To get there it loads the others, and unloads them again.
func begin(t *testing.T, b *balance.Balancer, now time.Duration, i int) {
	t.Helper()
	var others []int
	for n := range uint64(10_000) {
		if got := b.Pick(now, n*0x9e3779b97f4a7c15, -1); got != i {
			others = append(others, got)
			continue
		}
		for _, other := range others {
			b.Done(other, now, balance.Neutral)
		}
		return
	}
	t.Fatalf("endpoint %d is never chosen", i)
}

// attempts makes attempts on endpoint i, one result after the other: F(ailure), S(uccess), N(eutral).
func attempts(t *testing.T, b *balance.Balancer, now time.Duration, i int, results string) {
	t.Helper()
	for _, r := range results {
		begin(t, b, now, i)
		b.Done(i, now, result(r))
	}
}

func result(r rune) balance.Result {
	return map[rune]balance.Result{'F': balance.Failure, 'S': balance.Success, 'N': balance.Neutral}[r]
}

func wantEjected(t *testing.T, b *balance.Balancer, now time.Duration, i int, until time.Duration) {
	t.Helper()
	got := b.Endpoint(i, now)
	if got.Ejected != (until > 0) || got.EjectedUntil != until {
		t.Errorf("at %v endpoint %d: ejected %v until %v, want %v", now, i, got.Ejected, got.EjectedUntil, until)
	}
}

func TestFailuresInARowEject(t *testing.T) {
	for _, tt := range []struct {
		results string
		ejected bool
		streak  int
	}{
		{"", false, 0},
		{"FF", false, 2},
		{"FFF", true, 0},
		{"FFSFF", false, 2},
		{"FFSFFF", true, 0},
		{"FFS", false, 0},
		{"NNNNNN", false, 0},
		{"FNFNN", false, 2}, // a neutral attempt neither adds to the streak nor ends it
		{"FNFNF", true, 0},
		{"SSSSSSFF", false, 2},
	} {
		b := balance.New(three, 2)
		attempts(t, b, s, 1, tt.results)
		want := balance.EndpointState{ConsecutiveFailures: tt.streak}
		if tt.ejected {
			want = balance.EndpointState{Ejected: true, EjectedUntil: 11 * s, Ejections: 1, Multiplier: 1}
		}
		if got := b.Endpoint(1, s); got != want {
			t.Errorf("%q: %+v, want %+v", tt.results, got, want)
		}
		if got := b.Endpoint(0, s); got != (balance.EndpointState{}) {
			t.Errorf("%q: the other endpoint %+v", tt.results, got)
		}
	}
}

func TestUnknownResultsAreNeutral(t *testing.T) {
	b := balance.New(balance.Config{ConsecutiveFailures: 1}, 2)
	b.Done(b.Pick(0, 0, -1), 0, balance.Result(77))
	for i := range 2 {
		if got := b.Endpoint(i, 0); got != (balance.EndpointState{}) {
			t.Errorf("endpoint %d: %+v", i, got)
		}
	}
}

func TestAnEjectedEndpointIsNotChosenUntilItsTimeIsOver(t *testing.T) {
	b := balance.New(three, 3)
	attempts(t, b, s, 1, "FFF")
	seen := func(now time.Duration) (seen [3]int) {
		for n := range uint64(300) {
			i := b.Pick(now, n<<56|n<<24, -1)
			seen[i]++
			b.Done(i, now, balance.Success)
		}
		return seen
	}
	if got := seen(11*s - 1); got[1] != 0 || got[0] == 0 || got[2] == 0 {
		t.Errorf("chosen while endpoint 1 is ejected: %v", got)
	}
	if got := seen(11 * s); got[0] == 0 || got[1] == 0 || got[2] == 0 {
		t.Errorf("chosen after the return: %v", got)
	}
}

func TestTheStreakStartsAgainAfterTheReturn(t *testing.T) {
	b := balance.New(three, 2)
	attempts(t, b, 0, 1, "FFF")
	attempts(t, b, 10*s, 1, "FF")
	wantEjected(t, b, 10*s, 1, 0)
	attempts(t, b, 10*s, 1, "F")
	wantEjected(t, b, 10*s, 1, 30*s)
}

func TestEjectionsGrowByOneBaseTimeUpToTheMaximum(t *testing.T) {
	b := balance.New(three, 2)
	now := time.Duration(0)
	for n, want := range []time.Duration{10 * s, 20 * s, 30 * s, 35 * s, 35 * s, 35 * s} {
		attempts(t, b, now, 0, "FFF")
		wantEjected(t, b, now, 0, now+want)
		if got := b.Endpoint(0, now); got.Ejections != n+1 {
			t.Errorf("ejection %d is counted as %d", n+1, got.Ejections)
		}
		now += want
	}
}

// The endpoint has been ejected three times; its multiplier is 3.
func TestEachBaseTimeWithoutAFailureTakesOneStepBack(t *testing.T) {
	type step struct {
		after   time.Duration // the one before; the first after the return
		results string
	}
	for _, tt := range []struct {
		name  string
		steps []step
		want  int
	}{
		{"none is over", []step{{10*s - 1, ""}}, 3},
		{"one", []step{{10 * s, ""}}, 2},
		{"two", []step{{29 * s, ""}}, 1},
		{"all", []step{{30 * s, ""}}, 0},
		{"more than all", []step{{300 * s, ""}}, 0},
		{"successes do not shorten it", []step{{5 * s, "SSS"}, {4 * s, ""}}, 3},
		{"nor do they prolong it", []step{{5 * s, "SSS"}, {5 * s, ""}}, 2},
		{"a failure begins it anew", []step{{9 * s, "F"}, {9 * s, ""}}, 3},
		{"and then it goes on", []step{{9 * s, "F"}, {10 * s, ""}}, 2},
		{"what is forgiven stays so", []step{{19 * s, "F"}, {9 * s, ""}}, 2},
		{"a neutral result is none", []step{{9 * s, "N"}, {s, ""}}, 2},
		{"a failure now and then keeps it", []step{{9 * s, "F"}, {9 * s, "S"}, {0, "F"}, {9 * s, "F"}}, 3},
	} {
		b := balance.New(three, 2)
		now := time.Duration(0)
		for range 3 {
			attempts(t, b, now, 0, "FFF")
			now = b.Endpoint(0, now).EjectedUntil
		}
		for _, step := range tt.steps {
			now += step.after
			attempts(t, b, now, 0, step.results)
		}
		got := b.Endpoint(0, now)
		if got.Multiplier != tt.want || got.Ejections != 3 {
			t.Errorf("%s: multiplier %d, want %d; %d ejections", tt.name, got.Multiplier, tt.want, got.Ejections)
		}
		attempts(t, b, now, 0, "SFFF")
		want := min(time.Duration(tt.want+1)*10*s, 35*s)
		wantEjected(t, b, now, 0, now+want)
	}
}

// An endpoint that hangs is ejected while more attempts wait for it. Their timeouts tell nothing new.
func TestResultsDuringAnEjectionChangeNothing(t *testing.T) {
	b := balance.New(three, 2)
	for range 20 {
		begin(t, b, 0, 1)
	}
	for range 3 {
		b.Done(1, s, balance.Failure)
	}
	was := b.Endpoint(1, 2*s)
	wantEjected(t, b, 2*s, 1, 11*s)
	for range 6 {
		b.Done(1, 2*s, balance.Failure) // does not extend it
	}
	b.Done(1, 3*s, balance.Success) // does not end it
	b.Done(1, 11*s-1, balance.Failure)
	was.Pending -= 8
	if got := b.Endpoint(1, 11*s-1); got != was {
		t.Errorf("%+v, want %+v", got, was)
	}
	if got := b.Endpoint(1, 11*s); got.ConsecutiveFailures != 0 || got.Ejected {
		t.Errorf("after the return %+v", got)
	}
}

func TestLateFailuresAloneNeverEjectAgain(t *testing.T) {
	b := balance.New(three, 2)
	for range 20 {
		begin(t, b, 0, 1)
	}
	for range 3 {
		b.Done(1, s, balance.Failure)
	}
	for range 10 { // these began before the ejection and end after the return
		b.Done(1, 12*s, balance.Failure)
	}
	wantEjected(t, b, 12*s, 1, 0)
	attempts(t, b, 12*s, 1, "FF")
	wantEjected(t, b, 12*s, 1, 0)
	attempts(t, b, 12*s, 1, "F") // the third that began after the return
	wantEjected(t, b, 12*s, 1, 32*s)
}

func TestAtMostTheShareIsOutAndNeverTheLast(t *testing.T) {
	for _, tt := range []struct {
		n     int
		share float64
		want  int
	}{
		{1, 1, 0}, {1, 0.5, 0},
		{2, 0.5, 1}, {2, 0.001, 1}, {2, 1, 1}, {2, 0, 1},
		{3, 0.5, 1}, {3, 0.67, 2}, {3, 1, 2},
		{4, 0.5, 2}, {4, 0.1, 1}, {4, 0.74, 2}, {4, 0.75, 3},
		{10, 0.3, 3}, {10, 0.29, 2}, {10, 0.7, 7}, {10, 1, 9}, {10, -1, 1}, {10, math.NaN(), 1}, {10, 99, 9},
		{100, 0.29, 29}, {100, 0.57, 57}, // a little less in binary
	} {
		b := balance.New(balance.Config{ConsecutiveFailures: 1, MaxEjectionShare: tt.share}, tt.n)
		for n := range uint64(10_000) { // every attempt fails, but for those at the last endpoint
			i, r := b.Pick(0, n*0x9e3779b97f4a7c15, -1), balance.Failure
			if i == tt.n-1 {
				r = balance.Success
			}
			b.Done(i, 0, r)
		}
		if got := out(b, tt.n, 0); got != tt.want {
			t.Errorf("share %v: %d of %d are out, want %d", tt.share, got, tt.n, tt.want)
		}
	}
}

func out(b *balance.Balancer, n int, now time.Duration) (out int) {
	for i := range n {
		if b.Endpoint(i, now).Ejected {
			out++
		}
	}
	return out
}

func TestAnEndpointThatWasSparedIsEjectedByTheNextFailureOnceThereIsRoom(t *testing.T) {
	c := three
	c.MaxEjectionShare = 0.5
	b := balance.New(c, 3)
	attempts(t, b, 0, 0, "FFF")
	attempts(t, b, 5*s, 1, "FFFFF")
	if got := b.Endpoint(1, 5*s); got.Ejected || got.ConsecutiveFailures != 5 {
		t.Errorf("although one of three is out: %+v", got)
	}
	attempts(t, b, 10*s, 1, "F") // endpoint 0 is back
	wantEjected(t, b, 10*s, 0, 0)
	wantEjected(t, b, 10*s, 1, 20*s)
}

func TestWithoutEjectionAllEndpointsStayInTheChoice(t *testing.T) {
	disabled := three
	disabled.Disabled = true
	for _, c := range []balance.Config{{}, {Disabled: true}, disabled} {
		b := balance.New(c, 3)
		for i := range 3 {
			attempts(t, b, s, i, "FFFFFFFFFF")
			if got, want := b.Endpoint(i, s), (balance.EndpointState{ConsecutiveFailures: 10}); got != want {
				t.Errorf("%+v: %+v, want %+v", c, got, want)
			}
		}
		b.Pick(s, 0, -1) // endpoint 0: the others have less pending now
		for n := range uint64(100) {
			i := b.Pick(s, n<<57|n<<25, -1)
			if i == 0 {
				t.Fatalf("%+v: the busiest of three is chosen", c)
			}
			b.Done(i, s, balance.Success)
		}
	}
}

func TestWithoutEndpointsThereIsNothingToChoose(t *testing.T) {
	for _, n := range []int{0, -3} {
		b := balance.New(three, n)
		for _, avoid := range []int{-1, 0} {
			if got := b.Pick(0, math.MaxUint64, avoid); got != -1 {
				t.Errorf("%d endpoints: %d is chosen", n, got)
			}
		}
	}
}

func TestDoneWithoutAPendingAttemptPanicsAndBreaksNothing(t *testing.T) {
	b := balance.New(balance.Config{ConsecutiveFailures: 1}, 2)
	b.Done(b.Pick(0, 0, -1), 0, balance.Success)
	func() {
		defer func() {
			if got := fmt.Sprint(recover()); got != "balance: Done without a pending attempt" {
				t.Errorf("panic %q", got)
			}
		}()
		b.Done(0, 0, balance.Failure)
	}()
	if got := b.Endpoint(0, 0); got != (balance.EndpointState{}) {
		t.Errorf("%+v", got)
	}
}

// Goroutines read the clock before they come here, and not in the order in which they come.
func TestAnOlderTimeDoesNotUndoWhatHasHappened(t *testing.T) {
	b := balance.New(three, 3)
	attempts(t, b, 0, 1, "FFF")
	wantEjected(t, b, 10*s, 1, 0)
	wantEjected(t, b, 9*s, 1, 0) // it has come back, and stays
	attempts(t, b, 25*s, 1, "F") // one step back, and a new beginning
	attempts(t, b, 18*s, 1, "F")
	if got := b.Endpoint(1, 34*s); got.Multiplier != 0 || got.ConsecutiveFailures != 2 {
		t.Errorf("%+v", got)
	}
	attempts(t, b, 5*s, 1, "F") // a failure of long ago ejects for a time that is over
	if got := b.Endpoint(1, 34*s); got.Ejected || got.Ejections != 2 {
		t.Errorf("%+v", got)
	}
}

func TestExtremeTimes(t *testing.T) {
	const first, last = time.Duration(math.MinInt64), time.Duration(math.MaxInt64)
	b := balance.New(three, 2)
	attempts(t, b, first, 0, "FFF")
	if got := b.Endpoint(0, first); !got.Ejected || got.EjectedUntil != first+10*s {
		t.Errorf("%+v", got)
	}
	for _, now := range []time.Duration{-1, 0, 1, last - 1, last} {
		if got := b.Endpoint(0, now); got.Ejected || got.Multiplier != 0 {
			t.Errorf("at %d: %+v", now, got)
		}
	}
	attempts(t, b, last-s, 0, "FFF")
	wantEjected(t, b, last-s, 0, last)
	if got := b.Pick(last, 0, -1); got != 1 {
		t.Errorf("endpoint %d is chosen at the end of time", got)
	}
}

func TestEndpointsShareNoCacheLine(t *testing.T) {
	if got := balance.EndpointSize; got != 64 {
		t.Errorf("an endpoint has %d bytes, want one cache line of 64", got)
	}
}

// This test hangs if one of them takes the lock.
func TestNothingWaitsForTheLockUnlessAnEndpointIsOrWasEjected(t *testing.T) {
	b := balance.New(three, 2)
	attempts(t, b, 0, 0, "FFF") // ejected, and forgiven at 30 s
	attempts(t, b, 30*s, 0, "F")
	b.WithLock(func() { attempts(t, b, 30*s, 0, "SNFF") })
	attempts(t, b, 30*s, 0, "F")
	b.WithLock(func() { attempts(t, b, 31*s, 1, "SNFF") })
}

func TestTheHappyPathAllocatesNothing(t *testing.T) {
	for _, n := range []int{1, 2, 16} {
		b := balance.New(three, n)
		rnd := uint64(1)
		if got := testing.AllocsPerRun(1000, func() {
			rnd *= 0x9e3779b97f4a7c15
			b.Done(b.Pick(s, rnd, int(rnd>>60)), s, balance.Success)
		}); got != 0 {
			t.Errorf("%d endpoints: %v allocations", n, got)
		}
	}
}
