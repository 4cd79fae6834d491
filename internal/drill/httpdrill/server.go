package httpdrill

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/internal/loopback"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// Server is one service of a scenario on a loopback socket. As most services, it takes a request into its queue and
// works on it when its turn comes; whether the caller is still there it finds out when it writes the answer.
type Server struct {
	spec    scenario.Service
	limit   int                             // requests that may wait; -1 for any number
	backend func(ctx context.Context) error // the call that a request needs; nil for none
	record  *Recorder
	index   int // of the service in the record
	since   func() time.Duration
	gate    *inbound.Gate // nil without one
	door    http.Handler  // behind which handle is

	http     *http.Server
	listener net.Listener
	address  string
	stopped  context.Context // the end of all work
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu     sync.Mutex
	stream kernel.Stream
	busy   int
	queue  []*job // the oldest first
	faults []*scenario.Fault
}

// job is one request in the queue or at work.
type job struct {
	arrived time.Duration // at the gate, if there is one
	since   time.Duration // when it joined the queue
	gone    atomic.Bool   // the caller has hung up
	tree    *core.CallTree
	done    chan engine.EndKind
}

// StartServer lets a service listen on a free loopback port. backend is the call that its requests need, nil for none;
// protect is the protection of the gate in front of it, nil for none; what happens is noted in record as of its service
// number index, and watch sees what the gate does. Close ends the server.
func StartServer(spec scenario.Service, index int, seed uint64, record *Recorder, since func() time.Duration,
	backend func(context.Context) error, protect *inbound.Protection, watch Watchers) (*Server, error) {
	s := &Server{
		spec: spec, limit: -1, backend: backend, record: record, index: index, since: since,
		stream: kernel.NewStream(seed, uint64(index)),
	}
	switch {
	case spec.Queue.None:
		s.limit = 0
	case spec.Queue.Limit > 0:
		s.limit = spec.Queue.Limit
	}
	s.door = http.HandlerFunc(s.handle)
	var err error
	switch {
	case protect != nil:
		s.gate, s.door, err = newGate(s, *protect, watch)
	case backend != nil && slices.ContainsFunc(spec.Calls, func(c scenario.Call) bool { return !c.Naive }):
		s.door, err = newOpenGate(s)
	}
	if err != nil {
		return nil, err
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	// Callers that hang up in the middle of a storm are not worth a line each.
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0)}
	listener, err := loopback.Listen()
	if err != nil {
		s.stop()
		return nil, err
	}
	s.address = listener.Addr().String()
	s.takeFrom(listener)
	return s, nil
}

// listen takes connections on the same port again.
func (s *Server) listen() error {
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	s.takeFrom(listener)
	return nil
}

func (s *Server) takeFrom(listener net.Listener) {
	s.listener = listener
	s.running.Go(func() { _ = s.http.Serve(listener) }) // always an error: the one that says it was closed
}

// URL returns the address to POST a request to.
func (s *Server) URL() string { return "http://" + s.address + "/" }

// Waiting returns how many requests are in the queue.
func (s *Server) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Close ends listener, connections and work, and waits for the work.
func (s *Server) Close() {
	s.mu.Lock()
	s.stop() // no work begins any more
	s.mu.Unlock()
	_ = s.http.Close()
	s.running.Wait()
}

// serve answers one request, or does not.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	// Reading to the end also lets net/http watch the connection, and so tell when the caller hangs up.
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 1<<16)); err != nil {
		http.Error(w, "cannot read the request", http.StatusBadRequest)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), arrivedKey{}, s.since()))
	if s.unreachable() { // whatever stands in front of it
		s.handle(w, r)
		return
	}
	s.door.ServeHTTP(w, r)
}

// arrivedKey finds the time of a request's arrival in its context.
type arrivedKey struct{}

// unreachable reports whether no request comes through to the service.
func (s *Server) unreachable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outage(scenario.Refuse) || s.outage(scenario.Blackhole)
}

