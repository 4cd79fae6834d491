package brokertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// chain is a main topic with its dead letters, for tests of the desk.
type chain struct {
	broker
	main, dead string
}

func newChain(t *testing.T, b broker, partitions int) chain {
	t.Helper()
	c := chain{broker: b, main: b.topic(t, partitions)}
	c.dead = c.main + "-dlq"
	b.create(t, c.dead, partitions)
	return c
}

// group is the consumer group that failed at the chain's letters: no other test has a member in it.
func (c chain) group() string { return "billing-" + c.main }

// desk opens the dead letters.
func (c chain) desk(t *testing.T, more ...func(*dlq.Config)) *dlq.Desk {
	t.Helper()
	config := dlq.Config{Brokers: []string{c.addr}, Topic: c.dead, By: "ann@bastion"}
	for _, m := range more {
		m(&config)
	}
	d, err := dlq.Open(within(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// failed is a dead letter as the consumer writes it: of message n of the main topic.
func (c chain) failed(n int, partition int32, class, message string) *kgo.Record {
	l := letter.Letter{
		Original:      letter.Place{Topic: c.main, Partition: partition, Offset: int64(n)},
		Timestamp:     time.UnixMilli(1760000000000 + int64(n)),
		TimestampType: "CreateTime",
		Group:         c.group(),
		Failures:      4,
		First:         time.UnixMilli(1760000001000),
		Last:          time.UnixMilli(1760002000000),
		Class:         class,
		Message:       message,
		Reason:        "exhausted",
		Headers: []kgo.RecordHeader{{Key: "event-id", Value: fmt.Appendf(nil, "e%d", n)}, {Key: "none"},
			{Key: "event-id", Value: []byte{0xff, byte(n)}}},
	}
	return &kgo.Record{
		Partition: partition,
		Key:       fmt.Appendf(nil, "cust-%d", n%10),
		Value:     fmt.Appendf(nil, `{"order":{"amount":%d,"currency":"eur"}}`, n),
		Headers:   l.AppendHeaders(nil, letter.Abate),
	}
}

// seed writes n dead letters, with two classes, over the partitions.
func (c chain) seed(t *testing.T, n, partitions int) {
	t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		class, message := "*net.OpError", fmt.Sprintf("dial tcp 10.0.0.%d:5432: connection refused after %d ms", i%200, i)
		if i%4 == 3 {
			class, message = "card-declined", fmt.Sprintf(`card "%d" was declined`, i)
		}
		records[i] = c.failed(i, int32(i%partitions), class, message)
	}
	c.produce(t, c.dead, records...)
}

// every returns what the filter chooses.
func every(t *testing.T, d *dlq.Desk, f dlq.Filter) (list []*dlq.Entry) {
	t.Helper()
	if err := d.Each(within(t), f, func(e *dlq.Entry) bool { list = append(list, e); return true }); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestDeskGroupsDeadLettersByTheirMistake(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 3)
		c.seed(t, 100, 3)
		d := c.desk(t)
		groups, err := d.Groups(within(t), dlq.All())
		if err != nil || len(groups) != 2 {
			t.Fatalf("%v %+v", err, groups)
		}
		g := groups[0]
		if g.Class != "*net.OpError" || g.Count != 75 || g.Pattern != "dial tcp <n>:<n>: connection refused after <n> ms" ||
			g.Topics[c.main] != 75 || g.States[dlq.Waiting] != 75 ||
			g.First.IsZero() || g.Last.Before(g.First) || !strings.HasPrefix(g.Message, "dial tcp 10.0.0.") {
			t.Errorf("%+v", g)
		}
		if g := groups[1]; g.Class != "card-declined" || g.Count != 25 || g.Pattern != `card "…" was declined` {
			t.Errorf("%+v", g)
		}
		f := dlq.All()
		f.Group = groups[1].ID[:4]
		if list := every(t, d, f); len(list) != 25 || list[0].Letter.Class != "card-declined" ||
			list[0].Group != groups[1].ID {
			t.Errorf("%d letters of the group", len(list))
		}
	})
}

