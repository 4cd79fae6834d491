package proxy

import (
	"net"
	"os"
	"syscall"
)

// Resting is how many clients rest.
func (p *Proxy) Resting() int {
	p.lobby.roost.mu.Lock()
	defer p.lobby.roost.mu.Unlock()
	return len(p.lobby.roost.resting)
}

// CloseRoost closes what the roost waits at.
func (p *Proxy) CloseRoost() error {
	r := &p.lobby.roost
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.poll.Close()
}

// SpoilRoost has the roost wait at something that is no epoll any more.
func (p *Proxy) SpoilRoost() error {
	r := &p.lobby.roost
	r.mu.Lock()
	defer r.mu.Unlock()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	return syscall.Dup3(int(null.Fd()), r.fd, syscall.O_CLOEXEC)
}

// Phantoms has the kernel count so many more clients at each listener than are there, until undo.
func Phantoms(n int) (undo func()) {
	counted = func(l net.Listener) int { return backlog(l) + n }
	return func() { counted = backlog }
}
