package abatekafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abate-go/abate/internal/check"
	"github.com/abate-go/abate/internal/check/kafkacheck"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lastHandler is the most that handlers get at the end of Run.
const lastHandler = 10 * time.Second

// running is a Consumer between the beginning and the end of Run.
type running struct {
	*reporter // of the consumer as a whole
	c         *Consumer
	handling  *handling
	cut       context.CancelFunc // ends the handlers
	clients   *clients
	routes    map[string]*route // by main topic
	sessions  []*session
	producer  *kgo.Client
}

// begin checks the consumer and makes everything that Run needs; it starts nothing yet.
func (c *Consumer) begin(ctx context.Context) (*running, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	log := c.Logger
	if log == nil {
		log = slog.Default()
	}
	log = log.With("group", c.Group, "service", c.Guard.Name())
	handlers, cut := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{
		reporter: &reporter{
			observer: c.Observer, log: log, service: c.Guard.Name(), group: c.Group,
			at: place{c.Topics[0], noPartition}, tier: redelivery.Main,
		},
		c: c, cut: cut, routes: map[string]*route{},
		clients: &clients{
			brokers: c.Brokers, more: c.Options, instance: c.Instance, sessionTimeout: c.SessionTimeout, log: log,
		},
	}
	r.handling = &handling{
		service: newService(c.Guard, c.Redelivery, c.Pace, log), handler: c.Handler, alert: c.OnDeadLetter, ctx: handlers,
	}
	if c.Once != nil {
		r.handling.once = c.Once.wrap(c.Group, r.handling.names, log, attempts, r.duplicate)
	}
	if err := r.connect(ctx); err != nil {
		r.closeClients()
		return nil, err
	}
	return r, nil
}

// validate returns everything that is wrong with the fields.
func (c *Consumer) validate() error {
	var all []error
	say := func(format string, args ...any) { all = append(all, fmt.Errorf("abatekafka: "+format, args...)) }
	if len(c.Brokers) == 0 {
		say("Brokers is empty: give at least one address, host:port")
	}
	if c.Group == "" {
		say("Group is empty: name the consumer group")
	}
	if len(c.Topics) == 0 {
		say("Topics is empty: name at least one topic")
	}
	if c.Handler == nil {
		say("Handler is nil: give the function that handles a message")
	}
	for i, topic := range c.Topics {
		if slices.Contains(c.Topics[:i], topic) {
			say("Topics has %q twice: name it once", topic)
		}
	}
	switch {
	case c.Guard == nil:
		say("Guard is nil: make one with abate.New")
	case c.Redelivery == nil:
		say("Redelivery is nil: give redelivery.Config.Always, or Set.Redelivery of a policy file")
	default:
		c.validateRedelivery(say)
	}
	return errors.Join(all...)
}

// validateRedelivery says what is wrong with how messages are delivered again.
func (c *Consumer) validateRedelivery(say func(format string, args ...any)) {
	var wrong check.Errors
	k := *c.Redelivery()
	kafkacheck.Validate(&wrong, k)
	if err := wrong.Join(); err != nil {
		say("%w", err)
	}
	switch {
	case !k.Enabled():
		say("the policy of %q has no retry topics: set kafka.tiers, for example [30s, 5m, 30m]", c.Guard.Name())
	case k.ExactlyOnce && c.Instance == "":
		say("kafka.exactlyOnce of %q needs Consumer.Instance, a name that this member has again after a restart "+
			"and no other has: a pod's name in a StatefulSet", c.Guard.Name())
	}
}

// connect makes the clients: the producer and one for each group.
func (r *running) connect(ctx context.Context) (err error) {
	for _, topic := range r.c.Topics {
		r.routes[topic] = &route{chain: NewChain(topic, r.c.Group, r.handling.names)}
	}
	if err := r.preflight(ctx); err != nil {
		return err
	}
	if r.producer, err = r.clients.produce(); err != nil {
		return err
	}
	for _, way := range r.routes {
		way.forward = newForwarder(r.producer, way.chain, r.handling.names, r.c.Group, time.Now)
	}
	for _, s := range r.plan() {
		r.sessions = append(r.sessions, s)
		if err := s.connect(ctx); err != nil {
			return err
		}
	}
	return nil
}

