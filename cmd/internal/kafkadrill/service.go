package kafkadrill

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// inventory is a service with a finite number of workers and a bounded queue, over HTTP on loopback. It works for
// callers that have left as for any other, as most services do.
type inventory struct {
	url     string
	server  *http.Server
	workers chan struct{}
	work    time.Duration
	places  int32
	waiting atomic.Int32
	failing atomic.Bool
	arrived func()
	serving sync.WaitGroup
}

// newInventory starts one on a free port. arrived is told of each request.
func newInventory(c Config, arrived func()) (*inventory, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the service cannot listen on loopback: %w", err)
	}
	s := &inventory{url: "http://" + listener.Addr().String(), workers: make(chan struct{}, c.Workers),
		work: c.ServiceTime, places: int32(c.Places), arrived: arrived}
	s.server = &http.Server{Handler: s}
	s.serving.Go(func() { _ = s.server.Serve(listener) }) // ends with ErrServerClosed
	return s, nil
}

// close stops it; requests under way are dropped.
func (s *inventory) close() {
	_ = s.server.Close()
	s.serving.Wait()
}

// ServeHTTP answers one request: 500 at once while the service fails, 503 when too many wait, else 204 after its turn
// and its work.
func (s *inventory) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.arrived()
	if s.failing.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if s.waiting.Add(1) > s.places {
		s.waiting.Add(-1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s.workers <- struct{}{}
	s.waiting.Add(-1)
	time.Sleep(s.work)
	<-s.workers
	w.WriteHeader(http.StatusNoContent)
}
