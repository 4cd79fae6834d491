package abateredis

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate/core"
)

// listen begins to hear what the others found out, if that has not begun.
func (f *Fleet) listen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.listening {
		f.listening = true
		f.running.Go(f.hearing)
	}
}

// quiet is after how long a connection on which nothing comes is tried with a ping, and given up when nothing comes
// again.
const quiet = 3 * time.Second

// hearing hears until the fleet is closed.
func (f *Fleet) hearing() {
	for f.ctx.Err() == nil {
		if l := f.link.Load(); !l.away(core.Now()) {
			f.hear(l)
		}
		select { // drawn, so that a fleet does not come back all at once
		case <-f.ctx.Done():
		case <-time.After(200*time.Millisecond + rand.N(800*time.Millisecond)):
		}
	}
}

// hear passes findings on until the connection fails or is not wanted any more.
func (f *Fleet) hear(l *link) {
	subscription := l.client.Subscribe(f.ctx, l.channel())
	defer context.AfterFunc(f.ctx, func() { _ = subscription.Close() })() // which ends a read
	defer subscription.Close()
	for asked := false; f.link.Load() == l; {
		m, err := subscription.ReceiveTimeout(f.ctx, quiet)
		var timeout net.Error
		switch {
		case err == nil:
			asked = false
		case asked || !errors.As(err, &timeout) || !timeout.Timeout():
			return
		default:
			asked = true
			if subscription.Ping(f.ctx) != nil {
				return
			}
		}
		if message, ok := m.(*redis.Message); ok {
			f.advise(message.Payload)
		}
	}
}

// advise passes a finding on to the breaker it is about.
func (f *Fleet) advise(message string) {
	found, ok := parseFinding(message)
	if !ok || found.instance == f.id {
		return
	}
	f.mu.Lock()
	s := f.guards[found.guard]
	f.mu.Unlock()
	if s == nil {
		return
	}
	if b := s.guard.Breaker(); b != nil {
		b.Advise(core.Now(), found.wait)
	}
}
