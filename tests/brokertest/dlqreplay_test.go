package brokertest_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// quick is a replay that does not wait longer than a test must.
func quick() dlq.Replay {
	// nobody reads in most tests
	return dlq.Replay{Filter: dlq.All(), Rate: 100_000, Settle: time.Millisecond, Unjudged: true}
}

// over reports whether all was sent, read or not.
func over(p dlq.Progress) bool { return p.Phase == dlq.Done || p.Phase == dlq.Pending }

func replay(t *testing.T, d *dlq.Desk, r dlq.Replay) dlq.Progress {
	t.Helper()
	p, err := d.Replay(within(t), r)
	if err != nil {
		t.Fatalf("%v %+v", err, p)
	}
	return p
}

func TestReplayPutsEachLetterBackByteForByte(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 3)
		c.seed(t, 40, 3)
		d := c.desk(t)
		dry := quick()
		dry.DryRun = true
		told := 0
		dry.Report = func(e *dlq.Entry, to, skip string) {
			if told++; to != c.main || skip != "" {
				t.Errorf("%s: to %q, %q", e.At, to, skip)
			}
		}
		if p := replay(t, d, dry); p.Chosen != 40 || p.Sent != 40 || told != 40 || p.Phase != dlq.Done {
			t.Errorf("dry run: %+v, %d told", p, told)
		}
		if n := len(c.everything(t, c.main)); n != 0 {
			t.Fatalf("a dry run sent %d", n)
		}
		var mu sync.Mutex
		var phases []dlq.Phase
		r := quick()
		r.Progress = func(p dlq.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
				phases = append(phases, p.Phase)
			}
		}
		p := replay(t, d, r)
		if p.Chosen != 40 || p.Sent != 40 || !over(p) || p.Batches != 6 || p.Back != 0 || p.By != "ann@bastion" {
			t.Errorf("%+v", p)
		}
		if want := []dlq.Phase{dlq.Counting, dlq.Running, dlq.Settling}; !slices.Equal(phases[:3], want) ||
			phases[len(phases)-1] != dlq.Pending {
			t.Errorf("phases %v", phases)
		}
		came := c.everything(t, c.main)
		if len(came) != 40 {
			t.Fatalf("%d messages", len(came))
		}
		for _, m := range came {
			var n int
			fmt.Sscanf(string(m.Value), `{"order":{"amount":%d`, &n)
			want := c.failed(n, int32(n%3), "", "")
			if string(m.Key) != string(want.Key) || !bytes.Equal(m.Value, want.Value) || m.Partition != want.Partition {
				t.Errorf("message %d came as %s %s in %d", n, m.Key, m.Value, m.Partition)
			}
			if h := m.Headers; len(h) != 6 || h[0].Key != "event-id" || string(h[0].Value) != fmt.Sprint("e", n) ||
				h[1].Key != "none" || h[1].Value != nil ||
				!bytes.Equal(h[2].Value, []byte{0xff, byte(n)}) || h[3].Key != "abate-replays" || string(h[3].Value) != "1" ||
				string(h[4].Value) != fmt.Sprintf("%s/%d/%d@%d", c.main, n%3, n, 1760000000000+n) ||
				h[5].Key != "abate-replayed-from" {
				t.Errorf("message %d has headers %v", n, h)
			}
			if l, problems := letter.Read(m); l.Replays != 1 || l.ReplayedFrom.Topic != c.dead || len(l.Headers) != 3 ||
				len(problems) > 0 {
				t.Errorf("message %d is read as %+v %v", n, l, problems)
			}
			if time.Since(m.Timestamp) > time.Hour {
				t.Errorf("message %d has the timestamp %v", n, m.Timestamp)
			}
		}
		if left := every(t, d, dlq.All()); len(left) != 0 {
			t.Errorf("%d letters wait still", len(left))
		}
		done := dlq.All()
		done.State = dlq.Replayed
		if all := every(t, c.desk(t), done); len(all) != 40 || all[0].By != "ann@bastion" || all[0].Replay != p.ID ||
			all[0].Changed.IsZero() {
			t.Errorf("another desk sees %d replayed letters", len(all))
		}
		if p := replay(t, d, quick()); p.Chosen != 0 || p.Sent != 0 || p.Phase != dlq.Done {
			t.Errorf("a second replay: %+v", p)
		}
	})
}

// failing consumes the main topic and puts what fails into where it says, as a consumer with retry topics does, until
// the test ends.
func (c chain) failing(t *testing.T, to string, fails func(n int) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	reader := c.client(t, kgo.ConsumeTopics(c.main), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(20*time.Millisecond))
	writer := c.client(t)
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			reader.PollFetches(ctx).EachRecord(func(m *kgo.Record) {
				var n int
				fmt.Sscanf(string(m.Value), `{"order":{"amount":%d`, &n)
				if !fails(n) {
					return
				}
				l, _ := letter.Read(m)
				l.Original, l.Class, l.Message, l.Failures = letter.Place{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset},
					"again", "it failed again", 1
				_ = writer.ProduceSync(ctx, &kgo.Record{
					Topic: to, Key: m.Key, Value: m.Value, Headers: l.AppendHeaders(nil, letter.Abate),
				})
			})
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
}

