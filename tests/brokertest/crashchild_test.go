package brokertest_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/policy/redelivery"
)

// childData is the variable that makes the test binary a consumer that can be killed.
const childData = "ABATEKAFKA_CHILD"

func init() {
	if text := os.Getenv(childData); text != "" {
		beChild(text)
		os.Exit(0)
	}
}

// point is a place between poll and commit.
type point string

// The points, in the order in which one message comes by.
const (
	polled       point = "polled, not yet handled"
	beforeEffect point = "in the handler, before the effect"
	afterEffect  point = "in the handler, after the effect is committed"
	decided      point = "failed and decided, not yet sent"
	sent         point = "forward sent, not yet acknowledged"
	acknowledged point = "forward acknowledged, not yet marked"
	offsetsSent  point = "offsets sent into the transaction, not yet acknowledged"
	endSent      point = "end of the transaction sent, not yet acknowledged"
	ended        point = "transaction ended"
	commitSent   point = "commit sent, not yet acknowledged"
	committed    point = "committed"
)

// pointsOf are those that a consumer comes by.
func pointsOf(exactlyOnce bool) []point {
	all := []point{polled, beforeEffect, afterEffect, decided, sent, acknowledged, commitSent, committed}
	if exactlyOnce {
		all = append(all, offsetsSent, endSent, ended)
	}
	return all
}

// child is one member, in a process of its own.
type child struct {
	Addr, DSN, Effects     string
	Topic, Group, Instance string
	ExactlyOnce            bool
	Session                time.Duration
	At                     point         // where something happens to it; "" for nothing
	Nth                    int64         // at its so-manieth time there
	Hold                   bool          // it says so and waits for a line; else it kills itself
	Linger                 time.Duration // so long after it has come there, while everything else goes on
	Dedupes                bool          // it goes by Consumer.Once instead of a record in the effect's own transaction
	Replays                string        // it replays this dead-letter topic instead of consuming
}

// chainOf is the policy of the crash tests. Three deliveries.
func chainOf(exactlyOnce bool) redelivery.Config {
	return redelivery.Config{
		Tiers: []time.Duration{100 * time.Millisecond, 250 * time.Millisecond}, Concurrency: 4,
		HandlerTimeout: 30 * time.Second, ExactlyOnce: exactlyOnce,
		Flood: redelivery.Flood{Disabled: true}, // a tenth of the messages dies, and nobody waits for the end of a flood
	}
}

// beChild is what the process does: it says what happens in lines, and ends when it is told the end of its input.
func beChild(text string) {
	c := &childProcess{out: os.Stdout, input: make(chan string)}
	if err := json.Unmarshal([]byte(text), &c.child); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			c.input <- in.Text()
		}
		cancel()
	}()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// childProcess is a child in its process.
type childProcess struct {
	child
	mu      sync.Mutex
	out     *os.File
	input   chan string
	passed  atomic.Int64
	db      *sql.DB
	effects *abatesql.Store
}

