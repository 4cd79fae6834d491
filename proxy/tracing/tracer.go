package tracing

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Tracer takes the spans that have ended, and has them sent. It is safe for concurrent use. A nil Tracer records
// nothing.
type Tracer struct {
	sampler Sampler
	most    int // spans in the queue
	batch   int

	mu      sync.Mutex
	queue   []*Span
	closing bool
	full    chan struct{} // there is a batch
	stop    chan struct{} // closed by Close

	stats  stats
	cancel context.CancelFunc // of the sender
	closed chan struct{}      // by the sender
}

// stats count spans.
type stats struct{ sent, overflowed, refused, unwritten atomic.Uint64 }

// Stats is what became of the spans so far.
type Stats struct {
	Sent       uint64 // taken by the collector, or written to the file
	Overflowed uint64 // dropped because the queue was full
	Refused    uint64 // dropped because the collector did not take them
	Unwritten  uint64 // not written to the file
	Queued     int    // waiting
}

// Start begins to send spans as s says; without an endpoint and a file the Tracer is nil. The error says which file
// cannot be read or written. End it with Close.
func Start(s Settings, log *slog.Logger) (*Tracer, error) {
	if !s.Enabled() {
		return nil, nil
	}
	s = s.withDefaults()
	to, err := newSender(s, log)
	if err != nil {
		return nil, err
	}
	t := &Tracer{sampler: s.Sampler, most: s.Queue, batch: s.Batch, full: make(chan struct{}, 1),
		stop: make(chan struct{}), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel, to.stats = cancel, &t.stats
	go t.run(ctx, to, s.Delay)
	return t, nil
}

// Join returns the Context of a call that comes with parent, if has is true, and whether it is recorded: then, and if
// it has no parent, its Span is a new one. trusted reports whether parent's decision counts.
func (t *Tracer) Join(parent Context, has, trusted bool) (own Context, recorded bool) {
	own = Context{Trace: parent.Trace, Span: parent.Span, Flags: parent.Flags &^ Sampled}
	if !has {
		own.Trace, own.Flags = newTrace(), Random
	}
	if recorded = t.sampler.samples(parent, has, trusted, own.Trace); recorded {
		own.Flags |= Sampled
	}
	if recorded || !has {
		own.Span = NewSpan()
	}
	return own, recorded
}

// Send takes a span, which nobody may change any more. It never waits: one that finds the queue full is dropped.
func (t *Tracer) Send(s *Span) {
	t.mu.Lock()
	if t.closing || len(t.queue) >= t.most {
		t.mu.Unlock()
		t.stats.overflowed.Add(1)
		return
	}
	t.queue = append(t.queue, s)
	due := len(t.queue) == t.batch
	t.mu.Unlock()
	if due {
		select {
		case t.full <- struct{}{}:
		default:
		}
	}
}

// Stats returns what became of the spans so far.
func (t *Tracer) Stats() Stats {
	t.mu.Lock()
	n := len(t.queue)
	t.mu.Unlock()
	return Stats{t.stats.sent.Load(), t.stats.overflowed.Load(), t.stats.refused.Load(), t.stats.unwritten.Load(), n}
}

// Close sends what is in the queue, once, and takes nothing more. What has not gone when ctx ends is dropped.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	t.mu.Lock()
	first := !t.closing
	t.closing = true
	t.mu.Unlock()
	if first {
		close(t.stop)
	}
	defer context.AfterFunc(ctx, t.cancel)()
	<-t.closed
	t.cancel()
}

// take takes up to a batch from the queue.
func (t *Tracer) take() (spans []*Span, more, closing bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.queue), t.batch)
	spans = append(spans, t.queue[:n]...)
	left := copy(t.queue, t.queue[n:])
	clear(t.queue[left:])
	t.queue = t.queue[:left]
	return spans, left >= t.batch || t.closing && left > 0, t.closing
}

// ending reports whether Close was called.
func (t *Tracer) ending() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closing
}

// run sends a batch when there is one, and what there is after delay.
func (t *Tracer) run(ctx context.Context, to *sender, delay time.Duration) {
	defer close(t.closed)
	defer to.close()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-t.full:
		case <-t.stop:
		}
		for more, closing := true, false; more; {
			var spans []*Span
			if spans, more, closing = t.take(); len(spans) > 0 {
				to.send(ctx, spans, t.ending)
			}
			if closing && !more {
				return
			}
		}
		timer.Reset(delay)
	}
}
