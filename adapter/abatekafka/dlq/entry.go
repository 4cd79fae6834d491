package dlq

import (
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Entry is one dead letter: where it stands in the dead-letter topic, and what it says.
type Entry struct {
	At      letter.Place
	Written time.Time // the record's own timestamp
	// Purge is when the topic's retention may take it. Zero: never, or not known.
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
