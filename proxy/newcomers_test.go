package proxy_test

import (
	"net"
	"runtime"
	"testing"
)

// visits has so many clients come with a request each, and stay.
func visits(t *testing.T, l *loop, n int) (stay []net.Conn) {
	first := l.client
	defer func() { l.client = first }()
	for range n {
		c, err := net.Dial("tcp", first.RemoteAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		l.client = c
		l.once(t)
		stay = append(stay, c)
	}
	return stay
}

func leave(clients []net.Conn) {
	for _, c := range clients {
		c.Close()
	}
}

// memory is the bytes that are in use, and those that were ever taken.
func memory() (live, ever float64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.TotalAlloc)
}

// What a request needs it takes from those before it, and gives back: neither a client that comes for one request nor
// one that stays without another has it made anew. Clients and their sockets are in the numbers.
func TestAClientCostsLittleMemoryBesideItsRequest(t *testing.T) {
	if raceDetector {
		return // its pools forget
	}
	l := newLoop(t)
	leave(visits(t, l, 10))
	const clients = 300
	live, ever := memory()
	stay := visits(t, l, clients)
	more, made := memory()
	defer leave(stay)
	if each := (made - ever) / clients; each > mostMade {
		t.Errorf("%.0f bytes are made for a client with one request: want at most %d", each, mostMade)
	}
	if each := (more - live) / clients; each > mostKept {
		t.Errorf("%.0f bytes are kept for a client that waits: want at most %d", each, mostKept)
	}
}

const mostMade, mostKept = 4000, 3300
