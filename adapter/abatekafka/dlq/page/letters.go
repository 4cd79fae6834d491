package page

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// summary is a letter in a list.
type summary struct {
	Partition int32       `json:"partition"`
	Offset    int64       `json:"offset"`
	Written   time.Time   `json:"written"`
	Purge     time.Time   `json:"purge,omitzero"`
	State     dlq.State   `json:"state"`
	Changed   time.Time   `json:"changed,omitzero"`
	By        string      `json:"by,omitempty"`
	Replay    string      `json:"replay,omitempty"`
	Group     string      `json:"group"`
	Class     string      `json:"class"`
	Message   string      `json:"message"`
	Key       string      `json:"key"`
	Original  placeReport `json:"original"`
	Failures  int         `json:"failures"`
	Replays   int         `json:"replays"`
	Bytes     int         `json:"bytes"`
	Pointer   bool        `json:"pointer,omitempty"`
}

// placeReport is where a record stands.
type placeReport struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

func (p *Page) summary(e *dlq.Entry) summary {
	l := &e.Letter
	return summary{
		Partition: e.At.Partition, Offset: e.At.Offset, Written: e.Written, Purge: e.Purge, State: e.State,
		Changed: e.Changed, By: e.By, Replay: e.Replay,
		Group: e.Group, Class: letter.Cut(l.Class, letter.MaxClass), Message: cut(l.Message, 300), Key: p.line(l.Key, 80),
		Original: placeReport(l.Original),
		Failures: l.Failures, Replays: l.Replays, Bytes: len(l.Value), Pointer: l.Pointer,
	}
}

// detail is all there is of a letter.
type detail struct {
	summary
	Dialect       letter.Dialect  `json:"dialect"`
	Identity      string          `json:"identity,omitempty"` // the message's, for its whole life
	Reason        string          `json:"reason"`
	Text          string          `json:"text"` // the whole message
	Trace         string          `json:"trace"`
	ConsumerGroup string          `json:"consumerGroup"`
	First         time.Time       `json:"first,omitzero"`
	Last          time.Time       `json:"last,omitzero"`
	Timestamp     time.Time       `json:"timestamp,omitzero"`
	TimestampType string          `json:"timestampType,omitempty"`
	History       []pastReport    `json:"history"`
	ReplayedFrom  *placeReport    `json:"replayedFrom,omitempty"`
	KeyContent    content         `json:"keyContent"`
	Value         content         `json:"value"`
	Headers       []headerContent `json:"headers"`
	Added         []headerContent `json:"added"` // all headers of the record in the dead-letter topic
	Problems      []string        `json:"problems"`
	Command       string          `json:"command"`
}

type pastReport struct {
	Topic string    `json:"topic"`
	At    time.Time `json:"at"`
	Class string    `json:"class"`
}

type headerContent struct {
	Key   string  `json:"key"`
	Value content `json:"value"`
}

func (p *Page) detail(e *dlq.Entry) detail {
	l := &e.Letter
	d := detail{
		summary:       p.summary(e),
		Dialect:       l.Dialect,
		Identity:      identityOf(e),
		Reason:        l.Reason,
		Text:          l.Message,
		Trace:         l.Trace,
		ConsumerGroup: l.Group,
		First:         l.First,
		Last:          l.Last,
		Timestamp:     l.Timestamp,
		TimestampType: l.TimestampType,
		History:       []pastReport{},
		KeyContent:    p.show(l.Key, true),
		Value:         p.show(l.Value, true),
		Headers:       p.headers(l.Headers),
		Added:         []headerContent{},
		Problems:      []string{},
		Command:       fmt.Sprintf("abate dlq replay --topic %s %d/%d", e.At.Topic, e.At.Partition, e.At.Offset),
	}
	for _, past := range l.History {
		d.History = append(d.History, pastReport(past))
	}
	if l.Replays > 0 && l.ReplayedFrom.Topic != "" {
		d.ReplayedFrom = (*placeReport)(&l.ReplayedFrom)
	}
	if e.Record != nil {
		d.Added = p.headers(e.Record.Headers)
	}
	for _, err := range e.Problems {
		d.Problems = append(d.Problems, err.Error())
	}
	return d
}

func (p *Page) headers(all []kgo.RecordHeader) []headerContent {
	shown := make([]headerContent, len(all))
	for i, h := range all {
		shown[i] = headerContent{h.Key, p.show(h.Value, false)}
	}
	return shown
}

func (p *Page) letter(w http.ResponseWriter, r *http.Request) error {
	e, err := p.entry(r)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, p.detail(e))
	return nil
}

// value answers with the value of one, to be saved: what it claims to be, the browser never learns.
func (p *Page) value(w http.ResponseWriter, r *http.Request) error {
	if p.config.HideValues {
		return refuse(http.StatusForbidden, "values are hidden here")
	}
	e, err := p.entry(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition",
		fmt.Sprintf(`attachment; filename="letter-%d-%d.bin"`, e.At.Partition, e.At.Offset))
	_, _ = w.Write(e.Letter.Value) // the reader has left
	return nil
}

func (p *Page) entry(r *http.Request) (*dlq.Entry, error) {
	partition, err := strconv.ParseInt(r.PathValue("partition"), 10, 32)
	offset, err2 := strconv.ParseInt(r.PathValue("offset"), 10, 64)
	if err != nil || err2 != nil || partition < 0 || offset < 0 {
		return nil, refuse(http.StatusBadRequest, "a letter is PARTITION/OFFSET, two numbers")
	}
	var found *dlq.Entry
	at := dlq.At(int32(partition), offset)
	err = p.config.Desk.Each(r.Context(), at, func(e *dlq.Entry) bool { found = e; return false })
	if err == nil && found == nil {
		err = refuse(http.StatusNotFound, "there is no dead letter %d/%d in %s: retention has taken it, or there never was "+
			"one", partition, offset, p.config.Desk.Topic())
	}
	return found, err
}

// identityOf is who the message is; empty for a letter that does not say where it came from.
func identityOf(e *dlq.Entry) string {
	if !e.Letter.Identity.Known() {
		return ""
	}
	return e.Letter.Identity.String()
}
