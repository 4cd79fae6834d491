// Package loopback finds ports of this machine's loopback interface at which a server can listen, be killed, and listen
// again.
//
// A port that the system chooses ("127.0.0.1:0") lies among those it gives to outgoing connections. While the server is
// down the next of them may get it, or even reach itself there, so that the server cannot come back: rare, until a
// storm opens thousands.
package loopback

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// Below those that Linux (from 32768), macOS and Windows (from 49152) give to outgoing connections.
const first, count = 20000, 12000

// Listen listens at a free port, and fails only if the system has none at all.
func Listen() (net.Listener, error) {
	for range 100 {
		if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(first+rand.IntN(count))); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// Port finds a port at which nobody listens now, for a program that listens by itself.
func Port() (int, error) {
	l, err := Listen()
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// Address is Port as host:port.
func Address() (string, error) {
	l, err := Listen()
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
