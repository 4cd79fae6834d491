package proxy

import (
	"context"
	"errors"
	randv2 "math/rand/v2"
	"sync"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// tries is how often a call has been sent, and where last. The copies of a hedged attempt share it.
type tries struct {
	mu   sync.Mutex // of copies
	last *endpoint  // of the last attempt, nil for none
	sent int
}

// renew makes a new attempt of a, with the memory of the last. One that may have copies beside it is not alone.
func (a *answer) renew(r *request, b *content, t *tries, until time.Duration, alone bool, told telling) {
	fields, sent, lines := a.memory()
	*a = answer{
		req: r, body: b, tries: t, until: until, alone: alone,
		head: requestHead{req: r, body: b, told: told, until: until},
		resp: h1.Response{Fields: fields},
		h2:   http2Answer{head: h2.Head{Fields: sent}, lines: lines},
	}
}

// memory is what the next attempt can use again.
func (a *answer) memory() (fields []h1.Field, sent []h2.Field, lines []byte) {
	return a.resp.Fields[:0], a.h2.head.Fields[:0], a.h2.lines[:0]
}

// send makes attempt n, as far as the head of the answer. One that may have copies beside it, which is not alone,
// ends with ctx.
func (a *answer) send(ctx context.Context, n int, now time.Duration) error {
	now, err := fill(a, now)
	if err != nil {
		return err
	}
	if n > 1 && a.req.gone() {
		return errGone
	}
	a.head.number, a.head.now = n, now
	if !a.tries.pick(a, now) {
		return a.req.route.service.noEndpoints()
	}
	e := a.to
	if a.req.traced.recorded {
		beginSpan(a, now)
	}
	if e.scheme == "h2c" || a.req.rpc {
		return a.sendHTTP2(ctx)
	}
	if err := a.takeSlot(ctx); err != nil {
		return err
	}
	if ctx.Err() == context.Canceled { // a copy that has lost while it waited
		return errGone
	}
	of := a.req.client.origin().announced(e.secured.by.Load().proxyProtocol)
	for {
		c := e.idle(of)
		kept := c != nil
		if !kept {
			var err error
			if c, err = e.connect(ctx, &a.req.plane.out, of, now, a.until); err != nil {
				return err
			}
			a.head.now = core.Now()
		}
		a.conn = c
		err := a.roundTripUnder(ctx)
		if err != errStale || !kept {
			return a.heard(err, kept)
		}
		a.conn = nil
		c.nc.Close()
		c.in.put()
	}
}

// heard is what the error of a round trip means.
func (a *answer) heard(err error, kept bool) error {
	if c := a.conn; err == nil || kept || c.security == nil || len(c.in.unread()) > 0 || !turnedAway(err) {
		return err
	}
	a.sent = false
	return &handshakeError{a.to.addr, err}
}

// roundTripUnder is roundTrip for an attempt that ends with ctx, unless it is alone.
func (a *answer) roundTripUnder(ctx context.Context) error {
	if a.alone {
		return a.roundTrip()
	}
	c := a.conn
	defer context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // read sees by itself that the time is up
			a.cancelled.Store(true)
			c.nc.SetReadDeadline(time.Unix(1, 0))
		}
	})()
	return a.roundTrip()
}

// takeSlot waits for a connection, within the attempt's time.
func (a *answer) takeSlot(ctx context.Context) error {
	r, b := a.req, &a.req.plane.out.upstreamSlots
	held := &r.client.origin().upstreamSlots
	if a.slot.take(b, held) {
		return nil
	}
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	for !a.slot.take(b, held) {
		now := core.Now()
		switch {
		case r.gone() || ctx.Err() == context.Canceled:
			return errGone
		case now >= a.until || ctx.Err() != nil:
			return errNoUpstreamSlot
		}
		wait := time.NewTimer(min(glance/4, a.until-now))
		select {
		case <-b.freed:
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
	}
	a.head.now = core.Now()
	return nil
}

// mayRepeat reports whether the request may be sent again after a: it does no harm, or a has not reached the service;
// its body is still there; and in a gateway the file allows it.
func (a *answer) mayRepeat() bool {
	return (a.req.again || !a.sent) && a.body.replayable() && !(a.body.once && a.sent) && a.req.ownsRetries()
}

// pick chooses the endpoint of an attempt, of those that there are by now. It reports false if there is none.
func (t *tries) pick(a *answer, now time.Duration) bool {
	if !a.alone {
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	f, avoid := a.req.route.service.newest(a.req.fleet), -1
	if t.last != nil {
		avoid = f.indexOf(t.last)
	}
	i, pending := f.balancer.Begin(now, randv2.Uint64(), avoid)
	if i < 0 {
		return false
	}
	a.to, a.begun, a.picked, a.dated = f.endpoints[i], pending, true, now
	t.last = a.to
	return true
}
