package drill

import (
	"slices"
	"sync"
	"time"

	"github.com/abate-go/abate"
)

// fineBin is the resolution of the record, and so of the time to recovery.
const fineBin = 100 * time.Millisecond

// Ending is how a call ended, as far as the caller could tell.
type Ending int

// The endings of a call. A call that failed after several attempts has the ending of its last attempt.
const (
	Answered      Ending = iota // with success, in time
	AnsweredLate                // with success, but the attempt took longer than the attempt timeout of Config
	RefusedEarly                // by the guard, without any attempt
	TimedOut                    // no answer within the attempt timeout
	QueueFull                   // 503
	DatabaseError               // 504
	OtherAnswer                 // any other status
	NoConnection                // the connection failed
	Unanswered                  // the act ended first
	endings
)

var endingNames = [...]string{"answered", "answeredTooLate", "refusedEarly", "timedOut", "queueFull", "databaseError", "otherAnswer", "noConnection", "unanswered"}

// String returns the name used in JSON.
func (e Ending) String() string { return endingNames[e] }

// failed tells whether the call was made to its end, in vain.
func (e Ending) failed() bool { return e >= TimedOut && e < Unanswered }

// Bin is what happened in one stretch of time.
type Bin struct {
	Offered  int // requests that arrived at the clients
	Attempts int // requests that were sent to the service
	Answered int // calls that ended with success, in time
	Late     int // calls that ended with success, too late
	Refused  int // calls that the guard refused without an attempt
	Failed   int // calls that ended in any other way
}

func (b *Bin) add(o Bin) {
	b.Offered += o.Offered
	b.Attempts += o.Attempts
	b.Answered += o.Answered
	b.Late += o.Late
	b.Refused += o.Refused
	b.Failed += o.Failed
}

// call is one finished call.
type call struct {
	end    time.Duration
	took   time.Duration
	ending Ending
}

// Recorder notes what happens in an act. Times are since the act's begin. It is safe for concurrent use.
type Recorder struct {
	mu       sync.Mutex
	bins     []Bin
	begins   []time.Duration // of all requests offered; in order once sorted
	attempts int
	late     time.Duration
	calls    []call

	breakerRefused int // requests
	budgetRefused  int // retries
}

// NewRecorder returns a recorder for an act of the given length. What happens later counts in the totals, but in no bin.
func NewRecorder(length time.Duration) *Recorder {
	return &Recorder{bins: make([]Bin, (length+fineBin-1)/fineBin)}
}

// bin returns the bin for a time; a spare one when the act is over.
func (r *Recorder) bin(at time.Duration) *Bin {
	if i := int(at / fineBin); i >= 0 && i < len(r.bins) {
		return &r.bins[i]
	}
	return new(Bin)
}

// Offered notes a request that was due at the time due and got under way at now.
func (r *Recorder) Offered(due, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begins = append(r.begins, now)
	r.late = max(r.late, now-due)
	r.bin(now).Offered++
}

// Attempt notes a request on its way to the service.
func (r *Recorder) Attempt(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts++
	r.bin(now).Attempts++
}

// Ended notes the end of a call that took so long.
func (r *Recorder) Ended(now, took time.Duration, e Ending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call{end: now, took: took, ending: e})
	switch b := r.bin(now); e {
	case Answered:
		b.Answered++
	case AnsweredLate:
		b.Late++
	case RefusedEarly:
		b.Refused++
	default:
		b.Failed++
	}
}

// Observe counts what the guards say no to: an answer with an error status does not tell why it was the last attempt's.
func (r *Recorder) Observe(e abate.Event) {
	if e.Kind != abate.CallEnded || e.Reason == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case e.Reason == abate.ErrBudgetExhausted:
		r.budgetRefused++
	case e.Reason == abate.ErrCircuitOpen && e.Attempt == 0:
		r.breakerRefused++
	}
}

// arrivals returns how many requests arrived within a stretch of time. Nothing may be recorded any more.
func (r *Recorder) arrivals() func(from, to time.Duration) int {
	slices.Sort(r.begins)
	return func(from, to time.Duration) int {
		first, _ := slices.BinarySearch(r.begins, from)
		behind, _ := slices.BinarySearch(r.begins, to)
		return behind - first
	}
}

// Sum adds up the bins that lie within from..to.
func (r *Recorder) Sum(from, to time.Duration) Bin {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sum(r.bins, from, to)
}

// sum adds up the fine bins that begin within from..to.
func sum(bins []Bin, from, to time.Duration) Bin {
	var total Bin
	for i, b := range bins {
		if at := time.Duration(i) * fineBin; at >= from && at < to {
			total.add(b)
		}
	}
	return total
}
