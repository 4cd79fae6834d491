package exhausted_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/abate-go/abate/internal/exhausted"
)

func TestOnlyOwnExhaustionIsOwn(t *testing.T) {
	dial := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)}
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{dial(syscall.EMFILE), true}, {dial(syscall.ENFILE), true}, {dial(syscall.ENOMEM), true},
		{dial(syscall.ENOBUFS), true}, {dial(syscall.EADDRNOTAVAIL), true},
		{fmt.Errorf("GET: %w", dial(syscall.EMFILE)), true}, {errors.Join(io.EOF, dial(syscall.ENFILE)), true},
		{&net.DNSError{Err: "dial udp 127.0.0.53:53: socket: too many open files", Name: "db"}, true},
		{dial(syscall.ECONNREFUSED), false}, {dial(syscall.EAGAIN), false},
		{&net.DNSError{Err: "no such host", Name: "db"}, false},
		// a server's own words
		{io.EOF, false}, {nil, false}, {errors.Join(io.EOF, io.EOF), false}, {errors.New("too many open files"), false},
	} {
		if got := exhausted.Own(c.err); got != c.want {
			t.Errorf("%v is our own: %v", c.err, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { exhausted.Own(io.EOF) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
