package h2

// startHandler has a new stream handled. mu is held.
func (c *Conn) startHandler(s *Stream) {
	if !c.workers.start(s) {
		go c.work(s)
	}
}

// work handles s, and streams to come.
func (c *Conn) work(s *Stream) {
	var w worker
	for s != nil {
		c.handle(s)
		again := c.finish(s, &w)
		c.workers.all.Done()
		if !again {
			return
		}
		s = <-w.next
	}
}

// finish ends a stream whose handler has returned. It reports whether to wait for another.
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
	if c.workers.running--; c.busy() == 0 {
		c.atRest()
	}
	again = !c.dead && c.workers.park(w)
	c.endIfOver()
	return again
}