func (c *childProcess) run(ctx context.Context) (err error) {
	if c.Replays != "" {
		return c.replay(ctx)
	}
	if c.db, err = sql.Open("pgx", c.DSN); err != nil {
		return err
	}
	if c.effects, err = abatesql.NewStore(c.db, abatesql.Config{Table: c.Effects + "_keys"}); err != nil {
		return err
	}
	guard, err := abate.New("ledger", abate.Policy{})
	if err != nil {
		return err
	}
	consumer := &abatekafka.Consumer{
		Brokers: []string{c.Addr}, Group: c.Group, Topics: []string{c.Topic}, Instance: c.Instance, SessionTimeout: c.Session,
		Guard: guard, Redelivery: chainOf(c.ExactlyOnce).Always(), Handler: c.handle, Replication: 1,
		Options: []kgo.Opt{
			kgo.WithHooks(c), kgo.FetchMaxWait(100 * time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
	if c.Dedupes {
		consumer.Once = abatekafka.Once(c.effects)
		consumer.Once.Lease = 5 * time.Second
	}
	return consumer.Run(ctx)
}

// replay puts the dead letters back, and is killed somewhere on the way. It waits for nobody: the consumers are killed,
// too.
func (c *childProcess) replay(ctx context.Context) error {
	d, err := dlq.Open(ctx, dlq.Config{
		Brokers: []string{c.Addr}, Topic: c.Replays, By: c.Instance, Options: []kgo.Opt{kgo.WithHooks(c)},
	})
	if err != nil {
		return err
	}
	defer d.Close()
	p, err := d.Replay(ctx, dlq.Replay{Filter: dlq.All(), Rate: 2000, Settle: 10 * time.Millisecond, MaxFailures: 1,
		MaxReplays: 100, Unjudged: true, TakeOver: true})
	fmt.Fprintf(os.Stderr, "%+v\n", p)
	return err
}

func (c *childProcess) say(what string, more ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(c.out, append([]any{what}, more...)...)
}

// at is called at every point.
func (c *childProcess) at(p point) {
	if p != c.At || c.passed.Add(1) != c.Nth {
		return
	}
	if !c.Hold {
		<-time.NewTimer(c.Linger).C
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {}
	}
	c.say("at", p)
	<-c.input
}

// errPlanned is how a message fails that is to fail.
var errPlanned = errors.New("planned to fail")

// handle has its effect in PostgreSQL, in one transaction with the record of it.
func (c *childProcess) handle(ctx context.Context, m *abatekafka.Message) error {
	c.at(beforeEffect)
	var task task
	if err := json.Unmarshal(m.Value, &task); err != nil {
		return abate.Permanent(err)
	}
	switch {
	case task.Fixed > 0 && m.Letter.Replays >= task.Fixed:
	case task.Permanent:
		return abate.Permanent(errPlanned)
	case m.Delivery <= task.Fails:
		return errPlanned
	}
	if c.Dedupes {
		return c.effect(ctx, task, m)
	}
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = c.effects.Once(ctx, tx, m.ID(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO `+c.Effects+` VALUES ($1, $2)`, task.ID, m.ID())
		return err
	})
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return err
	}
	c.at(afterEffect)
	return nil
}

// effect is what a handler does under Consumer.Once: told that a delivery before it may have had the effect, it looks.
func (c *childProcess) effect(ctx context.Context, task task, m *abatekafka.Message) error {
	if claim, _ := abatekafka.ClaimOf(ctx); claim.TakenOver {
		var there int
		if err := c.db.QueryRowContext(ctx, `SELECT count(*) FROM `+c.Effects+` WHERE message = $1`, m.ID()).Scan(
			&there); err != nil || there > 0 {
			return err
		}
	}
	if _, err := c.db.ExecContext(ctx, `INSERT INTO `+c.Effects+` VALUES ($1, $2)`, task.ID, m.ID()); err != nil {
		return err
	}
	c.at(afterEffect)
	return nil
}

// The keys of Kafka's requests.
const (
	keyProduce         = 0
	keyOffsetCommit    = 8
	keyJoinGroup       = 11
	keyEndTxn          = 26
	keyTxnOffsetCommit = 28
)

func (c *childProcess) OnFetchRecordUnbuffered(r *kgo.Record, handedOut bool) {
	if handedOut && !r.Attrs.IsControl() {
		c.at(polled)
	}
}

func (c *childProcess) OnProduceRecordBuffered(*kgo.Record) { c.at(decided) }

func (c *childProcess) OnProduceRecordUnbuffered(_ *kgo.Record, err error) {
	if err == nil {
		c.at(acknowledged)
	}
}

func (c *childProcess) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	switch {
	case err != nil:
	case key == keyProduce:
		c.at(sent)
	case key == keyOffsetCommit:
		c.at(commitSent)
	case key == keyTxnOffsetCommit:
		c.at(offsetsSent)
	case key == keyEndTxn:
		c.at(endSent)
	case key == keyJoinGroup:
		c.say("joining")
	}
}

func (c *childProcess) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	switch {
	case err != nil:
	case key == keyOffsetCommit:
		c.at(committed)
	case key == keyEndTxn:
		c.at(ended)
	}
}
