package httpdrill

import (
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// Recorder notes what happens in an act, in the record of a run of the simulator: the same numbers, with the same
// meaning. Times are since the end of the warm-up; what happens before it, or after the end, is in no bin and no
// window. It is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	record *engine.Record
	peaks  []peak               // of the services
	since  func() time.Duration // the time of the act

	failed         engine.Histogram // how long requests took that were made to their end, in vain
	late           time.Duration
	memory         [outside + 1]uint64 // most in use, by window
	sampled        int                 // bins whose limit is known
	breakerRefused int                 // requests
	budgetRefused  int                 // retries
	circuits       drill.Circuits      // of the clients' guards, as they are now
}

// peak counts attempts in steps of 10 ms.
type peak struct {
	slot  time.Duration
	count uint32
}

const peakWidth = 10 * time.Millisecond

// outside is the window of what is not measured.
const outside = engine.After + 1

// NewRecorder returns the recorder of an act whose time since tells.
func NewRecorder(s *scenario.Scenario, v *scenario.Variant, seed uint64, since func() time.Duration) *Recorder {
	record := engine.Empty(s, v, seed)
	return &Recorder{record: record, peaks: make([]peak, len(record.Services)), since: since}
}

// bin returns the number of the bin and the window of a time; false when it is not measured.
func (r *Recorder) bin(at time.Duration) (bin int, w engine.Window, ok bool) {
	if at < 0 || at >= r.record.Duration {
		return 0, outside, false
	}
	return int(at / r.record.Bin), r.record.WindowAt(at), true
}

// Offered notes a request that was due at the time due and got under way at now.
func (r *Recorder) Offered(due, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = max(r.late, now-due)
	if b, _, ok := r.bin(now); ok {
		r.record.Fleets[0].Offered[b]++
	}
}

// Ended notes how a request ended now that began at a time.
func (r *Recorder) Ended(began, now time.Duration, end engine.EndKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &r.record.Fleets[0]
	first, window, measured := r.bin(began)
	count := func(series []uint32) {
		if b, _, ok := r.bin(now); ok {
			series[b]++
		}
	}
	switch end {
	case engine.Answered:
		count(f.Answered)
		f.Latency[window].Add(int64(now - began))
		if measured {
			f.Good[first]++
		}
	case engine.CircuitOpen, engine.BulkheadFull:
		count(f.Refused)
	case engine.Unanswered: // somebody stopped it
	default:
		count(f.Failed)
		if measured {
			r.failed.Add(int64(now - began))
		}
	}
	if measured {
		f.Ends[end]++
	}
}

// Attempt notes an attempt on its way to a service.
func (r *Recorder) Attempt(service int, now time.Duration, retry bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, w, ok := r.bin(now)
	if !ok {
		return
	}
	s := &r.record.Services[service]
	s.Arrived[b]++
	if retry {
		s.Retries[b]++
	}
	p := &r.peaks[service]
	if slot := now / peakWidth; slot != p.slot {
		*p = peak{slot: slot}
	}
	p.count++
	s.Peak[w] = max(s.Peak[w], p.count)
}

// Rejected notes an attempt that a service refused.
func (r *Recorder) Rejected(service int, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, _, ok := r.bin(now); ok {
		r.record.Services[service].Rejected[b]++
	}
}

// Waiting notes how many requests wait in a service's queue, now that one more does.
func (r *Recorder) Waiting(service int, now time.Duration, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, _, ok := r.bin(now); ok {
		s := &r.record.Services[service]
		s.Longest[b] = max(s.Longest[b], uint32(n))
	}
}

// Waited notes how long a request has waited that a worker takes up now.
func (r *Recorder) Waited(service int, now, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.record.Services[service]
	b, w, ok := r.bin(now)
	s.Wait[w].Add(int64(wait))
	if ok {
		s.WaitNS[b] += int64(wait)
		s.Waits[b]++
	}
}

// Worked notes that a worker is free again that was held for so long: wasted, if the caller has left.
func (r *Recorder) Worked(service int, now, held time.Duration, wasted bool, end engine.EndKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, _, ok := r.bin(now)
	if !ok {
		return
	}
	s := &r.record.Services[service]
	s.WorkNS[b] += int64(held)
	switch {
	case wasted:
		s.Wasted[b]++
		s.WasteNS[b] += int64(held)
	case end == engine.Answered:
		s.Served[b]++
	default:
		s.Errors[b]++
	}
}

// Observe counts what the clients' guards say no to: an answer with an error status does not tell why it was the last
// attempt's.
func (r *Recorder) Observe(e abate.Event) {
	if e.Kind != core.BreakerChanged && (e.Kind != core.CallEnded || e.Reason == nil) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Kind == core.BreakerChanged { // also before and after what is measured: it says how things stand
		r.circuits.Add(e.From.String(), -1)
		r.circuits.Add(e.To.String(), 1)
		return
	}
	if _, _, ok := r.bin(r.since()); !ok {
		return
	}
	switch {
	case e.Reason == abate.ErrBudgetExhausted:
		r.budgetRefused++
	case e.Reason == abate.ErrCircuitOpen && e.Attempt == 0:
		r.breakerRefused++
	}
}

// Between adds up the bins that begin within from..to, for the one who watches. The circuits are as they are now.
func (r *Recorder) Between(service int, from, to time.Duration) drill.Second {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, s := &r.record.Fleets[0], &r.record.Services[service]
	first, behind := int(max(from, 0)/r.record.Bin), min(int(max(to, 0)/r.record.Bin), len(f.Offered))
	return drill.Second{
		Offered: total(f.Offered, first, behind), Answered: total(f.Answered, first, behind),
		Refused: total(f.Refused, first, behind), Attempts: total(s.Arrived, first, behind),
		Extra: total(s.Retries, first, behind), Circuits: r.circuits,
	}
}

// total adds up the bins from..to of a series.
func total(series []uint32, from, to int) int {
	sum := 0
	for _, n := range series[min(from, len(series)):max(min(to, len(series)), min(from, len(series)))] {
		sum += int(n)
	}
	return sum
}
