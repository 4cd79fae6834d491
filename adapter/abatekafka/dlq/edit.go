package dlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Change is what Edit changes in a letter.
type Change struct {
	// Value and Key take the place of those of the letter. Nil leaves it as it is.
	Value, Key []byte
	// To is the topic. Empty: the original one.
	To string
}

// Edit sends a changed copy of one letter that waits, and marks the letter as replayed, so that not both are sent. The
// copy is a message of its own: it has an identity of its own, and names the letter in the header abate-edited-from. It
// needs Config.AllowEdit. It returns where the copy stands.
func (d *Desk) Edit(ctx context.Context, at letter.Place, c Change) (letter.Place, error) {
	nowhere := letter.Place{Partition: -1, Offset: -1}
	if !d.config.AllowEdit {
		return nowhere, errors.New("dlq: editing is off: allow it with Config.AllowEdit")
	}
	if c.Value == nil && c.Key == nil {
		return nowhere, errors.New("dlq: nothing is changed: give a new value or key, or use Replay")
	}
	e, err := d.Get(ctx, at.Partition, at.Offset)
	if err != nil {
		return nowhere, err
	}
	if e.State != Waiting {
		return nowhere, fmt.Errorf("dlq: %s is %s already, by %s: restore it first if it shall be sent again", at, e.State,
			e.By)
	}
	if e.Letter.Pointer && (c.Value == nil || c.Key == nil) {
		if err := d.follow(ctx, e); err != nil {
			return nowhere, err
		}
	}
	to := c.To
	if to == "" {
		to = e.Letter.Original.Topic
	}
	switch to {
	case "":
		return nowhere, fmt.Errorf("dlq: %s: %s", at, skipNowhere)
	case d.config.Topic, d.config.Audit:
		return nowhere, fmt.Errorf("dlq: %s would go to %s: that is the dead-letter topic or its audit; give another topic",
			at, to)
	}
	r := outgoing(e, to)
	if c.Value != nil {
		r.Value = c.Value
	}
	if c.Key != nil {
		r.Key, r.Partition = c.Key, -1
	}
	// It is not named: the copy is another message, which nobody shall take for a repeat of the letter.
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: headEditedFrom, Value: []byte(e.At.String())})
	if err := d.audit.create(ctx); err != nil { // before anything is sent
		return nowhere, err
	}
	result := d.alone(ctx, r)
	if result.Err != nil {
		return nowhere, fmt.Errorf("dlq: send the changed copy of %s to %s: %w", at, to, result.Err)
	}
	sent := letter.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
	if err := d.audit.append(context.WithoutCancel(ctx), &Action{Kind: Edited, ID: random("edit-"), Place: e.At.String(),
		Twin: e.twin.String(), To: sent.String()}); err != nil {
		return sent, fmt.Errorf("dlq: the copy was sent to %s, but that could not be noted, so that %s waits still: delete "+
			"it: %w", sent, at, err)
	}
	return sent, nil
}
