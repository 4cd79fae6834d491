package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
)

// ask is a question to the next layer, for a user. A service that answers questions is the same.
type ask func(ctx context.Context, user string) error

// wire is how two layers speak.
type wire interface {
	// serve starts a service. A gate reports what a request says of its call tree; nil is a plain service.
	serve(g *inbound.Gate, answer ask) (address string, stop func(), err error)
	// dial returns how to ask a service, once: under a guard, which may ask again, or nil.
	dial(address string, g *abate.Guard) (next ask, stop func(), err error)
}

// chain is three services behind a user's client.
type chain struct {
	user ask
	stop []func()

	mu      sync.Mutex
	arrived [3]int         // at checkout, payment and database
	leaf    map[string]int // at the database, for each user's request
	sent    int
}

var names = [3]string{"checkout", "payment", "database"}

// build starts a chain, from its end. policies are those of the user's client, checkout and payment.
func build(wires [3]wire, policies [3]*abate.Policy) (*chain, error) {
	c := &chain{leaf: map[string]int{}}
	answer := func(context.Context, string) error { return errors.New("the database is down") }
	for hop := 2; hop >= 0; hop-- {
		var gate *inbound.Gate
		if hop < 2 && policies[hop+1] != nil {
			var err error
			if gate, err = inbound.NewGate(names[hop], inbound.Protection{TrustedPeers: []string{"127.0.0.1"}}); err != nil {
				return c, err
			}
		}
		next, err := c.link(wires[hop], hop, gate, answer, policies[hop])
		if err != nil {
			c.close()
			return c, err
		}
		answer = next
	}
	c.user = answer
	return c, nil
}

// link starts the service at the end of a hop and returns how the layer before it asks.
func (c *chain) link(w wire, hop int, gate *inbound.Gate, answer ask, p *abate.Policy) (ask, error) {
	address, stop, err := w.serve(gate, func(ctx context.Context, user string) error {
		c.count(hop, user)
		return answer(ctx, user)
	})
	if err != nil {
		return nil, err
	}
	c.stop = append(c.stop, stop)
	var guard *abate.Guard
	if p != nil {
		if guard, err = abate.New(names[hop], *p); err != nil {
			return nil, err
		}
	}
	next, hangUp, err := w.dial(address, guard)
	if err != nil {
		return nil, err
	}
	c.stop = append(c.stop, hangUp)
	if guard == nil {
		next = loop(next)
	}
	return next, nil
}

// loop is what nearly everybody writes.
func loop(once ask) ask {
	return func(ctx context.Context, user string) (err error) {
		for try := 1; ; try++ {
			if err = once(ctx, user); err == nil || try == tries {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func (c *chain) count(hop int, user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrived[hop]++
	if hop == 2 {
		c.leaf[user]++
	}
}

// send is one request of a user.
func (c *chain) send(user string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = c.user(ctx, user) // the database is down
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
}

// close ends everything, and returns what arrived for each request at each service, and at most at the database.
func (c *chain) close() (mean [3]float64, most int) {
	for _, stop := range c.stop {
		defer stop() // the last first: callers before those whom they call
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for hop, n := range c.arrived {
		mean[hop] = float64(n) / float64(max(c.sent, 1))
	}
	for _, n := range c.leaf {
		most = max(most, n)
	}
	return mean, most
}
