package discovery

import (
	"cmp"
	"context"
	"errors"
	randv2 "math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Watcher looks for the addresses of one service until Stop. Its methods may be called by any goroutine.
type Watcher struct {
	config Config
	stop   context.CancelFunc
	done   chan struct{}
	first  chan struct{} // closed after the first look

	mu     sync.Mutex // guards what follows
	list   []Endpoint
	status Status
}

// Start begins to look. before is the list to begin with, which is kept until there is an answer; nil for none.
func Start(c Config, before []Endpoint) *Watcher {
	c.Interval = cmp.Or(c.Interval, shortest)
	ctx, stop := context.WithCancel(context.Background())
	w := &Watcher{config: c, stop: stop, done: make(chan struct{}), first: make(chan struct{}), list: before,
		status: Status{From: c.from(), Endpoints: len(before)}}
	go w.run(ctx)
	return w
}

// Stop ends the looking, and waits for that.
func (w *Watcher) Stop() {
	w.stop()
	<-w.done
}

// Config is what it looks for.
func (w *Watcher) Config() *Config { return &w.config }

// First is closed after the first look, whatever it brought.
func (w *Watcher) First() <-chan struct{} { return w.first }

// List is the endpoints there are, ordered by address. Nobody may change it.
func (w *Watcher) List() []Endpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list
}

// Status says how the looking goes.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	switch c := &w.config; c.Type {
	case "kubernetes":
		w.followKubernetes(ctx)
	case "file":
		f := &file{path: c.Path, every: c.Interval}
		w.poll(ctx, func(ctx context.Context) ([]Endpoint, time.Duration, error) {
			list, _, err := f.look(ctx)
			return list, 0, err
		}, true)
	case "srv":
		w.poll(ctx, c.lookSRV, false)
	default:
		w.poll(ctx, c.lookDNS, false)
	}
}

// poll looks again and again. A file is looked at in even steps: nobody is asked, so nobody needs rest.
func (w *Watcher) poll(ctx context.Context, look func(context.Context) ([]Endpoint, time.Duration, error), even bool) {
	p := pace{shortest: w.config.Interval}
	for {
		list, ttl, err := look(ctx)
		if ctx.Err() != nil {
			return
		}
		w.tell(list, err)
		wait := w.config.Interval
		switch {
		case even:
		case err != nil:
			wait = p.afterFailure(randv2.Uint64())
		default:
			wait = p.after(ttl, randv2.Uint64())
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// sleep waits, and reports false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tell takes what a look brought: a list, which is in force from now on, or why there is none.
func (w *Watcher) tell(list []Endpoint, err error) {
	if err == nil {
		list = slices.Clone(list)
		order(list)
	}
	changed, said := w.note(list, err)
	first := false
	select {
	case <-w.first:
	default:
		first = true
	}
	if (changed || first) && w.config.Changed != nil {
		w.config.Changed()
	}
	if first {
		close(w.first)
	}
	if log := w.config.Log; log != nil && said != nil {
		said()
	}
}

// note keeps the outcome of a look, and returns what there is to say in the log: once when something goes wrong, and
// once when it is well again.
func (w *Watcher) note(list []Endpoint, err error) (changed bool, said func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, log, name := &w.status, w.config.Log, w.config.Service
	was := s.Err
	s.Err = err
	now := time.Now()
	if err != nil {
		s.Failures++
		if was == nil || was.Error() != err.Error() {
			problem := s.Problem()
			said = func() { log.Error("endpoints not found", "service", name, "problem", problem) }
		}
		return false, said
	}
	never := s.Answered.IsZero()
	s.Answered = now
	if changed = never || !slices.Equal(list, w.list); changed {
		before := len(w.list)
		w.list, s.Endpoints, s.Changed = list, len(list), now
		from := s.From
		said = func() {
			log.Info("endpoints changed", "service", name, "from", from, "before", before, "now", len(list))
		}
	} else if was != nil {
		from := s.From
		said = func() { log.Info("endpoints are found again", "service", name, "from", from, "now", len(list)) }
	}
	return changed, said
}

// errUnknown is for services of which nothing is known yet.
var errUnknown = errors.New("no answer yet")

// Why says in one sentence why there is no endpoint, for a request that found none.
func (w *Watcher) Why() string {
	s := w.Status()
	if p := s.Problem(); p != "" {
		return p
	}
	if s.Answered.IsZero() {
		s.Err = errUnknown
		return s.Problem()
	}
	return s.From + " has no endpoints that are ready"
}