func TestDeskChoosesByPlaceTimeAndExpression(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 3)
		c.seed(t, 90, 3)
		d := c.desk(t)
		all := every(t, d, dlq.All())
		for i, e := range all {
			if e.At.Partition != int32(i/30) || e.At.Offset != int64(i%30) {
				t.Fatalf("letter %d is %v: not in the order of partitions and offsets", i, e.At)
			}
		}
		for _, test := range []struct {
			what   string
			change func(*dlq.Filter)
			want   int
		}{
			{"all", func(*dlq.Filter) {}, 90},
			{"partition", func(f *dlq.Filter) { f.Partition = 1 }, 30},
			{"offsets", func(f *dlq.Filter) { f.Partition, f.FromOffset, f.ToOffset = 2, 10, 15 }, 5},
			{"at most", func(f *dlq.Filter) { f.Max = 37 }, 37},
			{"deleted", func(f *dlq.Filter) { f.State = dlq.Deleted }, 0},
			{"later", func(f *dlq.Filter) { f.From = time.Now().Add(time.Hour) }, 0},
			{"before now", func(f *dlq.Filter) { f.From, f.To = time.Now().Add(-time.Hour), time.Now().Add(time.Hour) }, 90},
			{"before", func(f *dlq.Filter) { f.To = time.Now().Add(-time.Hour) }, 0},
			{"expression", func(f *dlq.Filter) { f.Where = `class == "card-declined" && json("order.amount") >= 45` }, 11},
			{"key", func(f *dlq.Filter) { f.Where = `key ~ "-[37]$" || header("event-id") == "e0"` }, 18},
		} {
			f := dlq.All()
			test.change(&f)
			if got := len(every(t, d, f)); got != test.want {
				t.Errorf("%s: %d letters, not %d", test.what, got, test.want)
			}
		}
		e, err := d.Get(within(t), 1, 5)
		if err != nil || e.Letter.Original.Offset != 16 || string(e.Letter.Key) != "cust-6" || e.Letter.Failures != 4 ||
			e.Letter.Class != "*net.OpError" ||
			len(e.Letter.Headers) != 3 || e.Letter.Headers[1].Value != nil || len(e.Problems) > 0 || e.State != dlq.Waiting {
			t.Errorf("%v %+v", err, e)
		}
		if _, err := d.Get(within(t), 1, 5000); err == nil ||
			!strings.Contains(err.Error(), "there is no dead letter at "+c.dead+"/1/5000") {
			t.Error(err)
		}
		f := dlq.Filter{Partition: 7, Where: "clas == 1", State: "gone"}
		if err := d.Each(within(t), f, nil); err == nil || !strings.Contains(err.Error(), `"gone"`) ||
			!strings.Contains(err.Error(), `column 1: "clas" is not known`) {
			t.Errorf("not everything that is wrong: %v", err)
		}
	})
}

func TestDeskTailsWhatComes(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 2)
		c.seed(t, 4, 2)
		d := c.desk(t)
		ctx, cancel := context.WithCancel(within(t))
		came, ended := make(chan *dlq.Entry, 10), make(chan error, 1)
		go func() {
			ended <- d.Tail(ctx, func(e *dlq.Entry) {
				select {
				case came <- e:
				case <-ctx.Done(): // more were written than anybody waits for
				}
			})
		}()
		// It begins at the end of the moment when it was called, which nobody tells: letters are written until one arrives.
		var e *dlq.Entry
		eventually(t, "a letter", func() bool {
			c.produce(t, c.dead, c.failed(77, 1, "late", "it came late"))
			select {
			case e = <-came:
				return true
			default:
				return false
			}
		})
		if e.Letter.Class != "late" || e.At.Partition != 1 {
			t.Errorf("%+v", e)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestDeskSaysWhatIsWrongWithItsTopic(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		_, err := dlq.Open(within(t), dlq.Config{Brokers: []string{b.addr}, Topic: "nothing-dlq"})
		if err == nil || !strings.Contains(err.Error(), "there is no topic nothing-dlq on "+b.addr) {
			t.Error(err)
		}
		c := newChain(t, b, 1)
		c.seed(t, 5, 1)
		found, err := dlq.Topics(within(t), dlq.Config{Brokers: []string{b.addr}})
		has := false
		for _, topic := range found {
			has = has || topic == dlq.TopicInfo{Name: c.dead, Records: 5}
		}
		if err != nil || !has {
			t.Errorf("%v %+v", err, found)
		}
	})
	_, err := dlq.Open(t.Context(), dlq.Config{Audit: "x"})
	if err == nil || !strings.Contains(err.Error(), "Brokers is empty") ||
		!strings.Contains(err.Error(), "Topic is empty") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("over"))
	defer cancel()
	if _, err := dlq.Open(ctx, dlq.Config{Brokers: []string{"127.0.0.1:1"}, Topic: "a-dlq"}); err == nil ||
		!strings.Contains(err.Error(), "connect to 127.0.0.1:1") {
		t.Error(err)
	}
}
