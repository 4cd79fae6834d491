package proxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/abate-go/abate/policyfile"
)

// Listen opens an address: host:port, or unix:/PATH with or without ?mode=0660. The file of a Unix socket at which
// nobody listens any more is removed first, no other file is. It gets its mode, and is removed when the listener is
// closed, unless it is another's by then.
func Listen(address string) (net.Listener, error) {
	if !strings.HasPrefix(address, "unix:") {
		l := net.ListenConfig{KeepAlive: inheritedKeepAlive, Control: keepAlive}
		l.SetMultipathTCP(false) // for whose connections the kernel bounds nothing that clients leave untaken
		return l.Listen(context.Background(), "tcp", address)
	}
	path, mode, ok := policyfile.Socket(address)
	if !ok {
		return nil, fmt.Errorf("%q is not the address of a Unix socket: write for example unix:/run/abate.sock", address)
	}
	if err := removeDead(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	s := &socketFile{UnixListener: l, path: path}
	if s.file, err = os.Lstat(path); err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// removeDead removes the file of a socket at which nobody listens.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is there already, and is no socket: remove it, or choose another path", path)
	}
	nc, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		nc.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) { // somebody listens, though he may not be able to answer now
		return &net.OpError{Op: "listen", Net: "unix", Addr: &net.UnixAddr{Name: path, Net: "unix"}, Err: syscall.EADDRINUSE}
	}
	return os.Remove(path)
}

// socketFile is a listener at a Unix socket that takes its file away.
type socketFile struct {
	*net.UnixListener
	path string
	file fs.FileInfo
	once sync.Once
}

// lost reports whether the file has gone, or is another's: then nobody can connect any more.
func (s *socketFile) lost() bool {
	now, err := os.Lstat(s.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, s.file)
}

// Close removes the file first: as long as this process listens, whoever finds the file leaves it alone.
func (s *socketFile) Close() error {
	s.once.Do(func() {
		if now, err := os.Lstat(s.path); err == nil && s.file != nil && os.SameFile(now, s.file) {
			_ = os.Remove(s.path) // the next to listen there removes it else
		}
	})
	return s.UnixListener.Close()
}

// addrPort is the address of one end of a TCP connection; zero if it is none.
func addrPort(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return netip.AddrPortFrom(tcp.AddrPort().Addr().Unmap(), tcp.AddrPort().Port())
	}
	return netip.AddrPort{}
}
