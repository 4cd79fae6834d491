package kernel

const (
	firstPage   = 16 // events on the first page of a fifo; each further page has twice as many
	pageClasses = 5  // up to 256 events, which is 4 KiB
)

// page is a piece of a fifo. The events lie apart from the pointers, in memory
// that the garbage collector never reads.
type page struct {
	next   *page
	class  int
	events []Event
}

// fifo is a list of pages of which all but the last are full. It grows without
// copying, and its pages return to the queue as they are read. Small first pages
// keep a queue of few events in the cache; large later ones let the processor
// read ahead.
type fifo struct {
	head, tail *page
	events     []Event // of tail
	used       int     // of events
	read       int     // events of head that are gone
}

// on returns the events of f on its page p.
func (f *fifo) on(p *page) []Event {
	events := p.events
	if p == f.tail {
		events = events[:f.used]
	}
	if p == f.head {
		events = events[f.read:]
	}
	return events
}

// first returns the events of f on its first page.
func (f *fifo) first() []Event { return f.on(f.head) }

// short reports whether f fits into a run together with readyEnough other events.
func (f *fifo) short() bool { return f.head == f.tail && f.used-f.read <= readyEvents/2 }

// add appends e to f.
func (q *Queue) add(f *fifo, e Event) {
	if f.used == len(f.events) {
		q.extend(f)
	}
	f.events[f.used] = e
	f.used++
}

// extend appends an empty page to f.
func (q *Queue) extend(f *fifo) {
	class := 0
	if f.tail != nil {
		class = min(f.tail.class+1, pageClasses-1)
	}
	if q.free[class] == nil {
		q.allocate(class)
	}
	p := q.free[class]
	q.free[class], p.next = p.next, nil
	if f.head == nil {
		f.head = p
	} else {
		f.tail.next = p
	}
	f.tail, f.events, f.used = p, p.events, 0
}

// drop removes the first n events of f, all on its first page.
func (q *Queue) drop(f *fifo, n int) {
	f.read += n
	if len(f.on(f.head)) == 0 {
		q.release(f)
	}
}

// release takes the first page, which has been read, out of f.
func (q *Queue) release(f *fifo) {
	p := f.head
	f.head, f.read = p.next, 0
	if f.head == nil {
		*f = fifo{}
	}
	q.free[p.class], p.next = p, q.free[p.class]
}

// allocate fills a free list: 4 KiB at first, then an eighth of what there is, so
// that memory follows the events closely, and at most 1 MiB at once.
func (q *Queue) allocate(class int) {
	const least = firstPage << (pageClasses - 1)
	size := firstPage << class
	n := min(max(q.pages[class]/8, least/size), 256*least/size)
	q.pages[class] += n
	pages, events := make([]page, n), make([]Event, n*size)
	for i := range pages {
		pages[i] = page{next: q.free[class], class: class, events: events[i*size : (i+1)*size]}
		q.free[class] = &pages[i]
	}
}
