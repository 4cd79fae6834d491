package brokertest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/breaker"
)

func TestReplayElsewhereStopsWhenTooManyFailThere(t *testing.T) {
	for _, end := range []string{"-dlq", "-billing-dlt", ".DLT", "-billing-retry-30s"} {
		t.Run("in"+end, func(t *testing.T) {
			eachBroker(t, func(t *testing.T, b broker) {
				c := newChain(t, b, 1)
				c.seed(t, 40, 1)
				other := chain{broker: b, main: b.topic(t, 1)}
				b.create(t, other.main+end, 1)
				other.failing(t, other.main+end, func(int) bool { return true })
				r := quick()
				r.To, r.Settle = other.main, time.Minute // it waits no longer than until the first is back
				if p := replay(t, c.desk(t), r); p.Phase != dlq.Stopped || p.Sent != 1 || p.Back != 1 {
					t.Errorf("%+v", p)
				}
			})
		})
	}
}

func TestLetterThatIsDeletedWhileTheCircuitIsOpenIsNotSent(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 10, 1)
		policy := abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 3, Mode: breaker.ForcedOpen}}
		g, err := abate.New("bank", policy)
		if err != nil {
			t.Fatal(err)
		}
		r := quick()
		r.Guard = g
		waiting := make(chan struct{}, 1)
		r.Progress = func(p dlq.Progress) {
			if p.Phase == dlq.CircuitOpen {
				select {
				case waiting <- struct{}{}:
				default:
				}
			}
		}
		ended := make(chan dlq.Progress, 1)
		d := c.desk(t)
		go func() { p, _ := d.Replay(within(t), r); ended <- p }()
		<-waiting
		f := dlq.All()
		f.Max = 4
		if n, err := d.Delete(within(t), f); n != 4 || err != nil {
			t.Fatal(n, err)
		}
		policy.CircuitBreaker.Mode = ""
		if err := g.Update(policy); err != nil {
			t.Fatal(err)
		}
		if p := <-ended; !over(p) || p.Sent != 6 || len(c.everything(t, c.main)) != 6 {
			t.Errorf("%+v, and %d messages came", p, len(c.everything(t, c.main)))
		}
		f = dlq.All()
		f.State = dlq.Deleted
		if n := len(every(t, d, f)); n != 4 {
			t.Errorf("%d letters are deleted", n)
		}
	})
}

// acted writes an audit record as another process does, whose clock is ahead of this one's or behind it.
func (c chain) acted(t *testing.T, at time.Time, line string) {
	t.Helper()
	c.produce(t, c.dead+"-audit", &kgo.Record{Value: []byte(line), Timestamp: at})
}

func TestReplayIsCancelledWhateverTheClocksSay(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		b.create(t, c.dead+"-audit", 1, "retention.ms=-1")
		c.acted(t, time.Now().Add(-3*time.Minute),
			`{"action":"replay-start","id":"r-1","session":"s-1","by":"bob","spec":{"filter":{"partition":-1},"rate":1,"ends":{}}}`)
		d := c.desk(t)
		if err := d.Cancel(within(t), "r-1"); err != nil {
			t.Errorf("a replay that runs, of which this machine's clock says that it is silent: %v", err)
		}
		if err := d.Cancel(within(t), "r-2"); err == nil {
			t.Error("a replay that does not exist is cancelled")
		}
	})
}

func TestReplayWritesNeitherToTheDeadLettersNorToTheirAudit(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 1, 1)
		forged := letter.Letter{Original: letter.Place{Topic: c.dead + "-audit"}, Failures: 1}
		back := letter.Letter{Original: letter.Place{Topic: c.dead}, Failures: 1}
		c.produce(t, c.dead, &kgo.Record{Value: []byte(`{"action":"delete","by":"ann@bastion","place":"` + c.dead + `/0/0"}`),
			Headers: forged.AppendHeaders(nil, letter.Abate)},
			&kgo.Record{Headers: back.AppendHeaders(nil, letter.Abate)})
		d := c.desk(t, func(c *dlq.Config) { c.AllowEdit = true })
		if _, err := d.Edit(within(t), letter.Place{Topic: c.dead, Offset: 1}, dlq.Change{
			Value: []byte(`{"action":"delete"}`),
		}); err == nil || !strings.Contains(err.Error(), "that is the dead-letter topic or its audit") {
			t.Error(err)
		}
		r := quick()
		r.Filter.FromOffset = 1
		if p := replay(t, d, r); p.Sent != 0 || p.Skipped != 2 || len(p.Skips) != 1 {
			t.Errorf("%+v", p)
		}
		if n := len(every(t, d, dlq.All())); n != 3 || c.records(t, c.dead) != 3 {
			t.Errorf("%d letters wait, of %d", n, c.records(t, c.dead))
		}
		r.To = c.dead + "-audit"
		if _, err := d.Replay(within(t), r); err == nil ||
			!strings.Contains(err.Error(), "that is the dead-letter topic or its audit") {
			t.Error(err)
		}
	})
}

