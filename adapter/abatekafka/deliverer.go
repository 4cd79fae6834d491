package abatekafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/redelivery"
)

// handling is what all deliveries of one Run have in common.
type handling struct {
	*service
	handler    Handler
	once       Handler                                    // the delivery of a message with Once around it; nil without
	alert      func(ctx context.Context, l letter.Letter) // about a dead letter; may be nil
	ctx        context.Context                            // of all handlers; it outlives Run's own by what shutdown allows
	foreigners sync.Once
}

// route is where the messages of one main topic go.
type route struct {
	chain   Chain
	forward *forwarder
}

// deliverer delivers the messages of one partition, and says what is to become of them. It keeps no queue and holds no
// lock while a handler runs.
type deliverer struct {
	*reporter
	shared  *handling
	ctx     context.Context // of the handlers
	order   redelivery.Order
	way     *route
	parking *parked // nil unless the order is park-key
	recent  recent
}

// ending is what becomes of a record after its delivery.
type ending struct {
	action  endAction
	delay   time.Duration // of hold
	refused bool          // the hold follows a refusal of our own policies
	flooded bool          // the hold is for as long as a flood of dead letters lasts
	stop    time.Duration // how long nothing else of the partition is started, either
	why     stopReason    // of stop
	instead *Message      // of hold: what is delivered the next time, if it is not the same
	out     *forward      // of send
}

type endAction uint8

const (
	done endAction = iota
	hold
	send
	left // unfinished: the consumer is on its way out
)

type forward struct {
	rec    *kgo.Record
	event  redelivery.Event // to be reported when it was acknowledged
	letter *letter.Letter   // of a dead letter
	tier   int              // of a retry topic
}

// stopReason is why a partition starts nothing.
type stopReason int

const (
	circuitOpen stopReason = iota
	pacing
	forwardFailed
	rebuilding
	stopReasons
)

func (r stopReason) String() string {
	return [...]string{"circuit-open", "pace", "forward-failed", "rebalance"}[r]
}

// deliver makes one delivery: it asks nobody for leave, that has been done.
func (l *deliverer) deliver(d *delivery) ending {
	if nothing(d.record.rec) {
		l.shared.pace.Done(d.began, 0, false)
		return ending{}
	}
	d.context.parent, d.context.delivery = l.ctx, d
	d.context.deadline = d.began + l.shared.view().c.HandlerTimeout
	d.message = l.message(d.record, &d.own)
	end, over := l.beforehand(d)
	if !over {
		end, over = l.whole(d)
	}
	if over {
		l.shared.pace.Done(d.began, 0, false) // the service does not see it
		return end
	}
	if l.observer != nil {
		l.observe(d.event(redelivery.Delivered))
	}
	err := d.run()
	after := core.Now()
	d.latency = after - d.began
	d.context.end()
	l.shared.pace.Done(after, d.attempts, err == nil)
	if err != nil {
		return l.failed(d, after, err)
	}
	if d.attempts > 0 {
		l.shared.flood.Handled(after)
		if l.observer != nil {
			l.observe(d.event(redelivery.Handled))
		}
	}
	return ending{}
}

// whole makes sure that a message is delivered with its value, also if that was too large to be forwarded and only its
// place was. If the value is gone the message is a dead letter; if it cannot be read now the message waits. over
// reports that it is not delivered now.
func (l *deliverer) whole(d *delivery) (end ending, over bool) {
	if !d.message.Letter.Pointer {
		return ending{}, false
	}
	err := l.way.forward.restore(&d.context, d.message)
	switch {
	case err == nil:
		return ending{}, false
	case errors.Is(err, letter.ErrGone):
		d.outcome = abate.Outcome{Class: abate.Failure, NoRetry: true, Err: err}
		return l.failed(d, core.Now(), err), true
	}
	const again = time.Second
	l.log.Warn("message came as a pointer to its value, which cannot be read now; it waits",
		"offset", d.record.rec.Offset, "again_in", again, "error", err)
	return ending{action: hold, delay: again, refused: true}, true
}
