package dlq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// audit writes and follows the audit topic. Only its partition 0 counts, so that everybody sees one order.
type audit struct {
	desk *Desk

	mu     sync.Mutex // held while reading: at most one reads
	client *kgo.Client
	next   int64
	closed bool

	creating sync.Mutex
	created  bool
}

// sync folds what has come since the last time. It costs a question for the end, and a read if there is more.
func (a *audit) sync(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.desk
	spans, err := d.bounds(ctx, d.config.Audit)
	if err != nil {
		return err
	}
	s, there := spans[0]
	if !there {
		return nil
	}
	if a.next > s.to { // somebody has deleted the topic, and it was created again
		if a.client != nil {
			a.client.Close()
		}
		a.client, a.next = nil, s.from
	}
	a.next = max(a.next, s.from)
	if a.next >= s.to {
		return nil
	}
	if a.closed {
		return errors.New("dlq: the desk is closed")
	}
	if a.client == nil {
		if a.client, err = d.config.reading(d.config.Audit, []span{{0, a.next, s.to}}); err != nil {
			return fmt.Errorf("dlq: read %s: %w", d.config.Audit, err)
		}
	}
	for a.next < s.to {
		fetches, err := poll(ctx, a.client, d.config.Audit)
		if err != nil {
			a.client.Close() // it may have taken records that were not folded: the next one begins at a.next
			a.client = nil
			return err
		}
		for i := fetches.RecordIter(); !i.Done(); {
			r := i.Next()
			if r.Offset < a.next {
				continue
			}
			if !r.Attrs.IsControl() {
				d.ledger.fold(action(r))
			}
			a.next = r.Offset + 1
		}
	}
	return nil
}

// action reads an audit record. One that is not ours is an Action without a Kind.
func action(r *kgo.Record) *Action {
	a := new(Action)
	if json.Unmarshal(r.Value, a) != nil {
		*a = Action{Text: "a record that is not an audit record"}
	}
	a.Time, a.Offset = r.Timestamp.UTC(), r.Offset
	return a
}

// append writes actions in their order and folds them. They are written when it returns nil; else some may be.
func (a *audit) append(ctx context.Context, actions ...*Action) error {
	if err := a.create(ctx); err != nil {
		return err
	}
	records := make([]*kgo.Record, len(actions))
	for i := range actions {
		records[i] = a.record(ctx, actions[i])
	}
	if err := a.desk.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		if unknownTopic(err) { // somebody has deleted it: the next time it is looked for, or created
			a.forget()
		}
		return fmt.Errorf("dlq: write to the audit topic %s: %w", a.desk.config.Audit, err)
	}
	return a.syncTo(ctx, records[len(records)-1].Offset)
}

// syncTo folds until a record that was written is among what was folded. The client may not know for some 100 ms that a
// topic has been created, and the broker does not show what is behind an open transaction.
func (a *audit) syncTo(ctx context.Context, offset int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second,
		fmt.Errorf("dlq: what was written to the audit topic %s cannot be read within 30 s", a.desk.config.Audit))
	defer cancel()
	for {
		if err := a.sync(ctx); err != nil {
			return err
		}
		a.mu.Lock()
		there := a.next > offset
		a.mu.Unlock()
		if there {
			return nil
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func (a *audit) record(ctx context.Context, act *Action) *kgo.Record {
	act.By = a.desk.by(ctx)
	act.Time = time.Now().UTC()
	if act.Place != "" {
		act.TopicID = a.desk.ledger.topicID()
	}
	r := &kgo.Record{Topic: a.desk.config.Audit, Value: act.line()}
	if act.Place != "" {
		r.Key = []byte(act.Place)
	}
	return r
}

// create creates the audit topic if there is none. The broker stamps its records, so that one clock decides who is
// silent.
func (a *audit) create(ctx context.Context) error {
	a.creating.Lock()
	defer a.creating.Unlock()
	if a.created {
		return nil
	}
	d := a.desk
	topics, err := d.admin.ListTopics(ctx, d.config.Audit)
	if err != nil {
		return fmt.Errorf("dlq: look for the audit topic %s: %w", d.config.Audit, err)
	}
	if topics.Has(d.config.Audit) {
		err := a.remembers(ctx)
		a.created = err == nil
		return err
	}
	text := func(s string) *string { return &s }
	_, err = d.admin.CreateTopic(ctx, 1, -1, map[string]*string{
		"cleanup.policy": text("delete"), "retention.ms": text("-1"), "retention.bytes": text("-1"),
		"message.timestamp.type": text("LogAppendTime"),
	}, d.config.Audit)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("dlq: create the audit topic %s: %w: create it with one partition, cleanup.policy=delete, "+
			"retention.ms=-1 and message.timestamp.type=LogAppendTime, or let this user create topics", d.config.Audit, err)
	}
	a.created = true
	return nil
}

// forget has the client look for the topic again.
func (a *audit) forget() {
	a.creating.Lock()
	defer a.creating.Unlock()
	a.created = false
	a.desk.client.PurgeTopicsFromProducing(a.desk.config.Audit)
}

// remembers reports what is wrong with an audit topic that somebody else has created: one that forgets before the
// letters are gone has letters wait again that were sent. What the broker does not tell is not wrong.
func (a *audit) remembers(ctx context.Context) error {
	d := a.desk
	configs, err := d.admin.DescribeTopicConfigs(ctx, d.config.Audit)
	if err != nil {
		return nil
	}
	for _, c := range configs {
		if strings.Contains(textSetting(c.Configs, "cleanup.policy"), "compact") {
			return fmt.Errorf("dlq: the audit topic %s is compacted, and would not take records without a key: set "+
				"cleanup.policy=delete there", d.config.Audit)
		}
		kept := time.Duration(setting(c.Configs, "retention.ms")) * time.Millisecond
		if kept > 0 && d.maxMessage > 0 && (d.retention == 0 || kept < d.retention) {
			return fmt.Errorf("dlq: the audit topic %s forgets after %v, before the letters are gone from %s: those that were "+
				"replayed would wait again, and be sent twice; set retention.ms=-1 there",
				d.config.Audit, kept, d.config.Topic)
		}
	}
	return nil
}

func (a *audit) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.client != nil {
		a.client.Close()
		a.client = nil
	}
}

// Actions calls fn for every audit record, the oldest first, until it returns false.
func (d *Desk) Actions(ctx context.Context, fn func(*Action) bool) error {
	spans, err := d.bounds(ctx, d.config.Audit)
	if err != nil {
		return err
	}
	return d.scan(ctx, d.config.Audit, []span{spans[0]}, func(r *kgo.Record) bool { return fn(action(r)) })
}

// Note leaves a note at a group; an empty text takes it away. id is the whole ID of the group.
func (d *Desk) Note(ctx context.Context, id, text string) error {
	if id == "" {
		return errors.New("dlq: a note needs the ID of a group: \"abate dlq ls\" shows them")
	}
	return d.audit.append(ctx, &Action{Kind: Noted, Group: id, Text: text})
}
