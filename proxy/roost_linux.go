package proxy

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/abate-go/abate/core"
)

// roost is where connections rest until their clients go on. A goroutine and its stack are more than all else that an
// idle connection needs, so here one goroutine waits for all of them.
type roost struct {
	goOn func(*door, *clientConn) // serves a client again
	idle time.Duration            // how long a client may rest

	failed func(error) // is told why nobody rests any more

	mu      sync.Mutex
	poll    *os.File // nil before the first client
	fd      int      // of poll
	closed  bool
	resting map[int32]resting // by the descriptors of their sockets
}

type resting struct {
	door   *door
	client *clientConn
}

// take has a client rest. It is false if that is not possible; otherwise the client may be served again already.
func (r *roost) take(d *door, c *clientConn) bool {
	raw, taken := c.sock.bottom(), false
	if raw.Control(func(fd uintptr) { taken = r.add(int32(fd), resting{d, c}) }) != nil {
		return false
	}
	if taken && raw.Control(func(uintptr) {}) != nil { // closed meanwhile, perhaps after wake
		r.wake(c)
	}
	return taken
}

func (r *roost) add(fd int32, who resting) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.opened() {
		return false
	}
	r.release(fd) // somebody whose socket has been closed
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLONESHOT, Fd: fd}
	if syscall.EpollCtl(r.fd, syscall.EPOLL_CTL_ADD, int(fd), &event) != nil {
		return false
	}
	who.client.perch = fd
	r.resting[fd] = who
	if who.client.draining.Load() || who.client.dismissed.Load() { // looked at after wake can find it
		r.release(fd)
	}
	return true
}

// opened reports whether clients can rest, and opens the poll for the first. mu is held.
func (r *roost) opened() bool {
	if r.poll != nil || r.closed {
		return !r.closed
	}
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return false
	}
	if err = syscall.SetNonblock(fd, true); err != nil { // so that the runtime can wait for it
		syscall.Close(fd)
		return false
	}
	r.poll, r.fd, r.resting = os.NewFile(uintptr(fd), "idle connections"), fd, map[int32]resting{}
	go r.watch(r.poll)
	return true
}

// release has the client of a descriptor be served again, if one rests there. mu is held.
func (r *roost) release(fd int32) {
	who, ok := r.resting[fd]
	if !ok {
		return
	}
	delete(r.resting, fd)
	if !r.closed {
		_ = who.client.sock.bottom().Control(func(fd uintptr) { // a closed socket has gone from the poll by itself
			_ = syscall.EpollCtl(r.fd, syscall.EPOLL_CTL_DEL, int(fd), nil)
		})
	}
	r.goOn(who.door, who.client)
}

// wake has a client be served again, if it rests.
func (r *roost) wake(c *clientConn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resting[c.perch].client == c {
		r.release(c.perch)
	}
}

// close ends the watch. Nobody rests any more.
func (r *roost) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed = true; r.poll != nil {
		r.poll.Close()
	}
}

// sweeps is how often those are looked for, in the time that a client may rest, whose time is over.
const sweeps = 8

// watch has clients be served again that go on, or whose time is over. If it cannot wait any more nobody rests: then
// each is waited for alone.
func (r *roost) watch(poll *os.File) {
	err := r.await(poll)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	r.poll.Close()
	r.failed(err)
	for fd := range r.resting {
		r.release(fd)
	}
}

// await is watch until the end.
func (r *roost) await(poll *os.File) error {
	raw, err := poll.SyscallConn()
	if err != nil {
		return err
	}
	var events [64]syscall.EpollEvent
	var n int
	var fail error
	look := func(fd uintptr) bool {
		n, fail = syscall.EpollWait(int(fd), events[:], 0)
		return n != 0
	}
	for next := core.Now(); ; {
		if now := core.Now(); now >= next {
			next = later(now, max(r.idle/sweeps, time.Millisecond))
			if err := poll.SetReadDeadline(time.Now().Add(next - now)); err != nil {
				return err
			}
			r.sweep(now)
		}
		n, fail = 0, nil
		if err := raw.Read(look); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if fail != nil && fail != syscall.EINTR {
			return os.NewSyscallError("epoll_wait", fail)
		}
		r.mu.Lock()
		for _, e := range events[:max(n, 0)] {
			r.release(e.Fd)
		}
		r.mu.Unlock()
	}
}

func (r *roost) sweep(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for fd, who := range r.resting {
		if now >= later(who.client.idle, r.idle) {
			r.release(fd)
		}
	}
}
