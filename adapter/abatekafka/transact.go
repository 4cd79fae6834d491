package abatekafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What a transaction of forwards waits for, and what bounds it.
const (
	transactEvery   = 100 * time.Millisecond
	transactMost    = 500
	transactTimeout = 10 * time.Second // until the broker gives up one that was abandoned: readers wait that long
)

// transactor forwards exactly once: the handlers run first, then one short transaction holds their forwards and the
// offsets of what was forwarded. Either both are there or neither, so that a crash leaves no second copy in a retry
// topic.
//
// A forward waits until everything before it in its partition is finished or in the same transaction, because the
// offset says no more than "everything before this". Messages that were handled and not committed are delivered again
// after a crash, as ever.
type transactor struct {
	clients  *clients
	producer *kgo.Client // asks
	log      *slog.Logger
	group    string
	ctx      context.Context        // of all handlers
	commits  *sync.Mutex            // one commit after the other, and none beside a hand-over
	member   func() (string, int32) // of the group: the member and its generation
	kick     chan struct{}

	client  *kgo.Client
	round   int64                    // of this process; marks the offsets, to see the outcome
	ids     map[string][16]byte      // of the topics, as they were at the start
	missing map[string]time.Duration // topics that are not there, and since when

	mu    sync.Mutex
	queue []*outgoing
}

// begin makes the client. What an earlier life of this member left open is decided when it returns.
func (t *transactor) begin(ctx context.Context, topics []string) error {
	t.kick, t.round, t.missing = make(chan struct{}, 1), rand.Int64(), map[string]time.Duration{}
	err := t.connect(ctx)
	if err == nil {
		t.ids, err = t.topicIDs(ctx, topics)
	}
	if err != nil {
		return fmt.Errorf("abatekafka: kafka.exactlyOnce: no transaction can be made as %q: %w; "+
			"see whether the broker has transactions and this user may use that transactional id", t.id(), err)
	}
	return nil
}

// connect makes a client and takes the id over: transactions of earlier clients are decided when it returns.
func (t *transactor) connect(ctx context.Context) error {
	client, err := t.clients.produce(kgo.TransactionalID(t.id()), kgo.TransactionTimeout(transactTimeout), t.versions(ctx))
	if err != nil {
		return err
	}
	if _, _, err := client.ProducerID(ctx); err != nil {
		client.Close()
		return err
	}
	t.client = client
	return nil
}

// enqueue takes a forward into one of the next transactions.
func (t *transactor) enqueue(list ...*outgoing) {
	t.mu.Lock()
	t.queue = append(t.queue, list...)
	full := len(t.queue) >= transactMost
	t.mu.Unlock()
	if full {
		t.flushSoon()
	}
}

func (t *transactor) flushSoon() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

// loop makes transactions until the handlers' context ends.
func (t *transactor) loop() {
	over := t.ctx.Done()
	tick := time.NewTicker(transactEvery)
	defer tick.Stop()
	for failures := 0; ; {
		select {
		case <-over:
			return
		case <-tick.C:
		case <-t.kick:
		}
		err := t.transact(t.ctx)
		if err == nil {
			failures = 0
			continue
		}
		failures++
		delay := min(firstForwardDelay<<min(failures, 9), lastForwardDelay)
		t.log.Error("transaction of forwards and offsets failed: nothing is lost or skipped, it will be made again",
			"again_in", delay, "transactional_id", t.id(), "error", err)
		if waitFor(over, delay) {
			return
		}
	}
}

// load is what one transaction holds.
type load struct {
	forwards []*outgoing
	offsets  map[*partition]int64
}

// take chooses what can go into a transaction now. What cannot stays in the queue.
func (t *transactor) take() load {
	t.mu.Lock()
	queue := t.queue
	t.queue = nil
	t.mu.Unlock()
	queued := make(map[*outgoing]bool, len(queue))
	parts := map[*partition]bool{}
	for _, o := range queue {
		queued[o], parts[o.p] = true, true
	}
	l := load{offsets: map[*partition]int64{}}
	gone := map[*partition]bool{}
	for p := range parts {
		offset, ready, ours := p.prefix(queued, transactMost-len(l.forwards))
		gone[p] = !ours
		if len(ready) > 0 {
			l.offsets[p] = offset
			l.forwards = append(l.forwards, ready...)
		}
	}
	for _, o := range l.forwards {
		delete(queued, o)
	}
	rest := queue[:0]
	for _, o := range queue {
		if queued[o] && !gone[o.p] {
			rest = append(rest, o)
		}
	}
	t.enqueue(rest...)
	return l
}

