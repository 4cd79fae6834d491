package abatekafka

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/redelivery"
)

// Consumer is one consumer group's member, with the retry topics of its topics. Fill in the fields and call Run.
type Consumer struct {
	// Brokers are the addresses to begin with, host:port.
	Brokers []string
	// Group is the consumer group. Each retry topic has a group of its own, called like this with the topic's suffix.
	Group string
	// Topics are the main topics.
	Topics []string
	// Handler gets the messages.
	Handler Handler
	// Guard is the service that the handler calls: its retries are made in the process, before any retry topic; while
	// its circuit is open, nothing is delivered.
	Guard *abate.Guard
	// Redelivery returns what happens to messages that fail: redelivery.Config.Always, or Set.Redelivery of a policy
	// file. It is asked anew for every message, so it must be quick and return the same pointer until something has
	// changed. A change holds at once, but for what names topics, the order and exactlyOnce, which stay until the next
	// Run, and for concurrency and window, which hold for partitions that are assigned after it.
	Redelivery func() *redelivery.Config
	// Pace is shared by the consumers of one service in one process; nil makes one for this consumer.
	Pace *redelivery.Pace

	// Instance names this member, the same after a restart and different from all others: a pod's name in a
	// StatefulSet. It makes the member static (a restart within the session timeout moves no partition) and is its
	// transactional id. Empty: a dynamic member; needed for exactlyOnce.
	Instance string
	// SessionTimeout is how long the broker waits for a sign of life. Zero means the default, 45s.
	SessionTimeout time.Duration
	// Check only checks that the retry topics are there and fit, and creates none.
	Check bool
	// Replication is the replication factor of the topics it creates. Zero: the main topic's.
	Replication int16
	// Options are more options of the clients: TLS, SASL, a dialer.
	Options []kgo.Opt

	// Once, if not nil, recognises messages that were handled before, see Once.
	Once *Deduper

	// OnDeadLetter is called for each dead letter after it was acknowledged: an alert. It must be quick.
	OnDeadLetter func(ctx context.Context, l letter.Letter)
	// Observer gets every event; nil for none. abateprom.Metrics is one.
	Observer redelivery.Observer
	// Logger gets what people should know, with topic, partition and offset. nil means slog.Default().
	Logger *slog.Logger

	current atomic.Pointer[running]
}

// Run consumes until ctx is done, then finishes what is in flight, commits, leaves its groups and returns nil. It
// returns an error at once if the consumer or its topics are not fit: every problem, and how to fix it. Handlers that
// still run when ctx is done get as long as the policy's HandlerTimeout, 10 s at most, before their own context ends;
// what they leave unfinished is delivered again. A Consumer runs once at a time.
//
// A handler that panics does not end the process: the panic is an error of class "panic", with its stack.
func (c *Consumer) Run(ctx context.Context) error {
	r, err := c.begin(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		cmp.Or(c.Logger, slog.Default()).Warn("consumer was told to stop before it had begun", "group", c.Group, "error", err)
		return nil
	case err != nil:
		return err
	}
	if !c.current.CompareAndSwap(nil, r) {
		r.closeClients()
		return errors.New("abatekafka: this Consumer runs already: make another for a second member of the group")
	}
	defer c.current.Store(nil)
	r.run(ctx)
	return nil
}

// State reads the consumer, for dashboards and people. Safe at any time; between runs it has only the names.
func (c *Consumer) State() redelivery.State {
	if r := c.current.Load(); r != nil {
		return r.state(core.Now())
	}
	s := redelivery.State{Group: c.Group}
	if c.Guard != nil {
		s.Service = c.Guard.Name()
	}
	return s
}
