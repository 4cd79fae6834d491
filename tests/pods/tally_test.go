//go:build unix

package pods_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// slot is the length of time in which connection attempts are counted together.
const slot = 100 * time.Millisecond

// beat is what one pod saw in one slot.
type beat struct {
	Slot    int64          // since the epoch
	Dials   int            // connections that it began to open
	Cancels int            // connections that the driver opened to cancel a query, which no pool sees
	Refused map[string]int // connections that came to nothing, by reason
	Served  int            // queries answered
	Failed  int            // queries not answered
	// when a query was answered, in microseconds of the wall clock, which all processes of a machine share
	First, Last int64
}

// tally counts and tells.
type tally struct {
	out   *json.Encoder
	start time.Time // has both clocks

	mu    sync.Mutex
	beats map[int64]*beat
}

func newTally(out io.Writer) *tally {
	return &tally{out: json.NewEncoder(out), start: time.Now(), beats: make(map[int64]*beat)}
}

// now is the time since the epoch. It does not jump when somebody sets the clock.
func (t *tally) now() time.Duration {
	return time.Duration(t.start.UnixNano()) + time.Since(t.start)
}

func (t *tally) count(note func(b *beat, at time.Duration)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	n := int64(now / slot)
	if t.beats[n] == nil {
		t.beats[n] = &beat{Slot: n, Refused: make(map[string]int)}
	}
	note(t.beats[n], now)
}

func (t *tally) dialled() { t.count(func(b *beat, _ time.Duration) { b.Dials++ }) }
func (t *tally) cancels() { t.count(func(b *beat, _ time.Duration) { b.Cancels++ }) }
func (t *tally) failed()  { t.count(func(b *beat, _ time.Duration) { b.Failed++ }) }
func (t *tally) refused(err error) {
	t.count(func(b *beat, _ time.Duration) { b.Refused[reason(err)]++ })
}

func (t *tally) served() {
	t.count(func(b *beat, at time.Duration) {
		b.Served++
		b.Last = at.Microseconds()
		if b.First == 0 {
			b.First = b.Last
		}
	})
}

// tell writes the slots that are over, in their order, until the end of ctx.
func (t *tally) tell(ctx context.Context) {
	tick := time.NewTicker(slot)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, b := range t.over() {
			if err := t.out.Encode(b); err != nil {
				os.Exit(1) // nobody reads it any more
			}
		}
	}
}

func (t *tally) over() (done []*beat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	running := int64(t.now() / slot)
	for _, n := range slices.Sorted(maps.Keys(t.beats)) {
		if n < running {
			done = append(done, t.beats[n])
			delete(t.beats, n)
		}
	}
	return done
}

// reason is why a connection came to nothing, in a word or the SQLSTATE.
func reason(err error) string {
	var state interface{ SQLState() string }
	var timeout net.Error
	switch {
	case errors.As(err, &state):
		return state.SQLState()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "ECONNREFUSED"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF):
		return "reset"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &timeout) &&
		timeout.Timeout():
		return "timeout"
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}
