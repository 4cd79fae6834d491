package abateadmin

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// How much is kept of what happens now and then.
const (
	maxNotes  = 256
	maxFaults = 8
	// faultPause is how long an error is the only one that is written down: in a storm most say the same.
	faultPause = 250 * time.Millisecond
	// quietTime is how long a reason must not have been heard to be worth a note again.
	quietTime = 30 * time.Second
)

// note is something worth showing. Open and Half are how many circuits of that name were so after it.
type note struct {
	At         time.Duration
	Text       string
	Change     bool // of a circuit
	Open, Half int
	To         breaker.State
	Why        string // of a Change, as the breaker says it
}

// notes keeps the last ones. They are rare: a lock is fine.
type notes struct {
	mu         sync.Mutex
	ring       []note
	n          int // written ever
	open, half int
}

// add keeps a note.
func (l *notes) add(at time.Duration, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(note{At: at, Text: text})
}

// change keeps what a circuit did. Of guards with one name the open ones are counted.
func (l *notes) change(at time.Duration, from, to breaker.State, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	openFrom, halfFrom := standing(from)
	openTo, halfTo := standing(to)
	l.open, l.half = max(l.open+openTo-openFrom, 0), max(l.half+halfTo-halfFrom, 0)
	text := "circuit " + from.String() + " → " + to.String()
	if from == to {
		text = "circuit " + to.String()
	}
	if why != "" {
		text += ": " + why
	}
	l.put(note{At: at, Text: text, Change: true, Open: l.open, Half: l.half, To: to, Why: why})
}

// leave keeps that a guard with its circuit in that state is no longer shown.
func (l *notes) leave(at time.Duration, in breaker.State) {
	open, half := standing(in)
	if open+half == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.half = max(l.open-open, 0), max(l.half-half, 0)
	l.put(note{At: at, Text: "no longer shown, its circuit was " + in.String(), Change: true, Open: l.open, Half: l.half})
}

// standing reports whether a state counts as open or as on its way back.
func standing(s breaker.State) (open, half int) {
	switch s {
	case breaker.Open:
		return 1, 0
	case breaker.HalfOpen, breaker.RampUp:
		return 0, 1
	}
	return 0, 0
}

// put is add with mu held.
func (l *notes) put(n note) {
	if len(l.ring) < maxNotes {
		l.ring = append(l.ring, n)
	} else {
		l.ring[l.n%maxNotes] = n
	}
	l.n++
}

// list returns all that are kept, the oldest first.
func (l *notes) list() []note {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]note, 0, min(l.n, maxNotes))
	for i := max(l.n-maxNotes, 0); i < l.n; i++ {
		all = append(all, l.ring[i%maxNotes])
	}
	return all
}

// Circuits of a name in one second: none open, some on their way back, some open.
const (
	stripClosed = '0'
	stripHalf   = '1'
	stripOpen   = '2'
)

// strip says for each of the last n complete seconds, the oldest first, what the worst of the circuits was.
func (l *notes) strip(now time.Duration, n int) string {
	mark := func(open, half int) byte {
		switch {
		case open > 0:
			return stripOpen
		case half > 0:
			return stripHalf
		}
		return stripClosed
	}
	all := l.list()
	text := make([]byte, n)
	i, standing := 0, byte(stripClosed)
	end := begin(now)
	for k := range n {
		to := end - time.Duration(n-1-k)*time.Second
		worst := standing
		for ; i < len(all) && all[i].At < to; i++ {
			if !all[i].Change {
				continue
			}
			standing = mark(all[i].Open, all[i].Half)
			if all[i].At >= to-time.Second {
				worst = max(worst, standing)
			} else {
				worst = standing
			}
		}
		text[k] = worst
	}
	return string(text)
}

// fault is an error as it is shown.
type fault struct {
	At    time.Duration
	Class string
	Text  string
}

// faults keeps a few errors that differ.
type faults struct {
	last atomic.Int64 // when one was written down; 0 is never
	mu   sync.Mutex
	list []fault // the newest last
}

// add keeps err, unless another was kept a moment ago: making a text of each would cost more than the attempt.
func (l *faults) add(at time.Duration, class string, err error) {
	last := l.last.Load()
	if last != 0 && recent(at, last, faultPause) || !l.last.CompareAndSwap(last, notZero(at)) {
		return
	}
	text := redact(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, f := range l.list {
		if f.Text == text && f.Class == class {
			l.list = append(l.list[:i], l.list[i+1:]...)
			break
		}
	}
	if len(l.list) == maxFaults {
		l.list = append(l.list[:0], l.list[1:]...)
	}
	l.list = append(l.list, fault{at, class, text})
}

// all returns those that are kept, the newest first.
func (l *faults) all() []fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]fault, 0, len(l.list))
	for i := len(l.list) - 1; i >= 0; i-- {
		all = append(all, l.list[i])
	}
	return all
}

// lastChange is when a circuit changed last.
func (l *notes) lastChange() (time.Duration, bool) {
	all := l.list()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Change {
			return all[i].At, true
		}
	}
	return 0, false
}

// lastOpening is why a circuit opened last, as the breaker said it; "" if that is not remembered.
func (l *notes) lastOpening() string {
	all := l.list()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Change && all[i].To == breaker.Open {
			return all[i].Why
		}
	}
	return ""
}

// recent reports whether last was not long before at, or after it: clocks of others may be a moment ahead.
func recent(at time.Duration, last int64, long time.Duration) bool {
	since := at - time.Duration(last)
	return since < long && since > -long
}

// notZero is at, for places where 0 stands for never: a nanosecond is of no matter.
func notZero(at time.Duration) int64 {
	if at == 0 {
		return 1
	}
	return int64(at)
}