// transact makes one transaction of what is ready. An error is about the transaction; a record that its topic does not
// take is the partition's.
func (t *transactor) transact(ctx context.Context) error {
	if t.client == nil {
		if err := t.connect(ctx); err != nil {
			return err
		}
	}
	t.commits.Lock()
	defer t.commits.Unlock()
	// Before the choice: if a rebalance comes between, the broker refuses the offsets, which were another generation's.
	member, generation := t.member()
	if generation < 0 {
		return nil
	}
	l := t.take()
	if len(l.forwards) == 0 {
		return nil
	}
	if err := t.leaveOut(ctx, l); err != nil {
		t.enqueue(l.forwards...)
		return err
	}
	if err := t.client.BeginTransaction(); err != nil {
		t.enqueue(l.forwards...)
		t.reset()
		return err
	}
	if !t.produce(ctx, l.forwards) {
		return t.abort(ctx)
	}
	t.round++
	err := t.commitOffsets(ctx, l, member, generation)
	if err == nil {
		if err = t.client.EndTransaction(ctx, kgo.TryCommit); err == nil {
			t.done(l)
			return nil
		}
		return t.unknown(ctx, l, err)
	}
	t.enqueue(l.forwards...)
	return errors.Join(err, t.abort(ctx))
}

// produce writes the forwards. If one is not taken, all go back and false is returned.
func (t *transactor) produce(ctx context.Context, forwards []*outgoing) bool {
	all := records(forwards)
	results := t.client.ProduceSync(ctx, all...)
	if results.FirstErr() == nil && known(ctx, t.client, all) {
		return true
	}
	byRecord := make(map[*kgo.Record]error, len(results))
	for _, r := range results {
		byRecord[r.Record] = r.Err
	}
	for _, o := range forwards {
		switch err := byRecord[o.rec]; {
		case err == nil, errors.Is(err, kgo.ErrAborting), ctx.Err() != nil:
			t.enqueue(o)
		default:
			o.p.notSent(o, err) // it comes back when its time has come
		}
	}
	return false
}

// known waits until a client has noted the partitions that it has written these records to. It may write the first ones
// of a topic a moment before that, and then ends their transaction with an abort, or not at all, and without an error
// (franz-go 1.21.7 and 1.22.2).
func known(ctx context.Context, client *kgo.Client, written []*kgo.Record) bool {
	for _, r := range written {
		for {
			leader, _, err := client.PartitionLeader(r.Topic, r.Partition)
			if leader >= 0 || err != nil { // noted, if perhaps without a leader now
				break
			}
			if waitFor(ctx.Done(), time.Millisecond) {
				return false
			}
		}
	}
	return true
}

func records(forwards []*outgoing) (all []*kgo.Record) {
	for _, o := range forwards {
		o.rec.Timestamp = time.Time{} // of the try before: the client counts its time limit from it
		all = append(all, o.rec)
	}
	return all
}

// abort ends a transaction that is not to be. If that fails, another client takes the id over, which ends it too.
func (t *transactor) abort(ctx context.Context) error {
	err := t.client.AbortBufferedRecords(ctx)
	if err == nil {
		err = t.client.EndTransaction(ctx, kgo.TryAbort)
	}
	if err != nil {
		t.reset()
	}
	return err
}

// close ends the client, if there is one.
func (t *transactor) close() {
	if t.client != nil {
		t.reset()
	}
}

// reset gives the client up; the next transaction makes another.
func (t *transactor) reset() {
	t.client.Close()
	t.client = nil
}

// unknown finds out what has become of a transaction whose end was not confirmed: another client takes the id over, so
// that it is decided, and the group's offset says how.
func (t *transactor) unknown(ctx context.Context, l load, cause error) error {
	t.log.Warn("the end of a transaction was not confirmed; looking whether it was committed",
		"transactional_id", t.id(), "error", cause)
	t.reset()
	for delay := firstForwardDelay; ctx.Err() == nil; delay = min(2*delay, lastForwardDelay) {
		var committed bool
		err := t.connect(ctx)
		if err == nil {
			committed, err = t.committed(ctx, l)
		}
		switch {
		case err == nil && committed:
			t.done(l)
			return nil
		case err == nil:
			t.enqueue(l.forwards...)
			return fmt.Errorf("it was not committed: %w", cause)
		case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
			t.log.Error("this user may not use its transactional id any more", "transactional_id", t.id(), "error", err)
		}
		t.close()
		if waitFor(ctx.Done(), delay) {
			break
		}
	}
	return ctx.Err()
}

// done finishes what was committed.
func (t *transactor) done(l load) {
	for p, offset := range l.offsets {
		p.noteCommitted(offset)
	}
	for _, o := range l.forwards {
		o.p.sent(o, nil)
	}
}
