package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// A service that finishes its half of a tunnel first gets all that its client goes on sending, however long that takes.
func TestATunnelDoesNotCutAClientThatGoesOn(t *testing.T) {
	t.Parallel() // it takes seconds
	const stall = 2 * time.Second
	came, got := make(chan byte), make(chan string, 1)
	s, _ := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade+"bye\n")
		c.CloseWrite()
		n := 0
		for {
			b, err := in.ReadByte()
			if err != nil {
				got <- fmt.Sprint(n, " bytes, then ", err)
				close(came)
				return
			}
			n++
			came <- b
		}
	})
	c := start(t, single([]string{s.url}), stallTimeout(stall)).dial()
	c.send(askUpgrade).switched()
	c.expect("bye\n")
	sent := 0
	for end := time.Now().Add(stall + stall/2); time.Now().Before(end); {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Error(err)
			break
		}
		sent++
		if _, ok := <-came; !ok {
			break
		}
	}
	c.CloseWrite()
	if rest, want := wait(t, "the rest", got), fmt.Sprint(sent, " bytes, then EOF"); rest != want {
		t.Errorf("the service got %s; want %s", rest, want)
	}
}

// A client that breaks off must not look like one that has finished.
func TestAServiceSeesThatTheClientOfItsTunnelBrokeOff(t *testing.T) {
	got := make(chan error, 1)
	s, _ := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade)
		_, err := io.ReadAll(in)
		got <- err
	})
	c := start(t, single([]string{s.url})).dial()
	c.send(askUpgrade).switched()
	c.Write([]byte("part"))
	c.SetLinger(0)
	c.Close()
	if err := wait(t, "the end", got); err == nil {
		t.Error("the service takes the part for the whole")
	}
}
