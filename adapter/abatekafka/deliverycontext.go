package abatekafka

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
)

// deliveryContext is the context of one delivery: the partition's, with the time limit of a handler. Like that of an
// attempt in package abate it becomes a real context, with a timer, only when somebody asks for Done: most handlers are
// done long before, and a timer per message would cost as much as the rest of its way.
type deliveryContext struct {
	parent   context.Context
	delivery *delivery
	deadline time.Duration // on the guards' clock

	real atomic.Pointer[realContext]
	mu   sync.Mutex // guards the making of real, and err
	err  error
}

type realContext struct {
	context.Context
	cancel context.CancelFunc
}

// deliveryKey asks a context for the delivery that it was made for.
type deliveryKey struct{}

func (c *deliveryContext) Deadline() (time.Time, bool) {
	return c.delivery.by.shared.date(c.deadline), true
}

func (c *deliveryContext) Done() <-chan struct{} {
	if r := c.real.Load(); r != nil {
		return r.Done()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.real.Load()
	if r == nil {
		r = new(realContext)
		deadline, _ := c.Deadline()
		r.Context, r.cancel = context.WithDeadline(c.parent, deadline)
		if c.err != nil {
			r.cancel()
		}
		c.real.Store(r)
	}
	return r.Done()
}

func (c *deliveryContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = c.currentErr()
	}
	return c.err
}

func (c *deliveryContext) currentErr() error {
	if r := c.real.Load(); r != nil {
		return r.Err()
	}
	if err := c.parent.Err(); err != nil {
		return err
	}
	if core.Now() >= c.deadline {
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks the real context once there is one, so that package context finds it there.
func (c *deliveryContext) Value(key any) any {
	if _, ok := key.(deliveryKey); ok {
		return c.delivery
	}
	if r := c.real.Load(); r != nil {
		return r.Value(key)
	}
	return c.parent.Value(key)
}

// end cancels the context when the delivery is over.
func (c *deliveryContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.real.Load(); r != nil {
		r.cancel()
		if c.err == nil {
			c.err = r.Err()
		}
	} else if c.err == nil {
		c.err = context.Canceled
	}
}
