package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// await waits for the end of a dial.
func (a *answer) await(ctx context.Context, d *dial) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := core.Now()
		if now >= a.until {
			return &timeLimitError{"no connection"}
		}
		timer.Reset(min(a.until-now, glance))
		select {
		case <-d.done:
			return d.err
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return &timeLimitError{"no connection"}
			}
			return errGone
		case <-timer.C:
		}
		if a.req.gone() {
			return errGone
		}
	}
}

// sendHTTP2 is the attempt over HTTP/2, as far as the head of the answer; for gRPC as far as its verdict or first
// message. A connection that turns out to be ending is nobody's failure: once the request goes to another, as over
// HTTP/1.1.
func (a *answer) sendHTTP2(ctx context.Context) error {
	h, e := &a.h2, a.to
	h.began = core.Now()
	for stale := 0; ; a.head.now = core.Now() {
		conn, err := a.connectHTTP2(ctx, &e.http2)
		if err != nil {
			return err
		}
		h.lines, h.extended = a.head.http2(&h.head, h.lines, e), false // behind the wait: it tells how much time is left
		if err = a.openHTTP2(conn); err == nil {
			if err = a.converseHTTP2(ctx); err == nil {
				return nil
			}
		}
		a.closeHTTP2()
		if err == h2.ErrTooManyStreams || err == h2.ErrGoingAway { // somebody was quicker
			continue
		}
		var end *h2.StreamError
		if !errors.As(err, &end) || !end.Refused {
			return a.because(err)
		}
		a.sent = false
		if stale++; stale > 1 || end.Cause == nil || !a.body.replayable() {
			return a.because(err)
		}
	}
}

// connectHTTP2 returns a connection that has room for a stream, as far as can be known, within the attempt's time.
func (a *answer) connectHTTP2(ctx context.Context, p *http2Pool) (*h2.Conn, error) {
	for {
		c, d, err := p.get(&a.req.plane.out)
		if c != nil || err != nil {
			return c, err
		}
		if err := a.await(ctx, d); err != nil {
			return nil, err
		}
		a.head.now = core.Now()
	}
}

// openHTTP2 sends the head of the request on a connection, and as much of its content as is there.
func (a *answer) openHTTP2(conn *h2.Conn) (err error) {
	h, b := &a.h2, a.body
	switch {
	case a.req.asksWebSocket() && conn.TakesConnect():
		h.extend()
		h.s, _, err = conn.Open(&h.head, nil, false, a.until)
	case b.kind == streamed:
		if a.req.Expect { // nobody waits for what the service thinks of it
			a.req.client.interim(http.StatusContinue, nil)
			a.req.Expect = false
		}
		h.s, err = b.feedTo(conn, &h.head, a.until)
	default:
		err = h.openWhole(conn, b, a.req.rpc, a.until)
	}
	if a.sent = h.s != nil; a.sent && b.kind == streamed {
		a.listen()
	}
	return err
}

// converseHTTP2 waits for the answer to begin. An attempt that is not alone ends with ctx.
func (a *answer) converseHTTP2(ctx context.Context) error {
	if a.alone {
		return a.beginHTTP2()
	}
	s, stopped := a.h2.s, make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // the waits see by themselves that the time is up
			a.cancelled.Store(true)
			s.Interrupt()
		}
	})
	defer func() {
		if !stop() {
			<-stopped // the stream may be closed from here on
		}
	}()
	return a.beginHTTP2()
}

// because is what became of the attempt.
func (a *answer) because(err error) error {
	var end *h2.StreamError
	switch {
	case err == h2.ErrTimeUp:
		return &timeLimitError{"nothing sent"}
	case errors.As(err, &end) && a.req.gone():
		return errGone
	case a.overdue(err):
		return &timeLimitError{"no answer"}
	case errors.As(err, &end):
		return resetError{end}
	}
	return err
}
