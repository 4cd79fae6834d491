package bulkhead_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/policy/bulkhead"
)

// line is a row of waiters that note in which order they are woken.
type line struct {
	b       *bulkhead.Bulkhead
	now     time.Duration
	waiters []*bulkhead.Waiter
	woken   []int
}

const patience = time.Second

func (l *line) enqueue() bulkhead.Verdict { return l.wait(false) }

func (l *line) wait(again bool) bulkhead.Verdict {
	n := len(l.waiters)
	w := &bulkhead.Waiter{Wake: func() { l.woken = append(l.woken, n) }, Until: l.now + patience, Again: again}
	l.waiters = append(l.waiters, w)
	return l.b.Enqueue(l.now, w)
}

// full returns a bulkhead whose permits are all taken and in which n callers wait.
func full(t *testing.T, c bulkhead.Config, n int) *line {
	t.Helper()
	l := &line{b: bulkhead.New(c)}
	for range c.MaxConcurrentCalls {
		if !l.b.TryAcquire() {
			t.Fatal("a free permit was refused")
		}
	}
	for i := range n {
		if got := l.enqueue(); got != bulkhead.Queued {
			t.Fatalf("waiter %d: %v", i, got)
		}
	}
	return l
}

func TestLimitAndQueueAreBounded(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 3, MaxQueue: 2}, 2)
	if l.b.TryAcquire() {
		t.Error("a fourth call was let in")
	}
	if got := l.enqueue(); got != bulkhead.Full {
		t.Errorf("a third waiter: %v", got)
	}
	if got, want := l.b.State(), (bulkhead.State{InFlight: 3, Limit: 3, Queued: 2, MaxQueue: 2}); got != want {
		t.Errorf("state %+v, want %+v", got, want)
	}
}

func TestWithoutAQueueAFullBulkheadRefusesAtOnce(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true}, 0)
	if got := l.enqueue(); got != bulkhead.Full {
		t.Errorf("verdict %v", got)
	}
	l.b.Release()
	if got := l.enqueue(); got != bulkhead.Admitted {
		t.Errorf("verdict %v although the permit came back in between", got)
	}
	if len(l.woken) != 0 {
		t.Error("an admitted caller was woken")
	}
}

func TestNobodyOvertakesThoseWhoWait(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 2, Order: bulkhead.FIFO}, 1)
	l.waiters[0].Wake = func() {
		l.woken = append(l.woken, 0)
		if l.b.TryAcquire() {
			t.Error("a newcomer took the permit that was passed on")
		}
	}
	l.b.Release()
	if !slices.Equal(l.woken, []int{0}) {
		t.Errorf("woken %v", l.woken)
	}
	if got := l.b.State(); got.InFlight != 1 || got.Queued != 0 {
		t.Errorf("state %+v", got)
	}
}

// A raised limit lets in those who wait, one after the other. While the first is woken
// there is room, but it is for the others.
func TestNobodyOvertakesThoseWhoAreAboutToBeAdmitted(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 9, Order: bulkhead.FIFO}, 3)
	overtaken := false
	l.waiters[0].Wake = func() {
		overtaken = l.b.TryAcquire() || l.enqueue() != bulkhead.Queued
	}
	l.b.Reconfigure(bulkhead.Config{MaxConcurrentCalls: 4, MaxQueue: 9, Order: bulkhead.FIFO})
	if overtaken {
		t.Error("a newcomer was let in before those who wait")
	}
	if want := []int{1, 2}; !slices.Equal(l.woken, want) {
		t.Errorf("woken %v, want %v", l.woken, want)
	}
	if got := l.b.State(); got.InFlight != 4 || got.Queued != 1 {
		t.Errorf("state %+v", got)
	}
}

