package loopback_test

import (
	"net"
	"testing"

	"github.com/abate-go/abate/internal/loopback"
)

func TestAPortCanBeHadAgainAndIsNobodyElses(t *testing.T) {
	l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	if !addr.IP.IsLoopback() || addr.Port < 20000 || addr.Port >= 32000 {
		t.Errorf("it listens at %v, want 127.0.0.1 and a port from 20000 up to 32000", addr)
	}
	if _, err := net.Listen("tcp", addr.String()); err == nil {
		t.Error("somebody else got it, too")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := net.Listen("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
}

func TestNobodyListensAtAFoundAddress(t *testing.T) {
	port, err := loopback.Port()
	if err != nil || port == 0 {
		t.Fatal(port, err)
	}
	addr, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Errorf("somebody answers at %s", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
}
