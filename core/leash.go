package core

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
	"weak"
)

// leash is the real context of an attempt of Do's: it ends with the caller's context, or with the time limit of the
// attempt while that lasts. What Do returns may go on under it for as long as it likes (a *sql.Rows does), and nobody
// says when it has done so. So the caller's context knows a leash only weakly: one that nobody holds any more goes, and
// takes its place among the children of the caller's context with it. A context of package context would stay there
// until the caller's ends, which in a worker is never. Who waits for its end keeps it: children of the leash by a
// strong link while there are any, and who waits for the channel alone by that.
type leash struct {
	context.Context // the caller's
	deadline        time.Time
	limited         bool
	timer           *time.Timer
	link            *tether // nil if the caller's context never ends

	mu       sync.Mutex
	done     chan struct{}
	err      error
	children map[*func()]struct{}
	loose    bool
}

// tether is what the caller's context holds of a leash.
type tether struct {
	held   atomic.Pointer[leash] // while the leash has children: nobody else may know of them
	weak   weak.Pointer[leash]
	done   weak.Pointer[byte] // the channel, which may be all that is left of the leash
	unlink func() bool
}

// newLeash makes a leash with its timer, if it is limited.
func newLeash(parent context.Context, deadline time.Time, limited bool) *leash {
	l := &leash{Context: parent, deadline: deadline, limited: limited, done: make(chan struct{})}
	l.mu.Lock() // what ends it may come at once
	if limited {
		l.timer = time.AfterFunc(time.Until(deadline), func() { l.end(context.DeadlineExceeded) })
	}
	if parent.Done() != nil && parent.Err() == nil {
		k := &tether{weak: weak.Make(l), done: weak.Make(pointerOf(l.done))}
		l.link = k
		k.unlink = context.AfterFunc(parent, func() { k.end(parent.Err()) })
	}
	l.mu.Unlock()
	if err := parent.Err(); err != nil {
		l.end(err)
	}
	return l
}

// pointerOf is where a channel lies, which is what the channel itself is: so the garbage collector can be asked for it.
func pointerOf(done chan struct{}) *byte { return *(**byte)(unsafe.Pointer(&done)) }

// end ends what is left of the leash.
func (k *tether) end(err error) {
	l := k.held.Load()
	if l == nil {
		l = k.weak.Value()
	}
	if l != nil {
		l.end(err)
	} else if p := k.done.Value(); p != nil { // the leash is gone, and with it whoever else could close it
		close(*(*chan struct{})(unsafe.Pointer(&p)))
	}
}

// loosen ends the time limit.
func (l *leash) loosen() {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loose || l.err != nil {
		return
	}
	l.loose = true
	if l.link != nil {
		runtime.AddCleanup(pointerOf(l.done), unlink, weak.Make(l.link)) // weak, because it knows the children
	}
}

// unlink takes a leash that is gone from the children of the caller's context, if that is not gone, too.
func unlink(w weak.Pointer[tether]) {
	if k := w.Value(); k != nil {
		k.unlink()
	}
}

// end ends the context for a reason that may have come too late: the timer may fire as it is stopped.
func (l *leash) end(err error) { l.finish(err, false) }

func (l *leash) cancel() { l.finish(context.Canceled, true) }

func (l *leash) finish(err error, whatever bool) {
	l.mu.Lock()
	if l.err != nil || !whatever && l.loose && l.Context.Err() == nil {
		l.mu.Unlock()
		return
	}
	l.err = err
	close(l.done)
	children := l.children
	l.children = nil
	l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.link != nil {
		l.link.held.Store(nil)
		l.link.unlink()
	}
	for tell := range children {
		(*tell)()
	}
}

func (l *leash) Done() <-chan struct{} { return l.done }

func (l *leash) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *leash) Deadline() (time.Time, bool) { return l.deadline, l.limited }

// AfterFunc is what package context asks for in a context that is not its own, to save a goroutine.
func (l *leash) AfterFunc(f func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		go f()
		return func() bool { return false }
	}
	if l.children == nil {
		l.children = make(map[*func()]struct{})
	}
	child := &f
	l.children[child] = struct{}{}
	if l.link != nil {
		l.link.held.Store(l)
	}
	return func() bool { return l.forget(child) }
}

// forget takes a child off, and reports whether it was there.
func (l *leash) forget(child *func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, there := l.children[child]
	delete(l.children, child)
	if len(l.children) == 0 && l.link != nil {
		l.link.held.Store(nil)
	}
	return there
}

var _ context.Context = (*leash)(nil)