func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		order bulkhead.Order
		want  []int
	}{
		{bulkhead.FIFO, []int{0, 1, 2, 3, 4, 5}},
		{bulkhead.LIFO, []int{5, 4, 3, 2, 1, 0}},
		{bulkhead.Adaptive, []int{0, 1, 2, 3, 4, 5}},
		{"", []int{0, 1, 2, 3, 4, 5}},
		{"filo", []int{0, 1, 2, 3, 4, 5}},
	} {
		l := full(t, bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 8, Order: tt.order}, 6)
		for range 7 {
			l.b.Release()
		}
		if !slices.Equal(l.woken, tt.want) {
			t.Errorf("%q: woken %v, want %v", tt.order, l.woken, tt.want)
		}
		if got := l.b.State(); got.InFlight != 0 || got.Queued != 0 {
			t.Errorf("%q: state %+v after all have gone", tt.order, got)
		}
	}
}

// Half of the time of the oldest is the point where those behind it would get less than half of theirs.
func TestAdaptiveOrderTurnsWhenTheOldestHasUsedHalfOfItsTime(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   time.Duration
		want []int
	}{
		{"half of its time", patience / 2, []int{0, 1, 2, 3}},
		{"more", patience/2 + 1, []int{3, 2, 1, 0}},
	} {
		l := full(t, bulkhead.Config{MaxConcurrentCalls: 1}, 3)
		l.now = tt.at
		l.enqueue()
		for range 4 {
			l.b.Release()
		}
		if !slices.Equal(l.woken, tt.want) {
			t.Errorf("%s: woken %v, want %v", tt.name, l.woken, tt.want)
		}
	}
}

func TestAdaptiveOrderIsNewestFirstFromTheFirstOneThatLeavesUntilNobodyWaits(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 1}, 4)
	l.b.Abandon(l.waiters[1])
	for range 3 { // 3, 2, 0
		l.b.Release()
	}
	l.enqueue()
	l.enqueue()
	l.b.Release()
	l.b.Release()
	if want := []int{3, 2, 0, 4, 5}; !slices.Equal(l.woken, want) {
		t.Errorf("woken %v, want %v", l.woken, want)
	}
}

// A call that has been let in once is not refused in the middle, and not overtaken for ever by those that come.
func TestThoseThatComeBackWaitWhateverTheQueueAndGoFirst(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    bulkhead.Config
		n    int
		want []int
	}{
		{"no queue", bulkhead.Config{NoQueue: true}, 0, []int{1, 2}},
		{"a full queue", bulkhead.Config{MaxQueue: 2, Order: bulkhead.FIFO}, 2, []int{3, 4, 0, 1}},
		{"newest first", bulkhead.Config{MaxQueue: 2, Order: bulkhead.LIFO}, 2, []int{4, 3, 1, 0}},
	} {
		tt.c.MaxConcurrentCalls = 1
		l := full(t, tt.c, tt.n)
		if got := l.enqueue(); got != bulkhead.Full {
			t.Fatalf("%s: a first attempt: %v", tt.name, got)
		}
		for range 2 {
			if got := l.wait(true); got != bulkhead.Queued {
				t.Errorf("%s: one that comes back: %v", tt.name, got)
			}
		}
		for range tt.n + 2 {
			l.b.Release()
		}
		if !slices.Equal(l.woken, tt.want) {
			t.Errorf("%s: woken %v, want %v", tt.name, l.woken, tt.want)
		}
	}
}

func TestAPausedCallGivesItsPermitToAnotherAndIsRemembered(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 1}, 1)
	l.b.Pause()
	if got := l.b.State(); got.InFlight != 1 || got.Queued != 0 || got.Away != 1 {
		t.Errorf("state %+v", got)
	}
	l.b.Release()
	if !l.b.Busy() {
		t.Error("nobody is to come back")
	}
	if l.b.Back(); l.b.Busy() || l.b.State().Away != 0 {
		t.Errorf("state %+v", l.b.State())
	}
}

