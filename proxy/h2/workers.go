package h2

// worker is a goroutine that handles one stream after the other: its stack has the right size after the first.
type worker struct{ next chan *Stream }

// maxWorkers is how many workers of a connection wait for the next stream: see restAfter.
const maxWorkers = 128

// startFresh has the new streams handled, but for those that have been reset already. mu is held.
func (c *Conn) startFresh() {
	for i, s := range c.fresh {
		c.fresh[i] = nil
		if s.err != nil {
			s.release()
			continue
		}
		c.running++
		c.handlers.Add(1)
		if n := len(c.workers); n > 0 {
			w := c.workers[n-1]
			c.workers = c.workers[:n-1]
			w.next <- s
			continue
		}
		go c.work(s)
	}
	c.fresh = c.fresh[:0]
}

// work handles s, and streams to come.
func (c *Conn) work(s *Stream) {
	var w worker
	for s != nil {
		c.handle(s)
		again := c.finish(s, &w)
		c.handlers.Done()
		if !again {
			return
		}
		s = <-w.next
	}
}

// finish ends a stream whose handler has returned. It tells whether another is to be waited for.
func (c *Conn) finish(s *Stream, w *worker) (again bool) {
	s.OnGone(nil)
	c.mu.Lock()
	if s.listed {
		code := NoError // all has been said, and the rest of the request is not wanted
		if !s.sendEnded {
			code = InternalError
		}
		s.reset(code, nil)
	}
	s.release()
	if c.running--; c.open() == 0 {
		c.atRest()
	}
	if again = !c.dead && len(c.workers) < maxWorkers; again {
		if w.next == nil {
			w.next = make(chan *Stream, 1)
		}
		c.workers = append(c.workers, w)
	}
	c.endIfOver()
	return again
}

// dismissWorkers has those go that have nothing to do. mu is held.
func (c *Conn) dismissWorkers() {
	for i, w := range c.workers {
		w.next <- nil
		c.workers[i] = nil
	}
	c.workers = c.workers[:0]
}
