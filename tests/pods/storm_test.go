//go:build unix

package pods_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs"
)

// plan is a restart: how many pods look at it, and the length of its acts.
type plan struct {
	pods, slots          int // slots are the connections that the server has
	calm, down, recovery time.Duration
}

// thePlan is the restart that the numbers in the package comment are of, or with -short a small one. In both the server
// has two connections for each pod, which may open 20.
func thePlan(t *testing.T) plan {
	needs.Alone(t)
	if testing.Short() {
		return plan{pods: 8, slots: 16, calm: time.Second, down: time.Second, recovery: 2 * time.Second}
	}
	return plan{pods: 50, slots: 100, calm: 2 * time.Second, down: 2500 * time.Millisecond, recovery: 8 * time.Second}
}

// storm is what a restart of the server made of a fleet, from the crash to the end of the recovery.
type storm struct {
	beat                   // of all slots together
	peak     int           // connections that the pools began to open in the worst slot
	wire     int           // the same with those by which drivers cancel queries
	pods     int           // that had an answer after the restart
	all      time.Duration // from the server being up to the first answer of the last of them
	answered float64       // share of the queries in the last second
}

// refusals are the connections that came to nothing.
func (s *storm) refusals() (n int) {
	for _, k := range s.Refused {
		n += k
	}
	return n
}

// server is what a fleet connects to.
type server interface {
	crash()
	start() time.Time // returns when it took queries
}

// play crashes the server under a fleet, starts it again and looks on.
func (p plan) play(t *testing.T, s server, o order) *storm {
	t.Helper()
	f := deploy(t, p.pods, o)
	if n := f.await(time.Time{}); n < p.pods {
		t.Fatalf("only %d of %d pods had an answer in the first %v", n, p.pods, limit)
	}
	pass(t, p.calm)
	down := time.Now()
	s.crash()
	pass(t, p.down)
	up := s.start()
	pass(t, p.recovery)
	over := time.Now()
	if o.Guarded {
		if n := f.await(up); n < p.pods {
			t.Errorf("only %d of %d guarded pods had an answer since the restart, %v ago", n, p.pods,
				time.Since(up).Round(time.Second))
		}
	}
	pass(t, 2*slot) // until the last slot is told
	f.end()
	return f.sum(down, up, over)
}

// pass lets time go by: the pods do not wait for anybody.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(d):
	}
}

func (f *fleet) sum(down, up, over time.Time) *storm {
	s := &storm{beat: beat{Refused: make(map[string]int)}}
	slots := f.seen(down, over)
	for _, b := range slots {
		s.peak, s.wire = max(s.peak, b.Dials), max(s.wire, b.Dials+b.Cancels)
		s.add(b)
	}
	last := beat{Refused: make(map[string]int)}
	for _, b := range slots[max(0, len(slots)-int(time.Second/slot)):] {
		last.add(b)
	}
	s.answered = float64(last.Served) / float64(max(1, last.Served+last.Failed))
	pods, at := f.serving(up)
	s.pods, s.all = pods, at.Sub(up)
	return s
}

// compare plays the same restart without and with a guard, prints the table and holds the two against each other. The
// room is for machines under load; the table has the numbers.
func (p plan) compare(t *testing.T, s server, o order) {
	t.Helper()
	naive := p.play(t, s, o)
	s.crash() // both begin with a server that nobody is connected to
	s.start()
	o.Guarded = true
	guarded := p.play(t, s, o)
	t.Log(p.table(o.Kind, naive, guarded))
	// Twice as many connections begin in each round, in all pods at once: 31 to 281 in 100 ms, in twelve runs.
	if guarded.peak*2 > naive.peak {
		t.Errorf("guarded pods began up to %d connections in %v, unguarded ones %d; want at most half", guarded.peak, slot,
			naive.peak)
	}
	if guarded.answered < naive.answered-0.01 {
		t.Errorf("%.1f %% of the queries of guarded pods were answered in the last second, of unguarded ones %.1f %%",
			100*guarded.answered, 100*naive.answered)
	}
	if guarded.refusals()*10 > naive.refusals() {
		t.Errorf("%d connections of guarded pods came to nothing, of unguarded ones %d; want at most a tenth",
			guarded.refusals(), naive.refusals())
	}
}

func (p plan) table(kind string, naive, guarded *storm) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s restarted under %d pods of %d connections, %v away, %v watched\n", kind, p.pods, pool, p.down,
		p.recovery)
	row := func(what, format string, values ...any) {
		fmt.Fprintf(&b, "%-42s"+format+"\n", append([]any{what}, values...)...)
	}
	ratio := func(n, of int) float64 { return float64(n) / float64(max(1, of)) }
	row("", "%12s %12s %8s", "unguarded", "guarded", "ratio")
	row("peak of attempts in 100 ms", "%12d %12d %8.3f", naive.peak, guarded.peak, ratio(guarded.peak, naive.peak))
	row("  with what drivers open to cancel queries", "%12d %12d %8.3f", naive.wire, guarded.wire,
		ratio(guarded.wire, naive.wire))
	row("attempts", "%12d %12d %8.3f", naive.Dials, guarded.Dials, ratio(guarded.Dials, naive.Dials))
	row("refused", "%12d %12d %8.3f", naive.refusals(), guarded.refusals(), ratio(guarded.refusals(), naive.refusals()))
	both := maps.Clone(naive.Refused)
	maps.Copy(both, guarded.Refused)
	for _, why := range slices.Sorted(maps.Keys(both)) {
		row("  "+why, "%12d %12d", naive.Refused[why], guarded.Refused[why])
	}
	row("pods that serve", "%12d %12d", naive.pods, guarded.pods)
	row("until the last of them did", "%12v %12v", naive.all.Round(time.Millisecond), guarded.all.Round(time.Millisecond))
	row("answered in the last second", "%11.1f%% %11.1f%%", 100*naive.answered, 100*guarded.answered)
	return b.String()
}
