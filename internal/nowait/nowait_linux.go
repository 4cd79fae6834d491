// These calls have numbers of their own only where the kernel does not take all of sockets by one, socketcall(2).

//go:build !race && !386 && !s390x

package nowait

import (
	"syscall"
	"unsafe"
)

// Read reads what there is.
func Read(fd uintptr, p []byte) (int, error) { return transfer(syscall.SYS_RECVFROM, fd, p, 0) }

// Write writes what there is room for.
func Write(fd uintptr, p []byte) (int, error) {
	return transfer(syscall.SYS_SENDTO, fd, p, syscall.MSG_NOSIGNAL)
}

// Readable reports whether there is something to read, or the end: it does not wait.
func Readable(fd uintptr) bool {
	var b [1]byte
	for {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1,
			syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
		if errno != syscall.EINTR {
			return errno != syscall.EAGAIN
		}
	}
}

// transfer makes a system call that cannot block, since the socket does not. So the scheduler need not hear of it, as
// it would of syscall.Read: then it gives this goroutine's processor to another thread while the kernel moves bytes,
// which costs more than the call. The calls are those of sockets, which do not pass the kernel's layer of files.
func transfer(call, fd uintptr, p []byte, flags uintptr) (int, error) {
	for len(p) > 0 {
		n, _, errno := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
			flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EAGAIN: // an error made of it here would allocate
			return 0, ErrWouldBlock
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
	return 0, nil
}
