package kafkadrill

import (
	"sync"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// tick is the width of a bin: what is busiest is looked for in steps of it.
const tick = 100 * time.Millisecond

// bin is what happened within a tick.
type bin struct{ written, attempts, deliveries, handled, dead int }

// recorder counts what happens in one act. It is safe for concurrent use.
type recorder struct {
	mu       sync.Mutex
	since    func() time.Duration
	bins     []bin
	writes   map[string]time.Duration // by the message's ID: when it was written
	handled  map[string]int
	dead     map[string]bool
	lastDone map[string]time.Duration
	lateness time.Duration // the largest
}

func newRecorder(since func() time.Duration) *recorder {
	return &recorder{
		since: since, writes: map[string]time.Duration{}, handled: map[string]int{}, dead: map[string]bool{},
		lastDone: map[string]time.Duration{},
	}
}

// now is the bin of this moment, and the moment. The caller holds the lock.
func (r *recorder) now() (*bin, time.Duration) {
	since := max(r.since(), 0)
	for i := int(since / tick); i >= len(r.bins); {
		r.bins = append(r.bins, bin{})
	}
	return &r.bins[since/tick], since
}

// wrote notes that a message was acknowledged by its topic.
func (r *recorder) wrote(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, now := r.now()
	b.written++
	r.writes[id] = now
}

func (r *recorder) attempt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, _ := r.now()
	b.attempts++
}

func (r *recorder) ok(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, now := r.now()
	if r.handled[id]++; r.handled[id] == 1 {
		b.handled++
	}
	r.lastDone[id] = now
}

// buried notes that a message is a dead letter.
func (r *recorder) buried(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, now := r.now()
	if !r.dead[id] {
		b.dead++
	}
	r.dead[id] = true
	r.lastDone[id] = now
}

// ObserveRedelivery counts deliveries, and how late they are.
func (r *recorder) ObserveRedelivery(e redelivery.Event) {
	if e.Kind != redelivery.Delivered {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b, _ := r.now()
	b.deliveries++
	r.lateness = max(r.lateness, e.Lateness)
}

// left is how many messages are written and not done.
func (r *recorder) left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sumOf(r.bins).written - len(r.lastDone)
}

// lastSecond adds up the bins of the second that is just over.
func (r *recorder) lastSecond() bin {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, now := r.now()
	end := int(now / tick)
	return sumOf(r.bins[max(end-int(time.Second/tick), 0):end])
}

func sumOf(bins []bin) (sum bin) {
	for _, b := range bins {
		sum.written += b.written
		sum.attempts += b.attempts
		sum.deliveries += b.deliveries
		sum.handled += b.handled
		sum.dead += b.dead
	}
	return sum
}
