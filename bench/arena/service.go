package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/internal/loopback"
)

// errBusy and errBroken are the service's two ways to say 503: its queue is full; what the day makes it answer.
var (
	errBusy   = errors.New("the queue is full")
	errBroken = errors.New("broken")
	errLost   = errors.New("no answer")
)

// clock is the time of a day: what has passed since its first second.
type clock struct{ start time.Time }

func (c clock) now() time.Duration { return time.Since(c.start) }

// wait returns when the time has come, or false when ctx has ended before.
func (c clock) wait(ctx context.Context, at time.Duration) bool {
	t := time.NewTimer(at - c.now())
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// endpoint is one address of the service: its share of the workers behind one FIFO queue. A worker does not see whether
// anybody still waits, as in most services: that is what makes an outage last.
type endpoint struct {
	day    day
	number int
	addr   string
	clock  atomic.Pointer[clock] // nil before the day has begun

	mu     sync.Mutex
	queue  chan *job // replaced when it goes down: what was in the old one is lost
	length int       // of the queue

	stop      context.CancelFunc
	running   sync.WaitGroup
	listening listening
	arrived   []atomic.Int64 // attempts, by bucket of the day
}

// job is a request in the queue.
type job struct{ done chan error }

// listening is what takes requests at the endpoint's address: HTTP or gRPC.
type listening func(ctx context.Context, l net.Listener, e *endpoint)

// newEndpoint starts an endpoint that is healthy until its day begins.
func newEndpoint(d day, number int, serve listening) (*endpoint, error) {
	l, err := loopback.Listen()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &endpoint{day: d, number: number, addr: l.Addr().String(), stop: stop, listening: serve,
		length: queueLength / d.endpointsOf(), arrived: make([]atomic.Int64, dayLength/bucket)}
	e.queue = make(chan *job, e.length)
	for i := range workers / d.endpointsOf() {
		e.running.Go(func() { e.work(ctx, i) })
	}
	e.running.Go(func() { e.live(ctx, l) })
	return e, nil
}

// close ends it; who still waits for it gets no answer.
func (e *endpoint) close() {
	e.stop()
	e.running.Wait()
}

// begin starts the day.
func (e *endpoint) begin(c clock) { e.clock.Store(&c) }

// condition is what is wrong now, and until when.
func (e *endpoint) condition() (c condition, until time.Duration, k clock) {
	running := e.clock.Load()
	if running == nil {
		return condition{}, 0, clock{}
	}
	c, until = e.day.at(running.now(), e.number)
	return c, until, *running
}

// glance is how often it is looked at whether the day has changed: far below a bucket.
const glance = 2 * time.Millisecond

// live listens, except while the day says that nobody does.
func (e *endpoint) live(ctx context.Context, l net.Listener) {
	for ctx.Err() == nil {
		up, down := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); e.listening(up, l, e) }()
		e.until(ctx, func(c condition) bool { return c.down })
		down()
		<-ended
		e.lose()
		e.until(ctx, func(c condition) bool { return !c.down })
		for ctx.Err() == nil {
			var err error
			if l, err = net.Listen("tcp", e.addr); err == nil {
				break
			}
			time.Sleep(glance)
		}
	}
}

// until waits for a condition, or for the end.
func (e *endpoint) until(ctx context.Context, reached func(condition) bool) {
	for ctx.Err() == nil {
		if c, _, _ := e.condition(); reached(c) {
			return
		}
		time.Sleep(glance)
	}
}

// lose forgets what was queued.
func (e *endpoint) lose() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = make(chan *job, e.length)
}

func (e *endpoint) line() chan *job {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.queue
}

// handle is one request: it waits for its turn and for a worker. A request whose caller has left stays in the queue.
func (e *endpoint) handle(ctx context.Context) error {
	c, _, k := e.condition()
	if k != (clock{}) {
		if i := int(k.now() / bucket); i < len(e.arrived) {
			e.arrived[i].Add(1)
		}
	}
	if c.loses > 0 && rand.Float64() < c.loses {
		<-ctx.Done()
		return errLost
	}
	j := &job{done: make(chan error, 1)}
	select {
	case e.line() <- j:
	default:
		return errBusy
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return errLost
	}
}

// work is one worker.
func (e *endpoint) work(ctx context.Context, number int) {
	for ctx.Err() == nil {
		if c, until, k := e.condition(); c.workers > 0 && number >= c.workers {
			k.wait(ctx, until)
			continue
		}
		select {
		case j := <-e.line():
			j.done <- e.serve(ctx)
		case <-ctx.Done():
		case <-time.After(glance * 10): // the queue may be another one by now, or this worker gone
		}
	}
}

// serve is the work of one request, with what is wrong when it begins.
func (e *endpoint) serve(ctx context.Context) error {
	c, until, k := e.condition()
	if c.fails > 0 && rand.Float64() < c.fails {
		pause(ctx, c.failsIn)
		return errBroken
	}
	if c.hangs > 0 && rand.Float64() < c.hangs {
		k.wait(ctx, until)
	}
	took := serviceTime
	if c.slower > 0 {
		took = time.Duration(float64(took) * c.slower)
	}
	pause(ctx, took)
	return nil
}

// pause sleeps, or returns when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// serveHTTP takes requests until ctx ends, then breaks all connections.
func serveHTTP(ctx context.Context, l net.Listener, e *endpoint) {
	s := &http.Server{ErrorLog: silent, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch err := e.handle(r.Context()); {
		case err == nil:
			_, _ = w.Write([]byte("done\n")) // a caller that went away is no error
		case errors.Is(err, errLost):
			panic(http.ErrAbortHandler)
		default:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	_ = s.Serve(l) // it ends because it was closed
}