func TestReplayStopsWhenTooManyFailAgain(t *testing.T) {
	for _, where := range []string{"-dlq", "-retry-30s"} {
		t.Run("in"+where, func(t *testing.T) {
			eachBroker(t, func(t *testing.T, b broker) {
				c := newChain(t, b, 1)
				c.seed(t, 100, 1)
				if where != "-dlq" {
					b.create(t, c.main+where, 1)
				}
				c.failing(t, c.main+where, func(n int) bool { return n >= 1 })
				d := c.desk(t)
				r := quick()
				r.Settle, r.Rate = 2*time.Second, 1000
				p := replay(t, d, r)
				if p.Phase != dlq.Stopped || !strings.Contains(p.Why, "failed again, more than 10 %") || p.Sent < 2 || p.Sent > 8 ||
					p.Back == 0 || p.Chosen != 100 {
					t.Fatalf("%+v", p)
				}
				list, err := d.Replays(within(t))
				if err != nil || len(list) != 1 || list[0].Phase != dlq.Stopped || list[0].Sent != p.Sent || list[0].Why != p.Why {
					t.Errorf("%v %+v", err, list)
				}
				if came := len(c.everything(t, c.main)); came != p.Sent {
					t.Errorf("%d came, %d sent", came, p.Sent)
				}
			})
		})
	}
}

func TestReplayThatIsResumedSendsTheRest(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 2)
		c.seed(t, 60, 2)
		d, elsewhere := c.desk(t), c.desk(t, func(c *dlq.Config) { c.By = "bob@laptop" })
		r := quick()
		id, goOn := make(chan string, 1), make(chan struct{})
		r.Progress = func(p dlq.Progress) {
			if p.Sent == 18 && p.Phase == dlq.Settling {
				select {
				case id <- p.ID:
					<-goOn // as if the batch of 10 took long to settle
				default:
				}
			}
		}
		r.Filter.Max = 58
		ended := make(chan dlq.Progress, 1)
		go func() {
			p, err := d.Replay(within(t), r)
			if err != nil {
				t.Error(err)
			}
			ended <- p
		}()
		running := <-id
		_, err := elsewhere.Replay(within(t), quick())
		if err == nil || !strings.Contains(err.Error(), "is being replayed by ann@bastion") ||
			!strings.Contains(err.Error(), "abate dlq cancel "+running) {
			t.Errorf("a second replay at the same time: %v", err)
		}
		if err := elsewhere.Cancel(within(t), running); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Replays(within(t)); err != nil { // it reads the audit, as the replay does every second
			t.Fatal(err)
		}
		close(goOn)
		p := <-ended
		if p.Phase != dlq.Cancelled || p.Why != "cancelled by bob@laptop" || p.Sent != 18 {
			t.Errorf("%+v", p)
		}
		if err := elsewhere.Cancel(within(t), running); err == nil || !strings.Contains(err.Error(), "has ended already") {
			t.Error(err)
		}
		c.produce(t, c.dead, c.failed(1000, 0, "later", "a letter that came after the replay began"))
		rest := dlq.Replay{Resume: running, Settle: time.Millisecond}
		if _, err := elsewhere.Replay(within(t), dlq.Replay{Resume: "r-nothing"}); err == nil ||
			!strings.Contains(err.Error(), `no replay "r-nothing"`) {
			t.Error(err)
		}
		p = replay(t, elsewhere, rest)
		if p.ID != running || p.Sent != 58 || p.Chosen != 58 || !over(p) || p.By != "ann@bastion" {
			t.Errorf("%+v", p)
		}
		once := map[string]int{}
		for _, m := range c.everything(t, c.main) {
			once[string(m.Value)]++
		}
		if len(once) != 58 || once[`{"order":{"amount":1000,"currency":"eur"}}`] > 0 {
			t.Errorf("%d different messages, or one that came after the replay began", len(once))
		}
		for value, n := range once {
			if n != 1 {
				t.Errorf("%s came %d times", value, n)
			}
		}
		if left := every(t, d, dlq.All()); len(left) != 3 {
			t.Errorf("%d letters wait, not the two that were not chosen and the one that came later", len(left))
		}
	})
}

