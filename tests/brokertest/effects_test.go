package brokertest_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/internal/needs/postgres"
)

// task is a message of the crash tests: what is to become of it, whatever happens to its consumers.
type task struct {
	ID        string
	Fails     int  // so many deliveries fail
	Permanent bool // the first delivery fails for good
	Fixed     int  // after so many replays it succeeds; 0 for never
}

// dies reports whether it ends as a dead letter; else it has one effect.
func (k task) dies() bool { return (k.Permanent || k.Fails > 2) && k.Fixed == 0 }

// ledger is a topic of tasks, its retry topics, and the table of their effects: everything by which it is known whether
// something was lost or done twice.
type ledger struct {
	b       broker
	admin   *kadm.Client
	db      *sql.DB
	dsn     string
	effects string // the table
	chain   abatekafka.Chain
	once    bool // exactly-once forwarding
	dedupes bool // its members go by Consumer.Once
	tasks   map[string]task
}

// verdict is what became of the tasks of some ledgers.
type verdict struct {
	tasks, effects, letters            int
	lost, twice, unplanned, moreCopies int
}

func (v *verdict) add(o verdict) {
	v.tasks += o.tasks
	v.effects += o.effects
	v.letters += o.letters
	v.lost += o.lost
	v.twice += o.twice
	v.unplanned += o.unplanned
	v.moreCopies += o.moreCopies
}

func (v verdict) String() string {
	return fmt.Sprintf("%d messages: %d effects, %d dead letters; lost %d, duplicate effects %d, other ends than "+
		"planned %d, second copies of records %d",
		v.tasks, v.effects, v.letters, v.lost, v.twice, v.unplanned, v.moreCopies)
}

const ledgerPartitions = 2