func TestAbandonLeavesTheQueue(t *testing.T) {
	for leaver := range 3 {
		l := full(t, bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 3, Order: bulkhead.FIFO}, 3)
		if !l.b.Abandon(l.waiters[leaver]) {
			t.Fatal("a queued waiter was told that it has a permit")
		}
		if got := l.enqueue(); got != bulkhead.Queued {
			t.Errorf("the place of the one who left: %v", got)
		}
		for range 4 {
			l.b.Release()
		}
		want := slices.DeleteFunc([]int{0, 1, 2, 3}, func(i int) bool { return i == leaver })
		if !slices.Equal(l.woken, want) {
			t.Errorf("without %d: woken %v, want %v", leaver, l.woken, want)
		}
	}
}

func TestAbandonAfterThePermitCame(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 1}, 1)
	l.b.Release()
	if l.b.Abandon(l.waiters[0]) {
		t.Fatal("the waiter that has a permit was told that it left the queue")
	}
	if got := l.b.State(); got.InFlight != 1 {
		t.Errorf("state %+v, want the permit in the waiter's hands", got)
	}
	l.b.Release()
	if got := l.b.State(); got.InFlight != 0 {
		t.Errorf("state %+v", got)
	}
}

// A callback under the lock would deadlock here.
func TestWakeMayUseTheBulkhead(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 3, Order: bulkhead.FIFO}, 3)
	for i, w := range l.waiters {
		w.Wake = func() {
			l.woken = append(l.woken, i)
			l.b.State()
			l.b.Reconfigure(bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 3, Order: bulkhead.FIFO})
			l.b.Abandon(w)
			l.b.Release()
		}
	}
	l.b.Release()
	if want := []int{0, 1, 2}; !slices.Equal(l.woken, want) {
		t.Errorf("woken %v, want %v", l.woken, want)
	}
	if got := l.b.State(); got.InFlight != 0 || got.Queued != 0 {
		t.Errorf("state %+v", got)
	}
}

func TestAWaiterIsQueuedOnce(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 5}, 1)
	if got := l.b.Enqueue(0, l.waiters[0]); got != bulkhead.Queued {
		t.Errorf("verdict %v", got)
	}
	if got := l.b.State(); got.Queued != 1 {
		t.Errorf("state %+v", got)
	}
}

func TestAWaiterWithoutWakeGetsItsPermit(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 1}, 1)
	l.waiters[0].Wake = nil
	l.b.Release()
	if l.b.Abandon(l.waiters[0]) {
		t.Error("no permit")
	}
}

func TestPermitsAreScarceWhileFewerThanAQuarterIsFree(t *testing.T) {
	for _, row := range []struct {
		limit, taken int
		want         bool
	}{
		{0, 0, false}, {0, 1000, false}, // without a limit
		{1, 0, false}, {1, 1, true},
		{4, 3, false}, {4, 4, true},
		{100, 75, false}, {100, 76, true}, {100, 100, true},
	} {
		b := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: row.limit})
		for range row.taken {
			if !b.TryAcquire() {
				t.Fatalf("no permit of %d", row.limit)
			}
		}
		if got := b.Scarce(); got != row.want {
			t.Errorf("%d of %d permits are taken: scarce %v", row.taken, row.limit, got)
		}
	}
	b := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 100})
	for range 10 {
		b.TryAcquire()
	}
	if b.Reconfigure(bulkhead.Config{MaxConcurrentCalls: 5}); !b.Scarce() {
		t.Error("of a limit that has been lowered below what is taken something is left")
	}
}

