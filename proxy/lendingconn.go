package proxy

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/abate-go/abate/internal/nowait"
	holding "github.com/abate-go/abate/internal/serving"
)

// lendingConn is a client's connection that says when it waits for the client, to the loan of the request's slot. That
// it waits the socket itself says: there is nothing to read in it, or no room. Where that cannot be asked, whatever is
// read or written counts as a wait. One goroutine may read while another writes.
type lendingConn struct {
	net.Conn
	raw     syscall.RawConn // of the socket; nil if it cannot be asked
	loan    *holding.Loan   // nil while no slot is held
	records *records        // that come in, if TLS is spoken over it; nil otherwise
	in, out immediate
}

// immediate is a read or a write that does not wait.
type immediate struct {
	try  func(fd uintptr) bool // made once, so that it allocates nothing
	p    []byte
	n    int
	fail error // of the system call
}

// over makes c the connection over nc.
func (c *lendingConn) over(nc net.Conn, raw syscall.RawConn) {
	c.Conn, c.raw = nc, raw
	c.in.try = func(fd uintptr) bool { c.in.n, c.in.fail = nowait.Read(fd, c.in.p); return true }
	c.out.try = func(fd uintptr) bool { c.out.n, c.out.fail = nowait.Write(fd, c.out.p); return true }
}

// NetConn is the connection itself.
func (c *lendingConn) NetConn() net.Conn { return c.Conn }

// Read reads what there is, or waits for it.
func (c *lendingConn) Read(p []byte) (n int, err error) {
	if c.loan == nil || len(p) == 0 {
		n, err = c.Conn.Read(p)
	} else {
		n, err = c.readLending(p)
	}
	if c.records != nil && n > 0 {
		c.records.pass(p[:n])
	}
	return n, err
}

func (c *lendingConn) readLending(p []byte) (int, error) {
	if c.raw != nil {
		a := &c.in
		a.p = p
		err := c.raw.Read(a.try)
		a.p = nil
		switch {
		case err != nil:
			return 0, err
		case a.n > 0:
			return a.n, nil
		case a.fail == nil:
			return 0, io.EOF
		case a.fail != nowait.ErrWouldBlock:
			return 0, os.NewSyscallError("read", a.fail)
		}
	}
	c.loan.Wait()
	defer c.loan.Resume()
	return c.Conn.Read(p)
}

// offer writes what there is room for.
func (c *lendingConn) offer(p []byte) (int, error) {
	a := &c.out
	a.p = p
	err := c.raw.Write(a.try)
	a.p = nil
	switch {
	case err != nil:
		return 0, err
	case a.fail == nowait.ErrWouldBlock:
		return 0, nil
	case a.fail != nil:
		return 0, os.NewSyscallError("write", a.fail)
	}
	return a.n, nil
}

// Write writes what there is room for, and waits for room for the rest.
func (c *lendingConn) Write(p []byte) (n int, err error) {
	if c.loan == nil && c.raw == nil || len(p) == 0 {
		return c.Conn.Write(p)
	}
	if c.raw != nil {
		if n, err = c.offer(p); err != nil || n == len(p) {
			return n, err
		}
	}
	if c.loan != nil {
		c.loan.Wait()
		defer c.loan.Resume()
	}
	more, err := c.Conn.Write(p[n:])
	return n + more, err
}
