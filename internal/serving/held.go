package serving

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
)

// held are the holds of this process, from Keep until the store has confirmed their end. A repeat that comes here is
// answered by them, whatever the store thinks of a lease that could not be renewed.
var held = holds{all: make(map[holdName]*Hold)}

// waiting is how many bytes of answers wait for their stores to be back.
var waiting atomic.Int64

// maxWaiting bounds them. Beyond it only the status of an answer waits: a repeat is told that it was done.
const maxWaiting = 64 << 20

// keeping is how many bytes of answers are held back while they come, beyond those that each may have.
var keeping atomic.Int64

// Each answer may have freely as many bytes as are common; all together no more than maxKeeping beyond that.
const (
	freely     = 64 << 10
	maxKeeping = 64 << 20
)

// Grow asks whether an answer that is kept in memory may grow from so many bytes to so many. If not, it is treated as
// one that is too large to be stored: it is recorded that the request was done, and the answer passes as it comes.
func (h *Hold) Grow(from, to int) bool {
	more := int64(max(to, freely) - max(from, freely))
	if more <= 0 {
		return true
	}
	if keeping.Add(more) > maxKeeping {
		keeping.Add(-more)
		return false
	}
	h.grown += more
	return true
}

// Shrink reports that the answer is not in memory any more, or waits for the store in the background.
func (h *Hold) Shrink() {
	keeping.Add(-h.grown)
	h.grown = 0
}

type holds struct {
	mu  sync.Mutex // guards all
	all map[holdName]*Hold
}

type holdName struct {
	gate *inbound.Gate
	key  string
}

func (s *holds) find(h *Hold) *Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[holdName{h.Gate, h.Key}]
}

func (s *holds) add(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[holdName{h.Gate, h.Key}] = h
}

func (s *holds) remove(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name := (holdName{h.Gate, h.Key}); s.all[name] == h {
		delete(s.all, name)
	}
}

// one is any of them, nil if there is none.
func (s *holds) one() *Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.all {
		return h
	}
	return nil
}

// repeated answers a repeat of the hold's request. It is not known when the store has the last word: another try has
// taken over, or the request may be done again.
func (h *Hold) repeated(fp idempotency.Fingerprint, limit time.Duration) (b idempotency.Begun, known bool) {
	if fp != h.fp {
		return idempotency.Begun{State: idempotency.Mismatch}, true
	}
	h.mu.Lock()
	ended := h.ended
	h.mu.Unlock()
	fate := h.Fate()
	if ended {
		fate = h.wait(min(limit, h.Config.Lease/10)) // it has a place at the gate meanwhile
	}
	running := idempotency.Begun{State: idempotency.Running, Lease: h.Config.Lease}
	switch {
	case fate == idempotency.Lost || fate == idempotency.LetGo:
		return b, false
	case !ended:
		return running, true
	case fate == idempotency.Undecided && !h.open():
		return running, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return idempotency.Begun{State: idempotency.Replay, Response: h.answer}, true
}

// keepLess bounds what answers take that wait for the store.
func (h *Hold) keepLess() {
	h.mu.Lock()
	defer h.mu.Unlock()
	size := int64(len(h.answer.Body))
	for _, f := range h.answer.Header {
		size += int64(len(f.Name) + len(f.Value))
	}
	if task, _ := h.machine.Next(); task == idempotency.Over {
		return
	}
	if waiting.Add(size) > maxWaiting {
		waiting.Add(-size)
		h.answer = idempotency.Response{Status: h.answer.Status, Truncated: true}
		return
	}
	h.counted = size
}

// Drain waits until all that is done under idempotency keys in this process has ended and is recorded, or ctx is
// over, whose error it returns then. A server that has shut down may have left a run behind: those of HTTP/2 wait for
// streams, and a client that has left has none any more. What is not recorded by the end of the process looks like a
// crash to the next try.
func Drain(ctx context.Context) error {
	for h := held.one(); h != nil; h = held.one() {
		if err := h.waitFor(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hold) waitFor(ctx context.Context) error {
	h.mu.Lock()
	if task, _ := h.machine.Next(); task == idempotency.Over {
		h.mu.Unlock()
		return nil
	}
	if h.gone == nil {
		h.gone = make(chan struct{})
	}
	gone := h.gone
	h.mu.Unlock()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
