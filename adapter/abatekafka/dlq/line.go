package dlq

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Bytes is a key, a value or a header's value in JSON: {"text": "..."} if it is UTF-8, else {"base64": "..."}; null is
// nil, which Kafka tells from an empty one.
type Bytes []byte

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) {
	switch {
	case b == nil:
		return []byte("null"), nil
	case utf8.Valid(b):
		return plainJSON(map[string]string{"text": string(b)})
	}
	return plainJSON(map[string][]byte{"base64": b})
}

// UnmarshalJSON implements json.Unmarshaler. Text that is neither is an error.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	if string(bytes.TrimSpace(data)) == "null" {
		*b = nil
		return nil
	}
	var v map[string]string
	if err := json.Unmarshal(data, &v); err != nil || len(v) != 1 {
		return errors.New(`bytes are {"text": "..."}, {"base64": "..."} or null`)
	}
	if text, ok := v["text"]; ok {
		*b = Bytes(text)
		return nil
	}
	text, ok := v["base64"]
	if !ok {
		return errors.New(`bytes are {"text": "..."}, {"base64": "..."} or null`)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf(`bytes are {"text": "..."}, {"base64": "..."} or null: %w`, err)
	}
	*b = Bytes(append([]byte{}, raw...))
	return nil
}

// plainJSON does not write < as \u003c: people read it.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// LineHeader is a header of a Line. KeyBase64 is its key if that is not UTF-8.
type LineHeader struct {
	Key       string `json:"key"`
	KeyBase64 []byte `json:"keyBase64,omitempty"`
	Value     Bytes  `json:"value"`
}

// Line is an Entry in JSON, as Export writes it, one in a line. Key, Value and Headers are the record's as it stands in
// the dead-letter topic: Import writes them, and only them, byte for byte, and says in one more header that it did: two
// imports of a line are two letters. All else is for people.
type Line struct {
	At       string       `json:"at"`
	Written  time.Time    `json:"written"`
	State    State        `json:"state"`
	Group    string       `json:"group"`
	Letter   LineLetter   `json:"letter"`
	Key      Bytes        `json:"key"`
	Value    Bytes        `json:"value"`
	Headers  []LineHeader `json:"headers"`
	Problems []string     `json:"problems,omitempty"`
}

// LineLetter is what a Line says of the failure.
type LineLetter struct {
	Dialect       letter.Dialect `json:"dialect"`
	Original      string         `json:"original,omitempty"`
	Identity      string         `json:"identity,omitempty"` // the same for the message's whole life
	Timestamp     time.Time      `json:"timestamp,omitzero"`
	TimestampType string         `json:"timestampType,omitempty"`
	Group         string         `json:"group,omitempty"` // of consumers
	Failures      int            `json:"failures"`
	First         time.Time      `json:"first,omitzero"`
	Last          time.Time      `json:"last,omitzero"`
	Class         string         `json:"class,omitempty"`
	Message       string         `json:"message,omitempty"`
	Trace         string         `json:"trace,omitempty"`
	Reason        string         `json:"reason,omitempty"`
	History       []LinePast     `json:"history,omitempty"`
	Replays       int            `json:"replays,omitempty"`
	ReplayedFrom  string         `json:"replayedFrom,omitempty"`
	Pointer       bool           `json:"pointer,omitempty"`
}

// LinePast is an earlier failure in a LineLetter.
type LinePast struct {
	Topic string    `json:"topic"`
	At    time.Time `json:"at"`
	Class string    `json:"class"`
}

// NewLine makes the Line of an entry. It shares its bytes.
func NewLine(e *Entry) Line {
	l := &e.Letter
	line := Line{
		At: e.At.String(), Written: e.Written.UTC(), State: e.State, Group: e.Group, Key: Bytes(e.Record.Key),
		Value: Bytes(e.Record.Value), Headers: []LineHeader{},
		Letter: LineLetter{
			Dialect: l.Dialect, Original: known(l.Original), Identity: identityText(l),
			Timestamp: l.Timestamp, TimestampType: l.TimestampType,
			Group: l.Group, Failures: l.Failures, First: l.First, Last: l.Last,
			Class: l.Class, Message: l.Message, Trace: l.Trace, Reason: l.Reason, Replays: l.Replays,
			ReplayedFrom: known(l.ReplayedFrom), Pointer: l.Pointer,
		},
	}
	for _, p := range l.History {
		line.Letter.History = append(line.Letter.History, LinePast{Topic: p.Topic, At: p.At, Class: p.Class})
	}
	for _, h := range e.Record.Headers {
		lh := LineHeader{Key: h.Key, Value: Bytes(h.Value)}
		if !utf8.ValidString(h.Key) {
			lh.Key, lh.KeyBase64 = "", []byte(h.Key)
		}
		line.Headers = append(line.Headers, lh)
	}
	for _, p := range e.Problems {
		line.Problems = append(line.Problems, p.Error())
	}
	return line
}

// identityText is the identity of the message, or empty if the letter does not say where it came from.
func identityText(l *letter.Letter) string {
	if !l.Identity.Known() {
		return ""
	}
	return l.Identity.String()
}

// known is a place, or empty if it is not one; of a place of which only the topic is known, the topic.
func known(p letter.Place) string {
	if p.Known() {
		return p.String()
	}
	return p.Topic
}

// parseLine reads what Import needs of a line.
func parseLine(text []byte) (*Line, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	for _, name := range []string{"at", "key", "value", "headers"} {
		if _, ok := keys[name]; !ok {
			return nil, fmt.Errorf("it has no %q: a line is what \"abate dlq export\" writes", name)
		}
	}
	line := new(Line)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(line); err != nil {
		return nil, err
	}
	if at, err := letter.ParsePlace(line.At); err != nil {
		return nil, fmt.Errorf("at: %w", err)
	} else if !at.Known() {
		return nil, fmt.Errorf("at: %q is no place", line.At)
	}
	return line, nil
}

// record is what Import writes.
func (l *Line) record(topic, imported string) *kgo.Record {
	at, _ := letter.ParsePlace(l.At) // parseLine has read it
	r := &kgo.Record{Topic: topic, Partition: at.Partition, Key: l.Key, Value: l.Value}
	for _, h := range l.Headers {
		key := h.Key
		if len(h.KeyBase64) > 0 {
			key = string(h.KeyBase64)
		}
		if key != headImported { // of the import before this one
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: h.Value})
		}
	}
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: headImported, Value: []byte(imported)})
	return r
}
