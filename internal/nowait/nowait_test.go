package nowait_test

import (
	"bytes"
	"net"
	"syscall"
	"testing"

	"github.com/abate-go/abate/internal/nowait"
)

// pair is the two ends of a connection.
func pair(t *testing.T) (near, far *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// try has one of the functions do what it can at once.
func try(t *testing.T, c syscall.Conn, f func(uintptr, []byte) (int, error), p []byte) (n int, err error) {
	t.Helper()
	raw, failed := c.SyscallConn()
	if failed == nil {
		failed = raw.Control(func(fd uintptr) { n, err = f(fd, p) })
	}
	if failed != nil {
		t.Fatal(failed)
	}
	return n, err
}

func readable(t *testing.T, c *net.TCPConn) (yes bool) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { yes = nowait.Readable(fd) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return yes
}

// What is there is read, and what there is room for is written; neither waits for more.
func TestASocketGivesAndTakesWhatItCan(t *testing.T) {
	if !nowait.Possible {
		return // such systems have no sockets of this kind
	}
	near, far := pair(t)
	room := make([]byte, 1<<20)
	if n, err := try(t, near, nowait.Read, room); n != 0 || err != nowait.ErrWouldBlock {
		t.Errorf("of nothing: %d bytes, %v", n, err)
	}
	if readable(t, near) {
		t.Error("nothing can be read")
	}
	if n, err := try(t, near, nowait.Read, nil); n != 0 || err != nil && err != nowait.ErrWouldBlock {
		t.Errorf("into no room: %d bytes, %v", n, err)
	}
	sent, full := 0, false
	for range 1000 { // more than any socket holds
		n, err := try(t, near, nowait.Write, bytes.Repeat([]byte{'x'}, len(room)))
		if sent += n; err != nil {
			full = n == 0 && err == nowait.ErrWouldBlock
			break
		}
	}
	if !full || sent == 0 {
		t.Errorf("%d bytes sent, and the socket is full: %v", sent, full)
	}
	if n, err := far.Read(room); err != nil || !bytes.Equal(room[:n], bytes.Repeat([]byte{'x'}, n)) {
		t.Errorf("%d bytes came, %v", n, err)
	}
}

// An end is no error, and a broken connection is one.
func TestASocketTellsItsEnd(t *testing.T) {
	if !nowait.Possible {
		return // such systems have no sockets of this kind
	}
	near, far := pair(t)
	far.SetLinger(0)
	if err := near.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := far.Read(make([]byte, 1)); n != 0 || err == nil { // the end has come
		t.Fatalf("%d bytes, %v", n, err)
	}
	if !readable(t, far) {
		t.Error("the end is nothing to read")
	}
	if n, err := try(t, far, nowait.Read, make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
	far.Close()
	if _, err := near.Read(make([]byte, 1)); err == nil { // the reset has come, and been told
		t.Fatal("no reset")
	}
	if n, err := try(t, near, nowait.Write, []byte{'x'}); n != 0 || err != syscall.EPIPE {
		t.Errorf("into a broken connection: %d bytes, %v", n, err)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	if !nowait.Possible {
		return // such systems have no sockets of this kind
	}
	near, _ := pair(t)
	raw, err := near.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	room := make([]byte, 1)
	look := func(fd uintptr) { _, _ = nowait.Read(fd, room) }
	if n := testing.AllocsPerRun(100, func() { _ = raw.Control(look) }); n != 0 {
		t.Errorf("%v allocations to read nothing", n)
	}
}
