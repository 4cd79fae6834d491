package letter

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Dialect is a way to write headers.
type Dialect string

// The dialects. None is a record without any such header.
const (
	None    Dialect = ""
	Abate   Dialect = "abate"
	Spring  Dialect = "spring"
	Connect Dialect = "connect"
	Streams Dialect = "streams"
	Share   Dialect = "share"
)

// Letter is everything known about a message that failed. Fields a dialect does not have are zero; Partition and Offset
// are -1.
type Letter struct {
	Dialect Dialect
	// Original is where the message came from; Timestamp and TimestampType (CreateTime, LogAppendTime, NoTimestampType)
	// are its own.
	Original      Place
	Timestamp     time.Time
	TimestampType string
	// Identity is the message's, the same for its whole life. Original is another place after a replay, which writes a
	// new record.
	Identity Identity
	// Group failed at it.
	Group string
	// Failures is how many deliveries have failed; Delivery the number of the next one.
	Failures, Delivery int
	First, Last        time.Time
	// Due is when it is to be delivered again; zero on a dead letter. Read Wait before trusting it.
	Due time.Time
	// ID is the identity of this very forward: whoever sees it twice in one topic has the same record twice, written by
	// two lives of one consumer. Hops counts the forwards by Abate, those that do not count as failures included.
	ID   string
	Hops int
	// Class is the class of the last error, Message its text, Trace its stack. Written, they are bounded: MaxClass,
	// MaxMessage, MaxTrace.
	Class, Message, Trace string
	// Reason is why it came here: exhausted, permanent, ...
	Reason string
	// History are the failures in Go, this one included, the oldest first. Written, it is bounded: the newest that fit
	// MaxHistory.
	History []Past
	// Replays is how often it was replayed from a dead-letter topic; ReplayedFrom where it stood the last time.
	Replays      int
	ReplayedFrom Place
	// Imported is the ID of the import that wrote the dead letter. Two imports of one line are two letters.
	Imported string
	// Pointer reports that the value was too large to be forwarded, or never copied: it is still at Original, until that
	// topic's retention.
	Pointer bool
	// Key, Value and Headers are those of the original record, byte for byte. They are shared with the record that was
	// read.
	Key, Value []byte
	Headers    []kgo.RecordHeader
}
