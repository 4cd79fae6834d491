package dlq

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Entry is one dead letter: where it stands in the dead-letter topic, and what it says.
type Entry struct {
	At letter.Place
	// Written is when: the record's own timestamp, or if that cannot be, when it failed last.
	Written time.Time
	// Purge is when the topic's retention may take it. Zero: never, or not known: a record whose timestamp cannot be
	// may stay for ever, or go at once.
	Purge  time.Time
	Letter letter.Letter
	// Problems are headers that could not be read.
	Problems []error
	// Group is the ID of its Group.
	Group string
	State State
	// Changed is when its state changed last, and By who did that. Zero and empty if it is Waiting and was always.
	Changed time.Time
	By      string
	// Replay is the ID of what changed its state last: a replay, r-..., a deletion or a restoring; empty if nothing did.
	Replay string
	// twin is the letter's, the same for every record that it was written as.
	twin twin
	// Record is the record as it stands in the topic, with all its headers. It is shared: do not change it.
	Record *kgo.Record
}

// State is what became of a dead letter.
type State string

// The states. Any is only for a Filter: it chooses all of them.
const (
	Waiting  State = "waiting"
	Replayed State = "replayed"
	Deleted  State = "deleted"
	Any      State = "any"
)

// States are those that an Entry can have.
var States = []State{Waiting, Replayed, Deleted}

// dated says when the letter was written and when it may go, as far as that can be told. Whoever wrote it may have had
// a clock that was not set, or have counted in microseconds: retention goes by such a timestamp, and nobody knows when
// it acts.
func (e *Entry) dated(retention time.Duration, now time.Time) {
	if !letter.Credible(e.Written, now) {
		e.Problems = append(e.Problems, fmt.Errorf("%s: its timestamp %s cannot be when it was written: when retention "+
			"takes it is not known",
			e.At, e.Written.UTC().Format(time.RFC3339)))
		if letter.Credible(e.Letter.Last, now) {
			e.Written = e.Letter.Last
		}
		return
	}
	if retention > 0 {
		e.Purge = e.Written.Add(retention)
	}
}