func TestReconfigure(t *testing.T) {
	base := bulkhead.Config{MaxConcurrentCalls: 2, MaxQueue: 5, Order: bulkhead.FIFO}
	for _, tt := range []struct {
		name  string
		to    bulkhead.Config
		woken []int
		state bulkhead.State
	}{
		{"the same", base, nil, bulkhead.State{InFlight: 2, Limit: 2, Queued: 4, MaxQueue: 5}},
		{"raised", bulkhead.Config{MaxConcurrentCalls: 4, MaxQueue: 5, Order: bulkhead.FIFO}, []int{0, 1}, bulkhead.State{
			InFlight: 4, Limit: 4, Queued: 2, MaxQueue: 5,
		}},
		{"raised above all", bulkhead.Config{MaxConcurrentCalls: 10, MaxQueue: 5, Order: bulkhead.LIFO}, []int{3, 2, 1, 0},
			bulkhead.State{InFlight: 6, Limit: 10, MaxQueue: 5}},
		{"lowered", bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 5}, nil, bulkhead.State{
			InFlight: 2, Limit: 1, Queued: 4, MaxQueue: 5,
		}},
		{"shorter queue", bulkhead.Config{MaxConcurrentCalls: 2, MaxQueue: 1}, nil, bulkhead.State{
			InFlight: 2, Limit: 2, Queued: 4, MaxQueue: 1,
		}},
		{"off", bulkhead.Config{}, []int{0, 1, 2, 3}, bulkhead.State{InFlight: 6}},
		{"disabled", bulkhead.Config{Disabled: true, MaxConcurrentCalls: 2, Order: bulkhead.FIFO}, []int{0, 1, 2, 3},
			bulkhead.State{InFlight: 6}},
	} {
		l := full(t, base, 4)
		l.b.Reconfigure(tt.to)
		if !slices.Equal(l.woken, tt.woken) {
			t.Errorf("%s: woken %v, want %v", tt.name, l.woken, tt.woken)
		}
		if got := l.b.State(); got != tt.state {
			t.Errorf("%s: state %+v, want %+v", tt.name, got, tt.state)
		}
	}
}

func TestALoweredLimitDrains(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 4, MaxQueue: 2, Order: bulkhead.FIFO}, 1)
	l.b.Reconfigure(bulkhead.Config{MaxConcurrentCalls: 2, MaxQueue: 2, Order: bulkhead.FIFO})
	for i, wantWoken := range []int{0, 0, 1} { // 4 → 3 → 2 → the waiter takes the next one
		if l.b.TryAcquire() {
			t.Fatal("let in above the new limit")
		}
		l.b.Release()
		if len(l.woken) != wantWoken {
			t.Errorf("release %d: woken %v", i+1, l.woken)
		}
	}
	if got := l.b.State(); got.InFlight != 2 {
		t.Errorf("state %+v", got)
	}
}

func TestAShorterQueueRefusesNewcomersUntilItHasDrained(t *testing.T) {
	l := full(t, bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 3}, 3)
	l.b.Reconfigure(bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 1})
	for range 3 {
		if got := l.enqueue(); got != bulkhead.Full {
			t.Fatalf("verdict %v with %+v", got, l.b.State())
		}
		l.b.Release()
	}
	if got := l.enqueue(); got != bulkhead.Queued {
		t.Errorf("verdict %v after the queue has drained", got)
	}
}

func TestCallsFromBeforeTheBulkheadWasSwitchedOnAreCounted(t *testing.T) {
	b := bulkhead.New(bulkhead.Config{})
	for range 5 {
		if !b.TryAcquire() {
			t.Fatal("a bulkhead that is off refused a call")
		}
	}
	b.Reconfigure(bulkhead.Config{MaxConcurrentCalls: 5})
	if b.TryAcquire() {
		t.Error("a sixth call was let in")
	}
	for range 5 {
		b.Release()
	}
	if got := b.State(); got.InFlight != 0 {
		t.Errorf("state %+v", got)
	}
}

func TestReleaseWithoutAPermitPanicsAndBreaksNothing(t *testing.T) {
	b := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 1})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		b.Release()
	}()
	if got := b.State(); got.InFlight != 0 || got.Queued != 0 || !b.TryAcquire() {
		t.Errorf("state %+v after the panic", got)
	}
}

