package drill

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ServiceConfig is the payment service.
type ServiceConfig struct {
	Workers         int           // how many requests it works on at once
	ServiceTime     time.Duration // what one request takes while the database is well
	Queue           int           // how many requests may wait; further ones get 503 at once
	DatabaseTimeout time.Duration // how long a worker waits for the database before it gives up with 504
}

// Capacity returns how many requests per second the service can do.
func (c ServiceConfig) Capacity() float64 { return float64(c.Workers) / c.ServiceTime.Seconds() }

// QueueTime returns how long the last request of a full queue waits.
func (c ServiceConfig) QueueTime() time.Duration {
	return time.Duration(float64(c.Queue) / c.Capacity() * float64(time.Second))
}

// ServiceCounts is what the service saw.
type ServiceCounts struct {
	Arrived   int64 `json:"arrived"`   // requests that reached it
	Refused   int64 `json:"refused"`   // answered 503 at once: the queue was full
	Worked    int64 `json:"worked"`    // requests a worker took up
	Abandoned int64 `json:"abandoned"` // of those, the caller had left before the work began

	LongestQueue int64 `json:"longestQueue"` // how many requests waited at once, at most
}

// Service is a payment service on a loopback socket. As most services, it takes a request into its queue and works on it
// when its turn comes; whether the caller is still there it finds out when it writes the answer.
type Service struct {
	config   ServiceConfig
	database *Database
	listener net.Listener
	server   *http.Server
	queue    chan *job
	stop     chan struct{}
	running  sync.WaitGroup

	arrived, refused, worked, abandoned, longest atomic.Int64
}

// job is one request in the queue.
type job struct {
	gone atomic.Bool // the caller has hung up
	done chan error  // holds one, so that a worker never waits for a caller
}

// StartService listens on a free loopback port and starts the workers. Close ends it.
func StartService(c ServiceConfig, d *Database) (*Service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Service{
		config: c, database: d, listener: listener,
		queue: make(chan *job, c.Queue), stop: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charge", s.charge)
	// Clients that hang up in the middle of a storm are not worth a line each.
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	s.running.Add(c.Workers + 1)
	go func() {
		defer s.running.Done()
		_ = s.server.Serve(listener) // always an error: the one that says it was closed
	}()
	for range c.Workers {
		go s.work()
	}
	return s, nil
}

// URL returns the address to POST a charge to.
func (s *Service) URL() string { return "http://" + s.listener.Addr().String() + "/charge" }

// Waiting returns how many requests are in the queue.
func (s *Service) Waiting() int { return len(s.queue) }

// Counts returns what the service has seen so far.
func (s *Service) Counts() ServiceCounts {
	return ServiceCounts{
		Arrived: s.arrived.Load(), Refused: s.refused.Load(),
		Worked: s.worked.Load(), Abandoned: s.abandoned.Load(), LongestQueue: s.longest.Load(),
	}
}

// Close ends listener, connections and workers, and waits for the workers.
func (s *Service) Close() {
	close(s.stop)
	_ = s.server.Close()
	s.running.Wait()
}

// charge answers one request: 503 when the queue is full, 504 when the database did not answer, else 200.
func (s *Service) charge(w http.ResponseWriter, r *http.Request) {
	s.arrived.Add(1)
	// Reading to the end also lets net/http watch the connection, and so tell when the caller hangs up.
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 1<<16)); err != nil {
		http.Error(w, "cannot read the request", http.StatusBadRequest)
		return
	}
	j := &job{done: make(chan error, 1)}
	select {
	case s.queue <- j:
		s.waited(int64(len(s.queue)))
	default:
		s.waited(int64(cap(s.queue)))
		s.refused.Add(1)
		http.Error(w, "the queue is full", http.StatusServiceUnavailable)
		return
	}
	select {
	case err := <-j.done:
		if err != nil {
			http.Error(w, err.Error(), http.StatusGatewayTimeout)
			return
		}
		_, _ = io.WriteString(w, `{"charged":true}`) // a caller that has left is his own loss
	case <-r.Context().Done():
		j.gone.Store(true) // the job stays in the queue, and is worked on in its turn
	case <-s.stop:
	}
}

// waited notes how many requests were in the queue.
func (s *Service) waited(n int64) {
	for {
		longest := s.longest.Load()
		if n <= longest || s.longest.CompareAndSwap(longest, n) {
			return
		}
	}
}

// work is one worker.
func (s *Service) work() {
	defer s.running.Done()
	for {
		select {
		case j := <-s.queue:
			s.worked.Add(1)
			if j.gone.Load() {
				s.abandoned.Add(1)
			}
			j.done <- s.database.Query(s.config.DatabaseTimeout, s.stop)
		case <-s.stop:
			return
		}
	}
}
