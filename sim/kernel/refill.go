package kernel

import "math/bits"

// refill moves the earliest events from the slots into the empty run. It leaves
// alone what cannot come before the lanes' first event, because base must not
// pass the event that is popped next.
func (q *Queue) refill() {
	bound := int64(forever)
	if q.lanePending > 0 {
		bound = q.laneAt
	}
	q.first, q.last = 0, 0
	for q.filledLevels != 0 {
		l, s, start, f := q.lowest()
		if start > bound {
			return
		}
		if f.short() {
			q.base = start
			q.take(l, s)
			q.takeMore()
			return
		}
		if l == 0 { // one instant: what is pushed for it from now on comes later
			q.base, q.limit = start, start
			q.last = copy(q.ready[:], f.on(f.head))
			if q.drop(f, q.last); f.head == nil {
				q.clear(l, s)
			}
			return
		}
		q.spread(l, s, bound)
	}
}

// lowest returns the slot with the earliest events and the first instant that
// belongs to it.
func (q *Queue) lowest() (l, s uint, start int64, f *fifo) {
	l = uint(bits.TrailingZeros32(q.filledLevels))
	s = uint(bits.TrailingZeros32(q.filledSlots[l]))
	return l, s, above(q.base, l) | int64(s)<<(l*digitBits), &q.slot[l][s]
}

// clear marks a slot as empty.
func (q *Queue) clear(l, s uint) {
	q.filledSlots[l] &^= 1 << s
	if q.filledSlots[l] == 0 {
		q.filledLevels &^= 1 << l
	}
}

// take appends a short slot to the run, in order.
func (q *Queue) take(l, s uint) {
	f := &q.slot[l][s]
	from := q.last
	for _, e := range f.on(f.head) {
		i := q.last
		for ; i > from && q.ready[i-1].At > e.At; i-- {
			q.ready[i] = q.ready[i-1]
		}
		q.ready[i] = e
		q.last++
	}
	q.release(f)
	q.clear(l, s)
}

// takeMore appends further slots to a short run and sets the limit to what follows.
func (q *Queue) takeMore() {
	for q.filledLevels != 0 {
		l, s, start, f := q.lowest()
		if q.last >= readyEnough || !f.short() {
			q.limit = start
			return
		}
		q.take(l, s)
	}
	q.limit = forever
}

// spread moves the events of a slot to a lower level: at once to the level where
// they begin to differ, unless the lanes' first event comes before that.
func (q *Queue) spread(l, s uint, bound int64) {
	from := q.slot[l][s]
	q.slot[l][s] = fifo{}
	q.clear(l, s)
	at := from.on(from.head)[0].At
	differ := int64(0)
	for p := from.head; p != nil && digit(differ, l-1) == 0; p = p.next {
		for _, e := range from.on(p) {
			differ |= e.At ^ at
		}
	}
	l = level(differ)
	whole := differ == 0
	for above(at, l) > bound {
		l++
		whole = true
	}
	q.base = above(at, l)
	if whole {
		s = digit(at, l)
		q.slot[l][s] = from
		q.filledSlots[l] = 1 << s
		q.filledLevels |= 1 << l
		return
	}
	q.filledLevels |= 1 << l
	for from.head != nil {
		for _, e := range from.on(from.head) {
			s := digit(e.At, l)
			q.add(&q.slot[l][s], e)
			q.filledSlots[l] |= 1 << s
		}
		q.release(&from)
	}
}
