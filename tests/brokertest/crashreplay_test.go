package brokertest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

// replayPoints are the places where a process that replays is killed.
var replayPoints = []point{decided, sent, acknowledged}

// manyMessages is how many messages a round of the replay matrix has: some, or what ABATE_CRASH_MESSAGES says.
func manyMessages(t testing.TB) int {
	t.Helper()
	text := os.Getenv("ABATE_CRASH_MESSAGES")
	if text == "" {
		return 60
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 10 {
		t.Fatalf("ABATE_CRASH_MESSAGES is %q; give a number of messages from 10", text)
	}
	return n
}

// Consumers are killed at each point between poll and commit, and what replays their dead letters is killed between
// sending, the acknowledgement and the note of it. A tenth of the messages are dead letters that a replay fixes, the
// first, the second or the third.
func TestNothingIsLostOrDoneTwiceWhereverAConsumerOrAReplayIsKilled(t *testing.T) {
	killsAndReplays(t, false)
}

// The same with Consumer.Once: its record is not in the effect's transaction, but who takes a delivery over is told so,
// and looks whether there is the effect.
func TestNothingIsLostOrDoneTwiceWhereverAConsumerWithOnceOrAReplayIsKilled(t *testing.T) {
	if testing.Short() {
		return // it takes seconds: a claim that was left is waited for
	}
	killsAndReplays(t, true)
}

func killsAndReplays(t *testing.T, dedupes bool) {
	twins, replayed := 0, 0
	crashes(t, false, eachBroker, func(t *testing.T, l *ledger, round int, points []point, random *rand.Rand) (
		crashed int) {
		const lives = 3 // of each letter at most
		messages := manyMessages(t)
		l.dedupes = dedupes
		for i, p := range points {
			l.fixable(t, share(messages, i, len(points)))
			c := l.child("member-0")
			c.At, c.Nth = p, 1+random.Int64N(often(p))
			if messages >= 1000 && (p == polled || p == beforeEffect) {
				c.Nth += random.Int64N(int64(messages / len(points) / 2))
			}
			consumer := start(t, c)
			if i > 0 { // beside the consumer, which is killed meanwhile
				crashed += l.replayKilled(t, replayPoints[(i+round)%len(replayPoints)], random)
			}
			if consumer.killed(t) {
				crashed++
			}
			if i%3 == 2 { // and alone
				crashed += l.replayKilled(t, replayPoints[random.IntN(len(replayPoints))], random)
			}
		}
		m := start(t, l.child("member-0"))
		l.settled(t)
		for life := 0; ; life++ {
			p := l.replayAll(t)
			l.settled(t)
			if replayed += p.Sent; p.Chosen == 0 {
				break
			}
			if p.Phase != dlq.Done || p.Waiting > 0 || p.Handled+p.Back != p.Sent {
				t.Errorf("a replay to a consumer that reads: %+v", p)
			}
			if life > lives+1 {
				t.Fatalf("letters come back for ever: %+v", p)
			}
		}
		m.end(t)
		twins += l.shownOnce(t)
		return crashed
	})
	t.Cleanup(func() {
		t.Logf("records of dead letters beyond the first: %d, all shown as one; replayed at the ends: %d", twins, replayed)
	})
}

// share is the i-th of n parts of a whole.
func share(whole, i, n int) int { return whole*(i+1)/n - whole*i/n }

// fixable produces n tasks. A tenth of them dies, and is fixed by its first, second or third replay.
func (l *ledger) fixable(t testing.TB, n int) {
	t.Helper()
	records := make([]*kgo.Record, 0, n)
	for i := range max(n, 8) {
		k := task{ID: fmt.Sprint("task-", len(l.tasks))}
		switch i % 20 {
		case 1:
			k.Permanent, k.Fixed = true, 1+len(l.tasks)/20%3
		case 3:
			k.Fails, k.Fixed = 3, 1+len(l.tasks)/20%3
		case 5, 6:
			k.Fails = 1
		}
		l.tasks[k.ID] = k
		value, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, &kgo.Record{Key: []byte(k.ID), Value: value, Partition: int32(i % ledgerPartitions)})
	}
	l.b.produce(t, l.chain.Topic, records...)
}

// replayKilled lets a process replay and kill itself at a point. There may be too few letters to come by there so
// often: then it ends.
func (l *ledger) replayKilled(t testing.TB, p point, random *rand.Rand) (crashed int) {
	t.Helper()
	c := l.child(fmt.Sprint("replay-", random.Uint32()))
	c.Replays, c.At, c.Nth = l.chain.DeadLetters, p, 1+random.Int64N(12)
	m := start(t, c)
	m.ends(t, "being killed, or its end")
	m.dead = true
	if err := m.cmd.Wait(); err != nil && !m.cmd.ProcessState.Success() && m.cmd.ProcessState.ExitCode() < 0 {
		return 1
	}
	return 0
}

// replayAll replays what waits, carefully, as a person would.
func (l *ledger) replayAll(t testing.TB) dlq.Progress {
	t.Helper()
	d := l.desk(t)
	defer d.Close()
	p, err := d.Replay(t.Context(), dlq.Replay{
		Filter: dlq.All(), Rate: 100_000, MaxFailures: 1, MaxReplays: 100, TakeOver: true, Patience: patience,
	})
	if err != nil {
		t.Fatalf("%v %+v", err, p)
	}
	return p
}

func (l *ledger) desk(t testing.TB) *dlq.Desk {
	t.Helper()
	d, err := dlq.Open(t.Context(), dlq.Config{Brokers: []string{l.b.addr}, Topic: l.chain.DeadLetters, By: "ann@bastion"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// shownOnce fails the test for a dead letter that is shown more than once, and returns how many records are not shown
// because they are a letter's second one.
func (l *ledger) shownOnce(t testing.TB) (twins int) {
	t.Helper()
	d := l.desk(t)
	defer d.Close()
	any := dlq.All()
	any.State = dlq.Any
	shown := map[string]int{}
	records := len(l.b.everything(t, l.chain.DeadLetters))
	err := d.Each(t.Context(), any, func(e *dlq.Entry) bool {
		records--
		shown[fmt.Sprintf("%s, replayed %d times before", e.Letter.Value, e.Letter.Replays)]++
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	for letter, n := range shown {
		if n > 1 {
			t.Errorf("twins are shown: %d times %s", n, letter)
		}
	}
	groups, err := d.Groups(t.Context(), any)
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	for i := range groups {
		counted += groups[i].Count
	}
	if counted != len(shown) {
		t.Errorf("the groups count %d letters, there are %d", counted, len(shown))
	}
	return records
}
