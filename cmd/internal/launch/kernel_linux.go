package launch

import (
	"errors"
	"maps"
	"math"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernel is asked which connections there are, and says when one has ended. It needs no privileges.
type kernel struct {
	notices *os.File
	ledger  *ledger

	mu    sync.Mutex
	ports map[uint16]bool          // of services, and where the proxy goes: whose notices are read; nil for all
	marks map[uint64]chan struct{} // closed when the notice of this socket has come
	lost  bool                     // there were more notices than could be kept
}

// openKernel begins to listen. It returns nil where the kernel does not say enough.
func openKernel(l *ledger) *kernel {
	const tcpDestroy, tcp6Destroy = 1 << 0, 1 << 2 // groups SKNLGRP_INET_TCP_DESTROY and SKNLGRP_INET6_TCP_DESTROY
	fd, err := netlink(tcpDestroy | tcp6Destroy)
	if err != nil {
		return nil
	}
	const room = 4 << 20
	if syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, room) != nil {
		_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, room) // as much as this user may have
	}
	_ = syscall.SetNonblock(fd, true) // so that Close ends the read
	k := &kernel{notices: os.NewFile(uintptr(fd), "sock_diag"), ledger: l,
		marks: map[uint64]chan struct{}{}}
	list, ok := k.list()
	if !ok {
		k.close()
		return nil
	}
	l.before(list)
	go k.listen()
	return k
}

// netlink opens a socket for sock_diag(7), in some groups of notices.
func netlink(groups uint32) (fd int, err error) {
	const sockDiag = 4 // NETLINK_SOCK_DIAG
	fd, err = syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, sockDiag)
	if err != nil {
		return fd, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: groups}); err != nil {
		syscall.Close(fd)
		return fd, err
	}
	return fd, nil
}

// listen reads notices until close.
func (k *kernel) listen() {
	b := make([]byte, 64<<10)
	for {
		n, err := k.notices.Read(b)
		switch {
		case errors.Is(err, syscall.ENOBUFS):
			k.mu.Lock()
			k.lost = true
			k.mu.Unlock()
		case err != nil:
			return
		}
		ended, _, _ := diagnosed(b[:max(n, 0)])
		for _, s := range ended {
			k.end(s)
		}
	}
}

// end notes that a socket has ended.
func (k *kernel) end(s socket) {
	k.mu.Lock()
	mark := k.marks[s.cookie]
	delete(k.marks, s.cookie)
	watched := k.ports == nil || s.remote.Port() == 0 || k.ports[s.remote.Port()]
	k.mu.Unlock()
	if mark != nil {
		close(mark)
	} else if watched {
		k.ledger.end(s)
	}
}

// dials is told of every connection of the proxy before it is made.
func (k *kernel) dials(_, address string, raw syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil // a Unix socket
	}
	_ = raw.Control(func(fd uintptr) {
		if cookie := cookieOf(int(fd)); cookie != 0 {
			k.ledger.proxy(cookie)
		}
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ports != nil && !k.ports[at.Port()] {
		k.ports[at.Port()] = true
		k.narrow()
	}
	return nil
}

// cookieOf is the cookie of a socket; 0 if the kernel has none.
func cookieOf(fd int) uint64 {
	cookie, _ := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	return cookie
}

// watch has notices come of connections to more addresses. Before it is called they come of all.
func (k *kernel) watch(to map[netip.AddrPort]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := len(k.ports)
	if k.ports == nil {
		k.ports = map[uint16]bool{}
	}
	for at := range to {
		k.ports[at.Port()] = true
	}
	if len(k.ports) > before {
		k.narrow()
	}
}

// narrow has the kernel leave out notices of connections to other ports, so that a busy machine does not fill the
// buffer with them. What has no port passes: marks have none. mu is held.
func (k *kernel) narrow() {
	const most = 2000 // a filter has room for 4096 instructions
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: diagPort}}
	for _, port := range slices.AppendSeq([]uint16{0}, maps.Keys(k.ports)) {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(port)},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: math.MaxUint32})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K})
	program := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	raw, err := k.notices.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if len(k.ports) > most ||
			unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, program) != nil {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) // all of them, then
		}
	})
}

// answerTime is how long the kernel is waited for. It answers at once.
const answerTime = 2 * time.Second

// list are the connections that there are. ok is false if the kernel does not say.
func (k *kernel) list() (all []socket, ok bool) {
	fd, err := netlink(0)
	if err != nil {
		return nil, false
	}
	defer syscall.Close(fd)
	// A sandbox may take the question and never answer it.
	patience := syscall.NsecToTimeval(int64(answerTime))
	_ = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &patience)
	b := make([]byte, 64<<10)
	for _, family := range []byte{inet, inet6} {
		if syscall.Sendto(fd, question(family), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}) != nil {
			return nil, false
		}
		for last := false; !last; {
			n, _, err := syscall.Recvfrom(fd, b, 0)
			if err == syscall.EINTR {
				continue
			}
			some, end, failed := diagnosed(b[:max(n, 0)])
			if err != nil || failed && family == inet {
				return nil, false
			}
			all, last = append(all, some...), end || failed // a kernel may have no IPv6
		}
	}
	return all, true
}

// flush waits until the notices of what has ended before have come. It reports whether they have, and none was lost.
func (k *kernel) flush(limit time.Duration) bool {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	come := make(chan struct{})
	k.mu.Lock()
	k.marks[cookieOf(fd)] = come
	k.mu.Unlock()
	syscall.Close(fd)
	select {
	case <-come:
	case <-time.After(limit):
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.lost
}

func (k *kernel) close() { _ = k.notices.Close() }