// plan divides the topics into sessions: one for each group, which is one for the main topics and one for each retry
// topic, so that a rebalance of one moves nothing of the others. With park-key they are all in one, so that partitions
// with the same number meet in one member.
func (r *running) plan() []*session {
	main := newSession(r.reporter, r.clients, r.handling, r.producer, r.c.Group)
	all := []*session{main}
	for _, topic := range r.c.Topics {
		way := r.routes[topic]
		main.add(topic, redelivery.Main, way)
		for tier, hop := range way.chain.Hops {
			s := main
			if r.handling.names.Order != redelivery.ParkKey {
				i := slices.IndexFunc(all, func(s *session) bool { return s.name == hop.Group })
				if i < 0 {
					i = len(all)
					all = append(all, newSession(r.reporter, r.clients, r.handling, r.producer, hop.Group))
				}
				s = all[i]
			}
			s.add(hop.Topic, tier, way)
		}
	}
	return all
}

// run consumes until ctx is done, and closes everything.
func (r *running) run(ctx context.Context) {
	var loops, transactions sync.WaitGroup
	for _, s := range r.sessions {
		if s.txn != nil {
			transactions.Go(s.txn.loop)
		}
		loops.Go(func() { s.poll(ctx) })
		loops.Go(func() { s.commitLoop(ctx) })
		loops.Go(func() { s.lagLoop(ctx) })
	}
	loops.Go(func() { r.watch(ctx) })
	<-ctx.Done()
	loops.Wait()
	r.drain()
	transactions.Wait()
	r.closeClients()
}

// drain lets the handlers and forwards that are under way finish, and commits.
func (r *running) drain() {
	grace := min(r.handling.view().c.HandlerTimeout, lastHandler)
	var done sync.WaitGroup
	for _, s := range r.sessions {
		done.Go(func() { s.release(s.everything(), grace, true) })
	}
	done.Wait()
	r.cut()
}

// closeClients leaves the groups. A static member stays in its group until the session timeout, so that it may come
// back at once.
func (r *running) closeClients() {
	r.cut()
	var done sync.WaitGroup
	for _, s := range r.sessions {
		done.Go(s.close)
	}
	done.Wait()
	if r.producer != nil {
		r.producer.Close()
	}
}

// duplicate reports a message that Once has seen handled.
func (r *running) duplicate(m *Message) {
	for _, s := range r.sessions {
		if src, ok := s.topics[m.Record.Topic]; ok {
			r.partition(place{m.Record.Topic, m.Record.Partition}, src.tier).observe(redelivery.Event{
				Kind: redelivery.Duplicate, Reason: "once", Offset: m.Record.Offset, Delivery: m.Delivery,
			})
		}
	}
}

// preflight looks at the topics of this consumer.
func (r *running) preflight(ctx context.Context) error {
	client, err := r.clients.connect([]kgo.Opt{kgo.RetryTimeout(patience)})
	if err != nil {
		return err
	}
	defer client.Close()
	p := &preflight{
		findings: findings{brokers: strings.Join(r.c.Brokers, ","), group: r.c.Group},
		client:   client, cfg: r.handling.names,
		check: r.c.Check, replication: r.c.Replication,
	}
	for _, topic := range r.c.Topics {
		p.chains = append(p.chains, r.routes[topic].chain)
	}
	if r.c.Once != nil {
		p.remembered(r.c.Once)
	}
	err = p.run(ctx)
	r.clients.batch = p.smallest
	for _, note := range p.notes {
		r.log.Warn("preflight: " + note)
	}
	return err
}