func newLedger(t testing.TB, b broker, exactlyOnce bool) *ledger {
	t.Helper()
	server := postgres.Shared(t)
	l := &ledger{b: b, admin: b.admin(t), dsn: server.DSN(), once: exactlyOnce, tasks: map[string]task{}}
	db, err := sql.Open("pgx", l.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	l.db = db
	topic := b.topic(t, ledgerPartitions)
	l.chain = abatekafka.NewChain(topic, "ledger-"+topic, chainOf(exactlyOnce))
	l.effects = "effects_" + strings.ToLower(strings.ReplaceAll(topic[max(0, len(topic)-30):], "-", "_"))
	store, err := abatesql.NewStore(db, abatesql.Config{Table: l.effects + "_keys"})
	if err == nil {
		err = store.CreateTable(t.Context())
	}
	if err == nil {
		// without a key: a second effect is to be seen
		_, err = db.Exec(`CREATE TABLE ` + l.effects + ` (task text, message text)`)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// child is a member of the ledger's group.
func (l *ledger) child(instance string) child {
	return child{Addr: l.b.addr, DSN: l.dsn, Effects: l.effects, Topic: l.chain.Topic, Group: l.chain.Group,
		Instance: instance, ExactlyOnce: l.once, Dedupes: l.dedupes}
}

// write produces one task of each kind and some more that succeed, on all partitions.
func (l *ledger) write(t testing.TB) {
	t.Helper()
	var records []*kgo.Record
	for i, k := range []task{{}, {Fails: 1}, {Fails: 2}, {Fails: 3}, {}, {Permanent: true}, {Fails: 1}, {}, {Fails: 2}, {},
		{Permanent: true}, {Fails: 1}} {
		k.ID = fmt.Sprint("task-", len(l.tasks))
		l.tasks[k.ID] = k
		value, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, &kgo.Record{Key: []byte(k.ID), Value: value, Partition: int32(i % ledgerPartitions)})
	}
	l.b.produce(t, l.chain.Topic, records...)
}

// topics are the main topic and the retry topics, with their groups.
func (l *ledger) topics() map[string]string {
	all := map[string]string{l.chain.Topic: l.chain.Group}
	for _, hop := range l.chain.Hops {
		all[hop.Topic] = hop.Group
	}
	return all
}

// lag is how many offsets of the ledger's topics no consumer has committed, -1 if it cannot be told now.
func (l *ledger) lag(t testing.TB) (n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	groups := l.topics()
	// the way that messages go: what has left one topic is in the next, which is looked at later
	order := []string{l.chain.Topic}
	for _, hop := range l.chain.Hops {
		order = append(order, hop.Topic)
	}
	for _, topic := range order {
		committed, err := l.admin.FetchOffsets(ctx, groups[topic])
		if err != nil {
			return -1
		}
		ends, err := l.admin.ListEndOffsets(ctx, topic)
		if err != nil || ends.Error() != nil {
			return -1
		}
		ends.Each(func(end kadm.ListedOffset) {
			offset, _ := committed.Lookup(topic, end.Partition)
			n += end.Offset - max(offset.At, 0)
		})
	}
	return n
}

// settled waits until every record is finished, and nothing is stuck.
func (l *ledger) settled(t testing.TB) {
	t.Helper()
	left := int64(-1)
	defer func() {
		if left != 0 {
			t.Logf("stuck: %s and its retry topics have a lag of %d", l.chain.Topic, left)
		}
	}()
	eventually(t, "all records of "+l.chain.Topic+" and its retry topics to be finished", func() bool {
		left = l.lag(t)
		return left == 0
	})
}

// judge compares what happened with what was planned, and fails the test for each task with another end.
func (l *ledger) judge(t testing.TB) (v verdict) {
	t.Helper()
	effects := l.done(t)
	letters := map[string]int{}
	for _, r := range l.b.everything(t, l.chain.DeadLetters) {
		var k task
		if err := json.Unmarshal(r.Value, &k); err != nil {
			t.Errorf("dead letter %q is none of ours: %v", r.Value, err)
		}
		letters[k.ID]++
		v.letters++
	}
	for _, id := range slices.SortedFunc(maps.Keys(l.tasks), func(a, b string) int {
		return cmp.Or(len(a)-len(b), cmp.Compare(a, b))
	}) {
		k := l.tasks[id]
		v.tasks++
		v.effects += effects[id]
		switch dead, done := letters[id] > 0, effects[id] > 0; {
		case !dead && !done:
			v.lost++
			t.Errorf("%+v is lost: neither an effect nor a dead letter", k)
		case dead != k.dies() && k.Fixed == 0 || done == k.dies():
			v.unplanned++
			t.Errorf("%+v has %d effects and %d dead letters", k, effects[id], letters[id])
		}
		if effects[id] > 1 {
			v.twice++
			t.Errorf("%+v has %d effects", k, effects[id])
		}
	}
	if len(effects) > len(l.tasks) || len(letters) > len(l.tasks) {
		t.Errorf("%d tasks with effects and %d with dead letters of %d", len(effects), len(letters), len(l.tasks))
	}
	v.moreCopies = l.copies(t)
	if l.once && v.moreCopies > 0 {
		t.Errorf("%d records of the retry and dead-letter topics are there more than once, though forwarding is exactly once",
			v.moreCopies)
	}
	return v
}

func (l *ledger) done(t testing.TB) map[string]int {
	t.Helper()
	rows, err := l.db.Query(`SELECT task, count(*) FROM ` + l.effects + ` GROUP BY task`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	effects := map[string]int{}
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			t.Fatal(err)
		}
		effects[id] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return effects
}

// copies counts the forwards that a reader of committed records sees more than once.
func (l *ledger) copies(t testing.TB) (n int) {
	t.Helper()
	seen := map[string]bool{}
	topics := []string{l.chain.DeadLetters}
	for _, hop := range l.chain.Hops {
		topics = append(topics, hop.Topic)
	}
	for _, topic := range topics {
		for _, r := range l.b.everything(t, topic) {
			read, _ := letter.Read(r)
			is := fmt.Sprintf("%s %+v", topic, read.Original)
			if seen[is] {
				n++
			}
			seen[is] = true
		}
	}
	return n
}
