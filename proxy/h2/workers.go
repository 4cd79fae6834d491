package h2

import "sync"

// workers are the goroutines of a connection that handle streams: one stream after the other, as the stack of a
// goroutine has the right size after the first. The mutex of the connection guards them.
type workers struct {
	idle    []*worker // that have nothing to do
	running int       // handlers
	all     sync.WaitGroup
}

type worker struct{ next chan *Stream }

// maxWorkers is how many workers of a connection wait for the next stream: see restAfter.
const maxWorkers = 128

// start has s handled by an idle worker; if there is none, it reports false: the caller has to start one.
func (p *workers) start(s *Stream) bool {
	p.running++
	p.all.Add(1)
	n := len(p.idle)
	if n == 0 {
		return false
	}
	w := p.idle[n-1]
	p.idle = p.idle[:n-1]
	w.next <- s
	return true
}

// park notes that w has nothing to do, and reports whether it is to wait for another stream.
func (p *workers) park(w *worker) bool {
	if len(p.idle) >= maxWorkers {
		return false
	}
	if w.next == nil {
		w.next = make(chan *Stream, 1)
	}
	p.idle = append(p.idle, w)
	return true
}

// dismiss ends those that have nothing to do.
func (p *workers) dismiss() {
	for i, w := range p.idle {
		w.next <- nil
		p.idle[i] = nil
	}
	p.idle = p.idle[:0]
}
