package h2

// line decides which stream may send next: who waits is served in the order of arrival, heads before content, and
// content one frame at a time. At most one sender holds the slot. The mutex of the connection guards it.
type line struct {
	out     *outbox
	window  int     // how much content the peer allows on the connection
	slot    *sender // was called and may send; nil for none
	heads   queue   // those that wait for room in out, and need no window
	content queue   // those that wait for the window of the connection, or for room in out
}

// sender is what the line knows of a stream. The mutex of the connection guards it.
type sender struct {
	waiter
	window int     // how much content the peer allows
	in     *queue  // the queue that it waits in; nil for none
	behind *sender // the next in that queue
}

// queue holds senders, first come, first served.
type queue struct{ first, last *sender }

func (q *queue) join(s *sender) {
	s.in, s.behind = q, nil
	if q.last == nil {
		q.first = s
	} else {
		q.last.behind = s
	}
	q.last = s
}

// leave takes s out of its queue, if it is in one.
func (s *sender) leave() {
	q := s.in
	if q == nil {
		return
	}
	s.in = nil
	if q.first == s {
		if q.first = s.behind; q.first == nil {
			q.last = nil
		}
		return
	}
	before := q.first
	for before.behind != s {
		before = before.behind
	}
	if before.behind = s.behind; s.behind == nil {
		q.last = before
	}
}

// joinContent has s wait to write content, if its own window is open. It reports whether s has the slot at once.
func (l *line) joinContent(s *sender) (called bool) {
	if s.window > 0 {
		l.content.join(s)
		l.callNext()
	}
	return l.slot == s
}

// widen counts more window for the connection, and reports whether that is no more than HTTP/2 allows.
func (l *line) widen(more int) bool {
	if l.window += more; l.window > maxWindow {
		return false
	}
	l.callNext()
	return true
}

// callNext calls the first who waits, if there is room and window. One at a time: that one calls the next.
func (l *line) callNext() {
	if l.slot != nil || !l.out.hasRoom() {
		return
	}
	s := l.heads.first
	if s == nil && l.window > 0 {
		s = l.content.first
	}
	if s == nil {
		return
	}
	s.leave()
	l.slot = s
	s.wake()
}

// leave ends the slot of s, or its place in a queue.
func (l *line) leave(s *sender) {
	s.leave()
	if l.slot == s {
		l.slot = nil
	}
	l.callNext()
}

// share returns how much of n bytes of content s may send now, in one frame.
func (l *line) share(s *sender, n int) int {
	if l.slot != s && (l.slot != nil || l.content.first != nil) || !l.out.hasRoom() {
		return 0 // others were first, or have to be written out
	}
	return max(min(n, l.window, s.window, maxFrame), 0)
}

// spend counts content that s has sent, and reports whether s has to let others send now.
func (l *line) spend(s *sender, n int) (yield bool) {
	l.window -= n
	s.window -= n
	return l.slot == s && l.content.first != nil
}

// wakeHeads ends the waits of those that have sent nothing.
func (l *line) wakeHeads() {
	for s := l.heads.first; s != nil; s = s.behind {
		s.wake()
	}
}

func (l *line) wakeAll() {
	l.wakeHeads()
	for s := l.content.first; s != nil; s = s.behind {
		s.wake()
	}
}