func TestConfig(t *testing.T) {
	on := bulkhead.Config{MaxConcurrentCalls: 5}
	full := bulkhead.Config{MaxConcurrentCalls: 5, Limit: "fixed", Order: "adaptive"}
	for _, tt := range []struct {
		c, want bulkhead.Config
		enabled bool
	}{
		{bulkhead.Config{}, bulkhead.Config{}, false},
		{bulkhead.Config{MaxQueue: 5}, bulkhead.Config{MaxQueue: 5}, false},
		{bulkhead.Config{MaxConcurrentCalls: -1}, bulkhead.Config{MaxConcurrentCalls: -1}, false},
		{on, full, true},
		{full, full, true},
		{bulkhead.Config{Limit: "adaptive"}, bulkhead.Config{Limit: "adaptive", Order: "adaptive"}, true},
		{bulkhead.Config{Disabled: true, Limit: "adaptive"}, bulkhead.Config{
			Disabled: true, Limit: "adaptive", Order: "adaptive",
		}, false},
		{bulkhead.Config{Disabled: true, MaxConcurrentCalls: 5}, bulkhead.Config{
			Disabled: true, MaxConcurrentCalls: 5, Limit: "fixed", Order: "adaptive",
		}, false},
	} {
		if got := tt.c.WithDefaults(); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.c, got, tt.want)
		}
		if got := tt.c.Enabled(); got != tt.enabled {
			t.Errorf("%+v: enabled %v", tt.c, got)
		}
	}
}

func TestHowLongACallMayWait(t *testing.T) {
	const never, now, sec = math.MaxInt64, time.Hour, time.Second
	for _, tt := range []struct {
		name                                      string
		maxWait, deadline, typical, attempt, want time.Duration
	}{
		{"nothing is said", 0, never, 0, 0, sec},
		{"an attempt may take so long", 0, never, 0, 3 * sec, 3 * sec},
		{"until the deadline", 0, now + 9*sec, 0, 3 * sec, 9 * sec},
		{"an attempt takes a while", 0, now + 9*sec, 2 * sec, 0, 7 * sec},
		{"no attempt fits", 0, now + sec, 2 * sec, 0, -sec},
		{"maxWait", 4 * sec, never, 2 * sec, 0, 4 * sec},
		{"maxWait before the deadline", 4 * sec, now + 9*sec, 2 * sec, 0, 4 * sec},
		{"the deadline before maxWait", 4 * sec, now + 5*sec, 2 * sec, 0, 3 * sec},
		{"an hour at most", math.MaxInt64, never, 0, 0, time.Hour},
	} {
		c := bulkhead.Config{MaxWait: tt.maxWait}
		if got := c.Patience(now, tt.deadline, never, tt.typical, tt.attempt) - now; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestValuesOutOfRangeAreMovedToTheNearestEnd(t *testing.T) {
	b := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: math.MaxInt, MaxQueue: math.MaxInt})
	if got := b.State(); got.Limit != 1_000_000 || got.MaxQueue != 1_000_000 {
		t.Errorf("state %+v", got)
	}
	b = bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: -7})
	if got := b.State(); got.MaxQueue != 0 {
		t.Errorf("state %+v", got)
	}
}

func TestVerdictStrings(t *testing.T) {
	got := fmt.Sprint(bulkhead.Admitted, bulkhead.Queued, bulkhead.Full, bulkhead.Verdict(9))
	if got != "admitted queued full unknown" {
		t.Error(got)
	}
}

// The driver of the example, with time: the wait ends at Until, at the caller's
// cancellation, or with a permit, and no permit is lost in any of them.
func TestADriverWaitsNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 10})
		ctx := context.Background()
		if err := acquire(ctx, b); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := acquire(ctx, b); !errors.Is(err, errWaited) || time.Since(begin) != 300*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		begin = time.Now()
		if err := acquire(short, b); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 100*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		time.AfterFunc(200*time.Millisecond, b.Release)
		begin = time.Now()
		if err := acquire(ctx, b); err != nil || time.Since(begin) != 200*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		b.Release()
		if got := b.State(); got.InFlight != 0 || got.Queued != 0 {
			t.Errorf("state %+v", got)
		}
	})
}

func TestAFreePermitCostsNoAllocation(t *testing.T) {
	b := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 1})
	if n := testing.AllocsPerRun(1000, func() {
		b.TryAcquire()
		b.TryAcquire()
		b.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
