package dlq

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// For the tests of this package.
var (
	Pattern      = pattern
	TracePattern = tracePattern
)

// Ramp is the plan of batches.
type Ramp = ramp

// NewRamp makes one.
func NewRamp(limit float64) *Ramp { return &ramp{limit: limit} }

// The methods of a Ramp.
func (r *ramp) Begin() int               { return r.begin() }
func (r *ramp) Count(n int) bool         { return r.count(n) }
func (r *ramp) Again(now bool)           { r.failed(now) }
func (r *ramp) Hopeless() (string, bool) { return r.hopeless() }
func (r *ramp) Verdict() (string, bool)  { return r.verdict() }

// Outlook follows letters of one group in partition 0 of one topic.
type Outlook struct{ *outlook }

// NewOutlook begins to wait at a moment, for a letter at an offset.
func NewOutlook(offset int64, now time.Time) Outlook {
	o := Outlook{newOutlook()}
	o.sent(spot{0, 0}, landed{topic: "payments", offset: offset, group: "billing"})
	o.begin(now)
	return o
}

// Committed takes what the group has committed, and returns when its commits moved last and how many letters wait.
func (o Outlook) Committed(offset int64, now time.Time) (moved time.Time, waiting int) {
	o.committed(lane{"billing", "payments", 0}, offset, now)
	o.settle()
	return o.moved, o.waiting(nil)
}

// ETA is how long it takes.
func (o Outlook) ETA(now time.Time) (time.Duration, bool) { return o.eta(now) }

// Ledger folds the audit.
type Ledger = ledger

// NewLedger makes one.
func NewLedger(topic string) *Ledger { return newLedger(topic) }

// Fold takes a record, Held reports whether a session may go on.
func (l *ledger) Fold(a *Action)                         { l.fold(a) }
func (l *ledger) Held(id, session string) (bool, string) { return l.holds(id, session) }
func (l *ledger) Called(id string)                       { l.called(id) }
func (l *ledger) Active() string                         { return l.holding() }
func (l *ledger) Tell(e *Entry)                          { l.tell(e) }
func (l *ledger) Sent(id string, partition int32, o int64) bool {
	return l.sent(id, spot{partition, o})
}

// Twin makes an entry one of the records of a letter.
func (e *Entry) Twin(hex string) *Entry {
	e.twin = parseTwin(hex)
	return e
}

// Prune forgets letters of partition 0 before an offset.
func (l *ledger) Prune(from int64) { l.prune(map[int32]span{0: {from: from}}, time.Time{}, 0) }

// CheckLines reads all lines of an import.
var CheckLines = checkLines

// ReadLine makes the record that an import writes.
func ReadLine(text []byte, topic string) (*kgo.Record, error) {
	l, err := parseLine(text)
	if err != nil {
		return nil, err
	}
	return l.record(topic, "import-1"), nil
}

// Draw counts the arrivals of two groups.
func Draw(a, b []time.Time) (counts, more []int) {
	list := make([]Group, 2)
	for i, times := range [][]time.Time{a, b} {
		g := &list[i]
		*g = Group{Topics: map[string]int{}, States: map[State]int{}, First: times[0]}
		for _, t := range times {
			g.add(&Entry{Written: t})
		}
	}
	draw(list)
	return list[0].Arrivals, list[1].Arrivals
}
