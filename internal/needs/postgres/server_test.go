package postgres_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/abate-go/abate/internal/needs/postgres"
)

// Another test's server may get the port while this one is down: it answers, too.
func TestServerWhosePortIsTakenComesBackOnAnother(t *testing.T) {
	if testing.Short() {
		return // a server takes seconds
	}
	s := postgres.Own(t)
	port := s.Port()
	s.Crash()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("R")) // you are welcome
			_ = c.Close()
		}
	}()
	if err := s.Start(); err != nil {
		t.Fatalf("%v; its log:\n%s", err, s.Log())
	}
	if s.Port() == port {
		t.Errorf("it says that it is on port %d, where somebody else listens", port)
	}
}
