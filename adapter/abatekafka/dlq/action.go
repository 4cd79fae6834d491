package dlq

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// Action is one audit record: what somebody did. It is written as JSON.
type Action struct {
	// Offset is where the record stands in the audit topic. It is not part of the JSON that is written.
	Offset int64 `json:"-"`
	// Time is the audit record's own timestamp.
	Time time.Time `json:"time"`
	By   string    `json:"by"`
	Kind Kind      `json:"action"`
	// ID is that of the replay, the import or the edit.
	ID string `json:"id,omitempty"`
	// Session is the one run of a replay that wrote this: a replay that is resumed has another.
	Session string `json:"session,omitempty"`
	// TakeOver begins a replay although another seems to run.
	TakeOver bool `json:"takeOver,omitempty"`
	// Place is the dead letter that it is about, payments-dlq/3/1042; empty for what is about more than one. TopicID is
	// Kafka's ID of that topic: one that is deleted and created again has other letters at the same places.
	Place   string `json:"place,omitempty"`
	TopicID string `json:"topicId,omitempty"`
	// Twin is what all records of that letter have in common, in hex: a crash may have written it more than once.
	Twin string `json:"twin,omitempty"`
	// To is where it was sent, payments/3/2077.
	To string `json:"to,omitempty"`
	// ToTopicID is Kafka's ID of that topic: in one that was made anew, nothing that was sent is there.
	ToTopicID string `json:"toTopicId,omitempty"`
	// Reader is the consumer group that is to read it there; empty for any.
	Reader string `json:"reader,omitempty"`
	// Group is the ID of the group that a note is about.
	Group string `json:"group,omitempty"`
	// Text is a note, or the reason of a stop.
	Text string `json:"text,omitempty"`
	// Count is how many letters it was about.
	Count int `json:"count,omitempty"`
	// Hash is that of the lines of an import, SHA-256, in hex.
	Hash string `json:"hash,omitempty"`
	// Spec is what a replay was asked to do.
	Spec *Spec `json:"spec,omitempty"`
	// Watched is where a replay began to look for messages that fail again, by topic and partition: its first sign of
	// life says so.
	Watched map[string]map[int32]int64 `json:"watched,omitempty"`
	// Progress is how far a replay was.
	Progress *Progress `json:"progress,omitempty"`
}

// Kind is a kind of action.
type Kind string

// The kinds. One ReplayStart, ReplayAlive, ReplayStop or Cancel speaks of a whole replay; Sent, Delete, Restore and
// Edited of one letter.
const (
	ReplayStart Kind = "replay-start"
	ReplayAlive Kind = "replay-alive"
	ReplayStop  Kind = "replay-stop"
	Sent        Kind = "replayed"
	CancelAsked Kind = "cancel"
	Delete      Kind = "delete"
	Restore     Kind = "restore"
	Edited      Kind = "edit"
	Imported    Kind = "import"
	Noted       Kind = "note"
)

// Spec is a replay as the audit keeps it, so that it can be resumed by its ID.
type Spec struct {
	Filter      Filter        `json:"filter"`
	To          string        `json:"to,omitempty"`
	Rate        float64       `json:"rate"`
	Settle      time.Duration `json:"settle"`
	MaxFailures float64       `json:"maxFailures"`
	MaxReplays  int           `json:"maxReplays"`
	Watch       []string      `json:"watch,omitempty"`
	Reader      string        `json:"reader,omitempty"`
	Patience    time.Duration `json:"patience,omitempty"`
	Unjudged    bool          `json:"unjudged,omitempty"`
	// Ends are the end offsets of the dead-letter topic's partitions when it began: what came later is not part of it.
	Ends map[int32]int64 `json:"ends"`
}

func (a *Action) line() []byte {
	b, err := json.Marshal(a)
	if err != nil { // every field can be marshalled
		panic(err)
	}
	return b
}

func parseLanded(text string) (landed, error) {
	p, err := letter.ParsePlace(text)
	return landed{topic: p.Topic, partition: p.Partition, offset: p.Offset}, err
}

// ParsePlace reads "3/1042", a partition and an offset of topic, or the same with the topic in front, which must then
// be this one.
func ParsePlace(topic, text string) (letter.Place, error) {
	rest := strings.TrimPrefix(text, topic+"/")
	first, second, ok := strings.Cut(rest, "/")
	partition, err := strconv.ParseInt(first, 10, 32)
	offset, err2 := strconv.ParseInt(second, 10, 64)
	if !ok || err != nil || err2 != nil || partition < 0 || offset < 0 {
		return letter.Place{}, fmt.Errorf("%q is not a place in the dead-letter topic: write partition/offset, for example "+
			"3/1042", text)
	}
	return letter.Place{Topic: topic, Partition: int32(partition), Offset: offset}, nil
}
