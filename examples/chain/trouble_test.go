package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/needs"
)

// trouble makes the services of a chain go wrong at random: they refuse, hang, answer too late, go on when nobody
// waits, and their connections break.
type trouble struct {
	chain
	seed   uint64
	dice   map[string]*rand.Rand // one for each user's request
	breaks atomic.Bool           // lines are cut
	busy   int                   // services at work, also those for which nobody waits
}

func (c *trouble) roll(who string, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dice[who]
	if d == nil {
		var number uint64
		fmt.Sscanf(who, "user-%d", &number)
		d = rand.New(rand.NewPCG(c.seed, number))
		c.dice[who] = d
	}
	return d.IntN(n)
}

func (c *trouble) works(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy += n
	return c.busy
}

var errTrouble = errors.New("trouble")

// around is a service with trouble before and after what it does.
func (c *trouble) around(answer ask) ask {
	return func(ctx context.Context, user string) error {
		c.works(1)
		defer c.works(-1)
		ours := ctx
		switch c.roll(user, 14) {
		case 0:
			return errTrouble
		case 1:
			<-ctx.Done() // until its caller has enough
			return ctx.Err()
		case 2, 3:
			var cancel context.CancelFunc
			// does not notice that its caller has left
			ours, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
		}
		err := answer(ours, user)
		switch c.roll(user, 8) {
		case 0:
			<-ctx.Done()
		case 1:
			err = errTrouble
		}
		return err
	}
}

func (c *trouble) database(ctx context.Context, user string) error {
	switch c.roll(user, 6) {
	case 0:
		<-ctx.Done()
		return ctx.Err()
	case 1:
		return nil
	}
	return errTrouble
}

// comesToRest waits for the services that work for callers who have left.
func (c *trouble) comesToRest(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); c.works(0) > 0; <-tick.C {
		if time.Now().After(end) {
			t.Fatal("services go on for ever")
		}
	}
}

// build starts the chain, every layer under a policy.
func (c *trouble) build(t *testing.T, wires [3]wire, p abate.Policy) {
	answer := c.database
	for hop := 2; hop >= 0; hop-- {
		var gate *inbound.Gate
		if hop < 2 {
			var err error
			if gate, err = inbound.NewGate(names[hop], inbound.Protection{TrustedPeers: []string{"127.0.0.1"}}); err != nil {
				t.Fatal(err)
			}
			answer = c.around(answer)
		}
		next, err := c.link(wires[hop], hop, gate, answer, &p)
		if err != nil {
			t.Fatal(err)
		}
		answer = next
	}
	c.user = answer
}

// brittle are lines of which some are cut after a few reads.
type brittle struct {
	net.Listener
	*trouble
}

func (b brittle) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err == nil && b.breaks.Load() {
		conn = &brittleConn{Conn: conn, reads: 6 + b.roll("lines", 40)}
	}
	return conn, err
}

type brittleConn struct {
	net.Conn
	reads int // by the one goroutine that does
}

func (c *brittleConn) Read(p []byte) (int, error) {
	if c.reads--; c.reads < 0 {
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Read(p)
}

// TestWhateverGoesWrongTheDatabaseSeesThree is the promise: with three layers that try three times each, one user's
// request never comes to more than three at the end of the chain, whatever is lost on the way.
func TestWhateverGoesWrongTheDatabaseSeesThree(t *testing.T) {
	needs.Whole(t)
	for name, owner := range map[string]core.RetryOwner{"nearest": core.OwnerNearest, "edge": core.OwnerEdge} {
		for _, p := range protocols {
			t.Run(p.name+" "+name, func(t *testing.T) {
				c := &trouble{chain: chain{leaf: map[string]int{}}, seed: 1, dice: map[string]*rand.Rand{}}
				c.breaks.Store(true)
				wires := p.wires
				for hop, w := range wires {
					if _, ok := w.(overGRPC); ok {
						wires[hop] = overGRPC{through: func(l net.Listener) net.Listener { return brittle{l, c} }}
					}
				}
				p := abate.Policy{Retry: quick(), RetryOwner: owner, RetryMethods: readOnly, AttemptTimeout: 150 * time.Millisecond}
				p.RetryBudget.Disabled, p.CircuitBreaker.Disabled = true, true // the call tree alone has to hold
				c.build(t, wires, p)
				var crowd sync.WaitGroup
				for first := range 16 {
					crowd.Go(func() {
						for id := first; id < 96; id += 16 {
							c.send(fmt.Sprint("user-", id))
						}
					})
				}
				crowd.Wait()
				c.comesToRest(t)
				_, most := c.close()
				seen := map[int]int{}
				c.mu.Lock()
				defer c.mu.Unlock()
				for user, n := range c.leaf {
					if seen[n]++; n > tries {
						t.Errorf("the database saw %s %d times", user, n)
					}
				}
				t.Logf("how often requests came: %v", seen)
				if most < tries || seen[1] == 0 || seen[2] == 0 {
					t.Errorf("too little trouble: %v", seen)
				}
			})
		}
	}
}
