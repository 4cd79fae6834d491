package abatekafka

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// troubles are what a session knows of partitions that cannot be fetched.
type troubles struct {
	mu      sync.Mutex
	poison  map[place]*poisoned
	steps   map[place]int64 // where the client is to go on behind a batch that was dead-lettered
	failing map[place]failing
}

// poisoned is what is known of a partition whose next batch cannot be decoded.
type poisoned struct {
	err   string
	times int
}

// failing is what was reported of a partition that cannot be fetched.
type failing struct {
	err      string
	reported time.Duration
}

// poisonAfter is how often the same error shows that a batch is poison.
const poisonAfter = 3

// poisonFound counts an error of a batch, and returns true once, when it has come often enough.
func (t *troubles) poisonFound(at place, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	bad := t.poison[at]
	if bad == nil || bad.err != err.Error() {
		bad = &poisoned{err: err.Error()}
		t.poison[at] = bad
	}
	bad.times++
	return bad.times == poisonAfter
}

// news reports whether an error is to be reported: at once, and while it stays so once a minute.
func (t *troubles) news(at place, err error, now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, known := t.failing[at]
	if known && last.err == err.Error() && now-last.reported < stuckAgain {
		return false
	}
	t.failing[at] = failing{err.Error(), now}
	return true
}

// over forgets what was wrong with a partition that can be read again.
func (t *troubles) over(at place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.poison, at)
	delete(t.failing, at)
}

// forget forgets a partition that is not ours any more.
func (t *troubles) forget(at place) {
	t.over(at)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.steps, at)
}

// stepOver notes where the client is to go on.
func (t *troubles) stepOver(at place, to int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps[at] = to
}

// stepping reports whether the client is to go on elsewhere.
func (t *troubles) stepping() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.steps) > 0
}

// takeSteps returns where the client is to go on, and forgets it.
func (t *troubles) takeSteps() map[place]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	steps := t.steps
	t.steps = map[place]int64{}
	return steps
}

// undecodable reports whether an error is about the bytes of a batch. The client has no types for those: what it is
// not, is known.
func undecodable(err error) bool {
	var (
		broker  *kerr.Error
		loss    *kgo.ErrDataLoss
		group   *kgo.ErrGroupSession
		eof     *kgo.ErrFirstReadEOF
		network net.Error
	)
	for _, known := range []any{&broker, &loss, &group, &eof, &network} {
		if errors.As(err, known) {
			return false
		}
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, kgo.ErrClientClosed} {
		if errors.Is(err, known) {
			return false
		}
	}
	return true
}

// fetchAgain is the pause after a fetch that brought nothing but errors. The client would bring the same ones again at
// once.
const fetchAgain = 100 * time.Millisecond

// failed reports whether a fetch brought nothing but errors of the broker.
func failed(fetches kgo.Fetches) bool {
	if fetches.NumRecords() > 0 {
		return false
	}
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.Canceled) { // who was nudged
			return true
		}
	}
	return false
}
