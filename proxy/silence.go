package proxy

import (
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
)

// silence is since when a client has sent nothing, for those who look for room: whoever is in the middle of something
// is not idle.
type silence struct {
	// since when it waits for a request, and may be dismissed; 0 while it does not
	waiting atomic.Int64
	// since when something is coming of which more is awaited: the head of a request, a part of a TLS record that may
	// begin one, a handshake, or the header of a balancer; 0 otherwise. It says more than waiting.
	heading atomic.Int64
	// it has asked for something. Who has not may have a request on its way, which is lost with the connection: that is
	// new, and no client tries again what fails on a new one.
	asked atomic.Bool
}

// begins notes that something is coming, unless that is known.
func (s *silence) begins() { s.heading.CompareAndSwap(0, int64(max(core.Now(), 1))) }

// records follows the records of TLS as they come, to tell whether one is there in part: that is with package tls, out
// of sight.
type records struct {
	of     *silence
	header [5]byte
	got    int // of header
	left   int // of the record behind it
}

// pass follows what comes next.
func (r *records) pass(p []byte) {
	for len(p) > 0 {
		if r.left > 0 {
			n := min(r.left, len(p))
			r.left, p = r.left-n, p[n:]
			continue
		}
		r.header[r.got], p = p[0], p[1:]
		if r.got++; r.got == len(r.header) {
			r.got, r.left = 0, int(r.header[3])<<8|int(r.header[4])
		}
	}
	r.tell()
}

// tell has the silence of a client that waits for its next request be broken by a part of a record.
func (r *records) tell() {
	switch {
	case r.of.waiting.Load() == 0:
	case r.got > 0 || r.left > 0:
		r.of.begins()
	default:
		r.of.heading.Store(0)
	}
}

// restBy is until when the rest of a record is awaited of which a part has come; 0 if none has.
func (r *records) restBy() time.Duration {
	if began := r.of.heading.Load(); began != 0 && (r.got > 0 || r.left > 0) {
		return later(time.Duration(began), slowEnough)
	}
	return 0
}

// slowEnough is how long what has begun may take where others wait for the room.
const slowEnough = time.Second