func TestReplayLeavesOutWhatCannotOrShouldNotGo(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		elsewhere := b.topic(t, 5)
		often := c.failed(1, 0, "x", "y")
		often.Headers = append(often.Headers, kgo.RecordHeader{Key: "abate-replays", Value: []byte("3")}, kgo.RecordHeader{
			Key: "abate-replayed-from", Value: []byte(c.dead + "/0/0"),
		})
		gone := letter.Letter{Original: letter.Place{Topic: c.main + "-gone", Offset: 1}, Failures: 1}
		pointer := func(offset int64) *kgo.Record {
			l := letter.Letter{Original: letter.Place{Topic: c.main, Offset: offset}, Failures: 1, Pointer: true}
			return &kgo.Record{Key: []byte("large"), Headers: l.AppendHeaders(nil, letter.Abate)}
		}
		large := &kgo.Record{Key: []byte("large"), Value: []byte(`{"order":{"amount":5}}`), Headers: []kgo.RecordHeader{
			{Key: "h", Value: []byte("v")},
		}}
		c.produce(t, c.main, large)
		c.produce(t, c.dead, often, &kgo.Record{Value: []byte("nobody knows where from")}, &kgo.Record{
			Headers: gone.AppendHeaders(nil, letter.Abate),
		}, pointer(0), pointer(7), c.failed(2, 0, "x", "y"))
		d := c.desk(t)
		r := quick()
		why := map[int64]string{}
		r.Report = func(e *dlq.Entry, to, skip string) { why[e.At.Offset] = skip }
		p := replay(t, d, r)
		if p.Sent != 2 || p.Skipped != 4 || len(p.Skips) != 4 || !strings.Contains(why[0], "too often") ||
			!strings.Contains(why[1], "where it came from") ||
			!strings.Contains(why[2], "does not exist") || why[3] != "" || !strings.Contains(why[4], "is gone") || why[5] != "" {
			t.Errorf("%+v %v", p, why)
		}
		came := c.everything(t, c.main)
		if len(came) != 3 || string(came[1].Key) != "large" || string(came[1].Value) != string(large.Value) ||
			came[1].Headers[0].Key != "h" || len(came[1].Headers) != 4 {
			t.Errorf("%v", came)
		}
		r = quick()
		r.To, r.MaxReplays = elsewhere, 4
		if p := replay(t, d, r); p.Sent != 3 || p.Skipped != 1 || len(c.everything(t, elsewhere)) != 3 {
			t.Errorf("to another topic: %+v", p)
		}
		if _, err := d.Replay(within(t), dlq.Replay{Filter: dlq.All(), To: c.dead, Rate: -1, MaxFailures: 2}); err == nil ||
			!strings.Contains(err.Error(), "is the dead-letter topic") || !strings.Contains(err.Error(), "Rate -1") ||
			!strings.Contains(err.Error(), "MaxFailures 2") {
			t.Error(err)
		}
	})
}

func TestReplayKeepsItsRate(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 40, 1)
		r := quick()
		r.Rate = 100
		began := time.Now()
		if p := replay(t, c.desk(t), r); p.Sent != 40 {
			t.Errorf("%+v", p)
		}
		if took := time.Since(began); took < 300*time.Millisecond { // the last chunk of ten waits for nothing any more
			t.Errorf("40 letters at 100/s took %v", took)
		}
	})
}

func TestDeletedLettersWaitAgainWhenTheyAreRestored(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 2)
		c.seed(t, 20, 2)
		d := c.desk(t)
		f := dlq.All()
		f.Where = `class == "card-declined"`
		for _, step := range []struct {
			what       string
			do         func() (int, error)
			n, waiting int
		}{
			{"delete", func() (int, error) { return d.Delete(within(t), f) }, 5, 15},
			{"delete again", func() (int, error) { return d.Delete(within(t), f) }, 0, 15},
			{"restore", func() (int, error) { return d.Restore(within(t), f) }, 5, 20},
			{"restore again", func() (int, error) { return d.Restore(within(t), f) }, 0, 20},
			{"delete all", func() (int, error) { return d.Delete(within(t), dlq.All()) }, 20, 0},
		} {
			if n, err := step.do(); err != nil || n != step.n {
				t.Errorf("%s: %d, %v", step.what, n, err)
			}
			if n := len(every(t, d, dlq.All())); n != step.waiting {
				t.Errorf("%s: %d letters wait", step.what, n)
			}
		}
		if n := len(c.everything(t, c.dead)); n != 20 {
			t.Errorf("the topic has %d records", n)
		}
		e, err := c.desk(t).Get(within(t), 0, 3)
		if err != nil || e.State != dlq.Deleted || e.By != "ann@bastion" {
			t.Errorf("%v %+v", err, e)
		}
		kinds := map[dlq.Kind]int{}
		if err := d.Actions(within(t), func(a *dlq.Action) bool {
			if kinds[a.Kind]++; a.By != "ann@bastion" || a.Time.IsZero() || !strings.HasPrefix(a.Place, c.dead+"/") {
				t.Errorf("%+v", a)
			}
			return true
		}); err != nil || kinds[dlq.Delete] != 25 || kinds[dlq.Restore] != 5 {
			t.Errorf("%v %v", err, kinds)
		}
		if err := d.Note(within(t), e.Group, "ticket 4711"); err != nil {
			t.Fatal(err)
		}
		f = dlq.All()
		f.State = dlq.Any
		groups, err := c.desk(t).Groups(within(t), f)
		if err != nil || !slices.ContainsFunc(groups, func(g dlq.Group) bool {
			return g.ID == e.Group && g.Note == "ticket 4711" && g.States[dlq.Deleted] == g.Count
		}) {
			t.Errorf("%v %+v", err, groups)
		}
	})
}