// handle answers a request that has come through to the service, or does not.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	j, refusal := s.enter(r.Context().Value(arrivedKey{}).(time.Duration), core.CallTreeOf(r.Context()))
	if j == nil {
		switch refusal {
		case engine.TimedOut:
			<-r.Context().Done() // the caller has to find out by himself; Close ends it, too
			panic(http.ErrAbortHandler)
		case engine.RefusedConnection:
			panic(http.ErrAbortHandler)
		}
		s.record.Rejected(s.index, s.since())
		s.answer(w, refusal)
		return
	}
	select {
	case end := <-j.done:
		s.answer(w, end)
	case <-r.Context().Done():
		j.gone.Store(true) // the job stays in the queue, and is worked on in its turn
		select {
		case <-j.done: // it has its place until then
		case <-s.stopped.Done():
		}
	case <-s.stopped.Done():
		panic(http.ErrAbortHandler)
	}
}

// statuses are how a server says what became of a request.
var statuses = map[engine.EndKind]int{
	engine.Answered: http.StatusOK, engine.QueueFull: http.StatusServiceUnavailable,
	engine.ServerError: http.StatusInternalServerError, engine.BadGateway: http.StatusBadGateway,
}

func (s *Server) answer(w http.ResponseWriter, end engine.EndKind) {
	if end == engine.QueueFull && s.spec.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.spec.RetryAfter/time.Second)))
	}
	w.WriteHeader(statuses[end])
	_, _ = io.WriteString(w, end.String()) // a caller that has left is his own loss
}

// enter gives a request a worker or a place in the queue; nil and why if it gets neither.
func (s *Server) enter(arrived time.Duration, tree *core.CallTree) (*job, engine.EndKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.outage(scenario.Refuse), s.stopped.Err() != nil:
		return nil, engine.RefusedConnection
	case s.outage(scenario.Blackhole):
		return nil, engine.TimedOut
	case s.outage(scenario.Fail):
		return nil, engine.QueueFull
	}
	// it holds one, so that no worker waits for a caller
	j := &job{arrived: arrived, since: s.since(), tree: tree, done: make(chan engine.EndKind, 1)}
	switch {
	case s.free():
		s.begin(j)
	case s.limit >= 0 && len(s.queue) >= s.limit:
		return nil, engine.QueueFull
	default:
		s.queue = append(s.queue, j)
		s.record.Waiting(s.index, s.since(), len(s.queue))
	}
	return j, engine.Answered
}

// free reports whether a worker is free and may work. s.mu is held.
func (s *Server) free() bool {
	return (s.spec.Workers == 0 || s.busy < s.spec.Workers) && !s.outage(scenario.Hang)
}

// begin puts a worker on a job. s.mu is held.
func (s *Server) begin(j *job) {
	s.busy++
	now := s.since()
	s.record.Waited(s.index, now, now-j.since)
	s.running.Go(func() {
		end := s.work(j)
		s.record.Worked(s.index, s.since(), s.since()-now, j.gone.Load(), end)
		if end == engine.Answered {
			s.record.Responded(s.index, s.since(), s.since()-j.arrived)
		}
		j.done <- end
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy--
		s.startNext()
	})
}

// startNext gives free workers to those who wait. s.mu is held.
func (s *Server) startNext() {
	for len(s.queue) > 0 && s.free() && s.stopped.Err() == nil {
		j := s.queue[0]
		s.queue = s.queue[1:]
		s.begin(j)
	}
}

// work does what a request needs: the server's own work, and the call that it makes.
func (s *Server) work(j *job) engine.EndKind {
	call := func() bool { return s.backend == nil || s.backend(core.WithCallTree(s.stopped, j.tree)) == nil }
	if s.spec.CallsFirst && !call() {
		return engine.BadGateway
	}
	drill.Sleep(s.draw(), s.stopped.Done())
	if s.fails() {
		return engine.ServerError
	}
	if !s.spec.CallsFirst && !call() {
		return engine.BadGateway
	}
	return engine.Answered
}