// anew deletes a topic and creates it again.
func (c chain) anew(t *testing.T, topic string, more ...string) {
	t.Helper()
	if _, err := c.admin(t).DeleteTopic(within(t), topic); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the topic to be gone", func() bool {
		topics, err := c.admin(t).ListTopics(within(t), topic)
		return err == nil && !topics.Has(topic)
	})
	c.create(t, topic, 1, more...)
}

func TestNewTopicOfTheSameNameHasNewLetters(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 6, 1)
		d := c.desk(t)
		f := dlq.All()
		f.Max = 3
		if n, err := d.Delete(within(t), f); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		r := quick()
		if p := replay(t, d, r); p.Sent != 3 {
			t.Fatalf("%+v", p)
		}
		c.anew(t, c.dead)
		c.seed(t, 6, 1)
		if n := len(every(t, c.desk(t), dlq.All())); n != 6 {
			t.Errorf("%d of 6 new letters wait", n)
		}
		eventually(t, "the desk that was open to see them", func() bool { return len(every(t, d, dlq.All())) == 6 })
		if n, err := d.Delete(within(t), f); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		if n := len(every(t, c.desk(t), dlq.All())); n != 3 {
			t.Errorf("%d letters wait after three were deleted", n)
		}
	})
}

func TestAuditThatForgetsTooSoonIsNotWrittenTo(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		for _, test := range []struct {
			letters, audit, want string
		}{
			{"retention.ms=86400000", "retention.ms=3600000", "forgets after 1h0m0s"},
			{"retention.ms=-1", "retention.ms=86400000", "forgets after 24h0m0s"},
			{"retention.ms=86400000", "cleanup.policy=compact", "is compacted"},
			{"retention.ms=86400000", "retention.ms=86400000", ""},
			{"retention.ms=86400000", "retention.ms=-1", ""},
		} {
			c := chain{broker: b, main: b.topic(t, 1)}
			c.dead = c.main + "-dlq"
			b.create(t, c.dead, 1, test.letters)
			b.create(t, c.dead+"-audit", 1, test.audit)
			c.seed(t, 2, 1)
			d := c.desk(t)
			_, err := d.Replay(within(t), quick())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("letters %s, audit %s: %v", test.letters, test.audit, err)
			}
			if sent := c.records(t, c.main); sent != map[bool]int{true: 2}[test.want == ""] {
				t.Errorf("letters %s, audit %s: %d sent", test.letters, test.audit, sent)
			}
		}
	})
}

func TestDeskGoesOnWithAnAuditThatIsCreatedAnew(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 10, 1)
		d := c.desk(t)
		f := dlq.All()
		f.Max = 8
		if n, err := d.Delete(within(t), f); n != 8 || err != nil {
			t.Fatal(n, err)
		}
		c.anew(t, d.Audit(), "retention.ms=-1")
		f.Max = 1
		eventually(t, "the audit to be found again", func() bool {
			n, err := d.Delete(within(t), f)
			return n == 1 && err == nil
		})
		if n := len(every(t, d, dlq.All())); n != 1 {
			t.Errorf("%d letters wait", n)
		}
		if p := replay(t, d, quick()); p.Sent != 1 {
			t.Errorf("%+v", p)
		}
	})
}

func TestGroupsStaySmallWhateverIsInTheLetters(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		var records []*kgo.Record
		for i := range 300 {
			headers := []kgo.RecordHeader{{Key: "kafka_original-topic", Value: fmt.Appendf(nil, "topic-%d", i)},
				{Key: "kafka_exception-fqcn", Value: []byte(strings.Repeat("C", 10_000))},
				{Key: "kafka_exception-message", Value: []byte("m")}}
			records = append(records, &kgo.Record{Headers: headers})
		}
		c.produce(t, c.dead, records...)
		groups, err := c.desk(t).Groups(within(t), dlq.All())
		if err != nil || len(groups) != 1 {
			t.Fatal(len(groups), err)
		}
		if g := groups[0]; g.Count != 300 || len(g.Class) > letter.MaxClass || len(g.Topics) != 101 ||
			g.Topics["others"] != 200 {
			t.Errorf("%d letters, a class of %d bytes, %d topics, %d others", g.Count, len(g.Class), len(g.Topics),
				g.Topics["others"])
		}
	})
}

func TestResumedReplayGoesWhereItWent(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 10, 1)
		d := c.desk(t)
		ctx, cancel := context.WithCancel(within(t))
		r := quick()
		r.Progress = func(p dlq.Progress) {
			if p.Sent == 1 {
				cancel()
			}
		}
		p, err := d.Replay(ctx, r)
		if err != nil || p.Phase != dlq.Cancelled {
			t.Fatalf("%v %+v", err, p)
		}
		if _, err := d.Replay(within(t), dlq.Replay{Resume: p.ID, To: c.main}); err == nil ||
			!strings.Contains(err.Error(), "goes to the topic where each letter came from, not to "+c.main) {
			t.Error(err)
		}
		if again := replay(t, d, dlq.Replay{Resume: p.ID, Settle: time.Millisecond}); !over(again) || again.Sent != 10 {
			t.Errorf("%+v", again)
		}
	})
}
