package abatekafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What the shutdown of a consumer, and the handing over of a partition, may take.
const (
	handOver    = 5 * time.Second  // until handlers and forwards of a revoked partition are cut off
	lastHandler = 10 * time.Second // the most that handlers get at the end of Run
	leaveLimit  = 5 * time.Second  // for saying goodbye to a broker that may be gone
)

// running is a Consumer between the beginning and the end of Run.
type running struct {
	c        *Consumer
	log      *slog.Logger
	handlers context.Context // of all handlers; it outlives Run's own by what shutdown allows
	cut      context.CancelFunc

	names    redelivery.Config // as they were when Run began: what topics are called does not change after that
	routes   map[string]*route // by main topic
	sessions []*session
	producer *kgo.Client
	batch    int32 // the largest record that all topics take which are forwarded to; 0 if nobody knows
	pace     *redelivery.Pace
	flood    *redelivery.FloodGuard
	once     Handler // the delivery of a message with Once around it; nil without

	current atomic.Pointer[view]
	reload  sync.Mutex

	foreigners sync.Once

	// Wall time and the guards' clock at the same moment, so that a deadline costs no second clock read.
	wall   time.Time
	origin time.Duration
}

// route is where the messages of one main topic go.
type route struct {
	chain   Chain
	forward *forwarder
}

// begin checks the consumer and makes everything that Run needs; it starts nothing yet.
func (c *Consumer) begin(ctx context.Context) (*running, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	r := &running{c: c, log: c.Logger, pace: c.Pace, wall: time.Now(), origin: abate.Now(), routes: map[string]*route{}}
	if r.log == nil {
		r.log = slog.Default()
	}
	r.log = r.log.With("group", c.Group, "service", c.Guard.Name())
	policy := c.Guard.Describe()
	r.names = policy.Kafka.WithDefaults()
	if r.pace == nil {
		r.pace = redelivery.NewPace(r.names.Drain)
	}
	r.flood = redelivery.NewFloodGuard(r.names.Flood)
	r.current.Store(&view{policy: policy, c: r.names, plan: redelivery.NewPlan(r.names)})
	r.handlers, r.cut = context.WithCancel(context.WithoutCancel(ctx))
	if err := r.connect(ctx); err != nil {
		r.closeClients()
		return nil, err
	}
	if c.Once != nil {
		r.once = c.Once.wrap(c.Group, r.names, r.log, r.attempts, r.duplicate)
	}
	return r, nil
}

// validate tells everything that is wrong with the fields at once.
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
		say("Guard is nil: make one with abate.New; its policy's kafka section names the retry topics")
	case !c.Guard.Describe().Kafka.Enabled():
		say("the policy of %q has no retry topics: set kafka.tiers, for example [30s, 5m, 30m]", c.Guard.Name())
	case c.Guard.Describe().Kafka.ExactlyOnce && c.Instance == "":
		say("kafka.exactlyOnce of %q needs Consumer.Instance, a name that this member has again after a restart and no other has: a pod's name in a StatefulSet", c.Guard.Name())
	}
	return errors.Join(all...)
}

// connect makes the clients: the producer and one for each group.
func (r *running) connect(ctx context.Context) (err error) {
	for _, topic := range r.c.Topics {
		r.routes[topic] = &route{chain: NewChain(topic, r.c.Group, r.names)}
	}
	if err := r.preflight(ctx); err != nil {
		return err
	}
	if r.producer, err = kgo.NewClient(r.producerOptions()...); err != nil {
		return fmt.Errorf("abatekafka: the options of the client do not fit: %w", err)
	}
	for _, way := range r.routes {
		way.forward = newForwarder(r.producer, way.chain, r.names, r.c.Group, time.Now)
	}
	for _, s := range r.plan() {
		r.sessions = append(r.sessions, s)
		if err := s.connect(ctx); err != nil {
			return err
		}
	}
	return nil
}

// plan divides the topics into sessions: one for each group, which is one for the main topics and one for each retry topic, so that a
// rebalance of one moves nothing of the others. With park-key they are all in one, so that partitions with the same number meet in one member.
func (r *running) plan() []*session {
	main := newSession(r, r.c.Group)
	all := []*session{main}
	for _, topic := range r.c.Topics {
		way := r.routes[topic]
		main.add(topic, redelivery.Main, way)
		for tier, hop := range way.chain.Hops {
			s := main
			if r.names.Order != redelivery.ParkKey {
				i := slices.IndexFunc(all, func(s *session) bool { return s.group == hop.Group })
				if i < 0 {
					i = len(all)
					all = append(all, newSession(r, hop.Group))
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
	grace := min(r.view().c.HandlerTimeout, lastHandler)
	var done sync.WaitGroup
	for _, s := range r.sessions {
		done.Go(func() { s.release(s.everything(), grace, true) })
	}
	done.Wait()
	r.cut()
}

// closeClients leaves the groups. A static member stays in its group until the session timeout, so that it may come back at once.
func (r *running) closeClients() {
	r.cut()
	var done sync.WaitGroup
	for _, s := range r.sessions {
		if s.client != nil {
			done.Go(s.close)
		}
	}
	done.Wait()
	if r.producer != nil {
		r.producer.Close()
	}
}

// trouble tells that the service's circuit is open.
func (r *running) trouble(now time.Duration) {
	r.pace.Trouble(now)
	r.flood.Trouble(now)
}

// date is when a time of the guards' clock is in wall time.
func (r *running) date(at time.Duration) time.Time { return r.wall.Add(at - r.origin) }
