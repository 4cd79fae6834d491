package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// What gRPC targets are asked for.
const (
	unaryMethod = "/bench.Echo/Call" // answers a message with the same
	chatMethod  = "/bench.Echo/Chat" // a stream in both directions: every message comes back
)

// unaryLoad keeps so many calls in flight on each of so many connections. A request and its answer have bodySize bytes
// each.
type unaryLoad struct{ conns, streams int }

func (u unaryLoad) String() string {
	return fmt.Sprintf("%d connections × %d in flight", u.conns, u.streams)
}

// drive puts load on addr for a while.
func (u unaryLoad) drive(ctx context.Context, addr string, duration time.Duration) (loadResult, error) {
	workers := make([]unaryWorker, u.conns)
	start := time.Now()
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() { workers[i].run(ctx, addr, start.Add(duration), u.streams) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return loadResult{}, ctx.Err()
	}
	r := loadResult{took: time.Since(start)}
	var latencies []time.Duration
	var why error
	for _, w := range workers {
		latencies = append(latencies, w.latencies...)
		if r.failed += w.failed; why == nil {
			why = w.why
		}
	}
	if len(latencies) == 0 {
		return r, fmt.Errorf("no call was answered: %w", why)
	}
	r.requests = len(latencies) + r.failed
	slices.Sort(latencies)
	r.p50, r.p99 = quantile(latencies, 0.50), quantile(latencies, 0.99)
	return r, nil
}

// unaryWorker is one connection, opened again when it breaks.
type unaryWorker struct {
	latencies []time.Duration
	failed    int
	why       error // of the first failure

	until   time.Time
	conn    *grpcConn
	calls   map[uint32]*unaryCall
	message []byte
	made    int
}

type unaryCall struct {
	began  time.Time
	got    int
	broken error
}

func (w *unaryWorker) run(ctx context.Context, addr string, until time.Time, streams int) {
	w.until = until
	for ctx.Err() == nil && time.Now().Before(until) {
		if err := w.connection(ctx, addr, streams); err != nil {
			w.fail(err, max(1, len(w.calls)))
			time.Sleep(10 * time.Millisecond) // else a closed port would be asked in a tight loop
		}
	}
}

func (w *unaryWorker) fail(why error, calls int) {
	if w.failed += calls; w.why == nil {
		w.why = why
	}
}

// connection makes calls on one connection until the time is over and the last is answered.
func (w *unaryWorker) connection(ctx context.Context, addr string, streams int) (err error) {
	w.calls, w.message = make(map[uint32]*unaryCall), make([]byte, messageHead+bodySize)
	fillMessage(w.message)
	if w.conn, err = dialGRPC(ctx, addr); err != nil {
		return err
	}
	defer w.conn.nc.Close()
	defer context.AfterFunc(ctx, func() { w.conn.nc.Close() })()
	if streams > int(w.conn.streams) {
		return fmt.Errorf("%s allows %d streams on a connection, not %d", addr, w.conn.streams, streams)
	}
	w.conn.bound(time.Until(w.until) + exchangeLimit)
	for range streams {
		if err := w.call(new(unaryCall)); err != nil {
			return err
		}
	}
	for len(w.calls) > 0 {
		e, err := w.conn.next()
		if err != nil {
			return err
		}
		if err := w.take(e); err != nil {
			return err
		}
	}
	return nil
}

// call sends a request. Its time limit differs from that of the one before, as those of real clients do.
func (w *unaryWorker) call(c *unaryCall) error {
	w.made++
	timeout := strconv.Itoa(9_000_000+w.made%1000_000) + "u"
	*c = unaryCall{began: time.Now()}
	w.conn.mu.Lock()
	defer w.conn.mu.Unlock()
	id, err := w.conn.open(unaryMethod, timeout)
	if err != nil {
		return err
	}
	w.calls[id] = c
	return w.conn.send(id, w.message, true)
}

// take handles what came for a call, and makes the next one when it is answered.
func (w *unaryWorker) take(e event) error {
	c := w.calls[e.id]
	if c == nil {
		return fmt.Errorf("something came on stream %d, which is not open", e.id)
	}
	if c.got += len(e.data); e.broken != nil && c.broken == nil {
		c.broken = e.broken
	}
	if !e.ended {
		return nil
	}
	delete(w.calls, e.id)
	if c.broken == nil && (e.status != "0" || c.got != len(w.message)) {
		c.broken = fmt.Errorf("the answer has %d bytes and the status %q, not %d bytes and 0", c.got, e.status,
			len(w.message))
	}
	now := time.Now()
	if c.broken != nil {
		w.fail(c.broken, 1)
	} else {
		w.latencies = append(w.latencies, now.Sub(c.began))
	}
	if now.After(w.until) {
		return nil
	}
	return w.call(c)
}

// probeGRPC makes one call, on a connection of its own.
func probeGRPC(ctx context.Context, addr string) error {
	w := unaryWorker{until: time.Now()}
	return errors.Join(w.connection(ctx, addr, 1), w.why)
}
