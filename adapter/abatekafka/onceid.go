package abatekafka

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

// eventID is what a message is recognised by.
type eventID struct {
	key         string // with a mark of its kind, so that no event can be called like a record
	text        string // as people know it
	topic       string // that the key belongs to
	fingerprint idempotency.Fingerprint
	problem     error // why it is the message's own ID instead of an event's; nil if that was not asked for
}

func (d *Deduper) eventOf(m *Message) eventID {
	id := eventID{}
	if d.Header != "" {
		id.text = lastHeader(m, d.Header)
	}
	if id.text == "" && d.Field != "" {
		id.text, id.problem = field(m.Value, d.Field)
	}
	if id.text == "" {
		if d.Header != "" {
			id.problem = errors.Join(fmt.Errorf("it has no header %q with an id", d.Header), id.problem)
		}
		id.text = m.ID()
		id.key, id.topic = "record "+id.text, m.Identity().At.Topic
		return id
	}
	id.key, id.topic, id.problem = "event "+id.text, m.Topic, nil
	if !d.TrustIDs {
		id.fingerprint = idempotency.FingerprintOf("", "", m.Value)
	}
	return id
}

// lastHeader is the last of a name, as with all headers that somebody may have added to.
func lastHeader(m *Message, name string) string {
	for i := len(m.Headers) - 1; i >= 0; i-- {
		if m.Headers[i].Key == name {
			return string(m.Headers[i].Value)
		}
	}
	return ""
}

// field reads a string or a number from a JSON object. path has the names on the way, with dots between them.
func field(value []byte, path string) (string, error) {
	at := json.RawMessage(value)
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(at, &object); err != nil {
			return "", fmt.Errorf("its value has no field %q: %w", path, err)
		}
		if at = object[name]; at == nil {
			return "", fmt.Errorf("its value has no field %q", path)
		}
	}
	var text string
	if at[0] == '"' {
		if err := json.Unmarshal(at, &text); err != nil {
			return "", fmt.Errorf("the field %q of its value: %w", path, err)
		}
	} else if c := at[0]; c == '-' || c >= '0' && c <= '9' {
		text = string(at)
	}
	if text == "" {
		return "", fmt.Errorf("the field %q of its value is empty, or neither a string nor a number", path)
	}
	return text, nil
}

// busyError refuses a delivery before anything was attempted: come again.
type busyError struct {
	wait time.Duration // until then it is of no use; 0 when that is not known
	err  error
}

func (e *busyError) Error() string { return "once: " + e.err.Error() }
func (e *busyError) Unwrap() error { return e.err }

// Class is for what is shown of errors by class.
func (e *busyError) Class() string { return "once-busy" }

// refusedFor reports whether err means that the message was not delivered, because another delivery of it is running or
// the store of handled messages is away: to be held, not counted. wait is how long that lasts; 0 when it is not known.
func refusedFor(err error) (wait time.Duration, refused bool) {
	var busy *busyError
	if errors.As(err, &busy) {
		return busy.wait, true
	}
	return 0, false
}

// reusedIDError is a message whose id belongs to another event. No other delivery fixes that.
type reusedIDError struct{ id, message string }

func (e *reusedIDError) Error() string {
	return fmt.Sprintf("once: the event id %.200q of %s belongs to a message with another value, "+
		"which was handled or is being handled: give each event its own id, or set Deduper.TrustIDs "+
		"if such messages are the same event", e.id, e.message)
}

// Class is for what is shown of errors by class.
func (e *reusedIDError) Class() string { return "event-id-reused" }

// reused reports whether err is a message with the id of another event: a permanent failure.
func reused(err error) bool {
	var e *reusedIDError
	return errors.As(err, &e)
}
