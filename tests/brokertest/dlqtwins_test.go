package brokertest_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// A consumer that is killed between writing a letter and committing writes it again, and so does whoever takes its
// partition over.
func TestTwinsAreOneLetterInEverything(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 2)
		again := c.failed(1, 1, "x", "y")
		l, _ := letter.Read(again)
		// by another life, which had tried it once more
		l.Failures, l.History = l.Failures+1, []letter.Past{{Topic: c.main, At: time.UnixMilli(1760000003000), Class: "z"}}
		again.Headers = l.AppendHeaders(nil, letter.Abate)
		c.produce(t, c.dead, c.failed(0, 0, "x", "y"), c.failed(0, 0, "x", "y"), c.failed(1, 1, "x", "y"), again,
			c.failed(2, 0, "x", "y"), c.failed(2, 1, "x", "y"))
		d := c.desk(t) // letters 0 and 1 twice, and two that differ in their partition alone
		if list := every(t, d, dlq.All()); len(list) != 4 {
			t.Errorf("%d letters are listed, want 4", len(list))
		}
		groups, err := d.Groups(within(t), dlq.All())
		if err != nil || len(groups) != 1 || groups[0].Count != 4 || groups[0].States[dlq.Waiting] != 4 {
			t.Errorf("%v %+v", err, groups)
		}
		var lines bytes.Buffer
		if n, err := d.Export(within(t), dlq.All(), &lines); err != nil || n != 4 ||
			strings.Count(lines.String(), "\n") != 4 {
			t.Errorf("exported %d: %v", n, err)
		}
		if n, err := d.Delete(within(t), dlq.At(0, 1)); err != nil || n != 1 { // the second of letter 0
			t.Errorf("deleted %d: %v", n, err)
		}
		if e, err := d.Get(within(t), 0, 0); err != nil || e.State != dlq.Deleted {
			t.Errorf("its twin is %s: %v", e.State, err)
		}
		if p := replay(t, d, quick()); p.Sent != 3 || p.Chosen != 3 {
			t.Errorf("%+v", p)
		}
		if n := len(c.everything(t, c.main)); n != 3 {
			t.Errorf("%d were sent", n)
		}
		c.produce(t, c.dead, c.failed(1, 1, "x", "y")) // the broker took one more, late
		for _, desk := range []*dlq.Desk{d, c.desk(t)} {
			if left := every(t, desk, dlq.All()); len(left) != 0 {
				t.Errorf("%d wait: what was replayed or deleted is back as its twin", len(left))
			}
		}
		if n, err := d.Restore(within(t), dlq.At(0, 0)); err != nil || n != 1 {
			t.Errorf("restored %d: %v", n, err)
		}
		if left := every(t, d, dlq.All()); len(left) != 1 {
			t.Errorf("%d wait, want the one that was restored", len(left))
		}
	})
}

func TestMessageThatFailsAgainAfterItsReplayIsNoTwin(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 1, 1)
		d := c.desk(t)
		replay(t, d, quick())
		sent := c.everything(t, c.main)[0]
		l, _ := letter.Read(sent)
		if first, _ := letter.Read(c.failed(0, 0, "", "")); l.Identity != first.Identity {
			t.Errorf("replayed as %s, it was %s", l.Identity, first.Identity)
		}
		l.Group, l.Failures, l.Original = c.group(), 4, letter.Place{Topic: c.main, Partition: 0, Offset: sent.Offset}
		c.produce(t, c.dead, &kgo.Record{Key: sent.Key, Value: sent.Value, Headers: l.AppendHeaders(nil, letter.Abate)})
		left := every(t, d, dlq.All())
		if len(left) != 1 || left[0].Letter.Replays != 1 || left[0].Letter.Identity == (letter.Identity{}) {
			t.Errorf("%d wait", len(left))
		}
	})
}

func TestLinesThatAreImportedAgainAreLettersOfTheirOwn(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 2, 1)
		d := c.desk(t)
		var lines bytes.Buffer
		if _, err := d.Export(within(t), dlq.All(), &lines); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Delete(within(t), dlq.All()); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if n, err := d.Import(within(t), bytes.NewReader(lines.Bytes()), true); err != nil || n != 2 {
				t.Fatalf("%d: %v", n, err)
			}
			if list := every(t, d, dlq.All()); len(list) != 2*(i+1) {
				t.Errorf("%d letters wait after import %d", len(list), i+1)
			}
		}
		first, _ := letter.Read(c.failed(0, 0, "", ""))
		if list := every(t, d, dlq.All()); list[0].Letter.Identity != first.Identity {
			t.Errorf("imported as %s, it was %s", list[0].Letter.Identity, first.Identity)
		}
	})
}

func TestTimestampThatCannotBeDoesNotSayWhenALetterGoes(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := chain{broker: b, main: b.topic(t, 1)}
		c.dead = c.main + "-dlq"
		var settings []string
		if b.real != nil { // a new Kafka takes none from the future, if it is not told to
			settings = append(settings, "message.timestamp.after.max.ms=9223372036854775807")
		}
		b.create(t, c.dead, 1, settings...)
		failed := time.UnixMilli(1760002000000)
		for i, at := range []time.Time{
			time.UnixMilli(0), time.UnixMilli(1), time.Now().Add(59 * 24 * time.Hour), time.Now(),
		} {
			r := c.failed(i, 0, "x", "y")
			r.Timestamp = at
			b.produce(t, c.dead, r)
		}
		for i, e := range every(t, c.desk(t), dlq.All()) {
			broken := i < 3
			if e.Purge.IsZero() != broken || e.Written.Equal(failed) != broken || len(e.Problems) > 0 != broken {
				t.Errorf("letter %d: written %v, gone at %v, problems %v", i, e.Written, e.Purge, e.Problems)
			}
		}
		since := dlq.All()
		since.From, since.To = failed.Add(-time.Hour), failed.Add(time.Hour)
		since.From = time.Time{}
		if n := len(every(t, c.desk(t), since)); n != 3 {
			t.Errorf("%d letters were written when they failed, want the three whose timestamp says nothing", n)
		}
	})
}
