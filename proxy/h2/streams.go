package h2

import (
	"slices"
	"sync/atomic"
)

// streams is the table of the streams of which frames may come or go, and what is known of those that have ended. The
// mutex of the connection guards it.
type streams struct {
	server bool
	most   int                // Config.MaxStreams
	open   map[uint32]*Stream // those with listed set
	count  atomic.Int32       // how many, for those who do not hold the mutex
	heads  int                // bytes of the heads of requests, until their handlers return
	lastID uint32             // of the streams that the client has opened, on either side
	// skipped is the last id that the client has left out.
	skipped uint32
	// final says that the last GOAWAY was sent: lastID does not change any more, and later requests come too late.
	final  bool
	ended  []uint32 // streams that a server ended before the peer knew, the latest; a ring
	oldest int      // of ended
}

// maxHeads is how much memory the heads and trailers of all streams that a client has open may take before more are
// refused.
const maxHeads = 4 << 20

func (t *streams) add(s *Stream) {
	s.listed = true
	t.open[s.id] = s
	t.count.Store(int32(len(t.open)))
}

// remove reports whether s was in the table.
func (t *streams) remove(s *Stream) bool {
	if !s.listed {
		return false
	}
	s.listed = false
	delete(t.open, s.id)
	t.count.Store(int32(len(t.open)))
	return true
}

// full reports whether a client has as many streams open as it may, or their heads take too much.
func (t *streams) full() bool { return len(t.open) >= t.most || t.heads > maxHeads }

// nextID opens a stream of this side, a client, and reports whether there can be another one.
func (t *streams) nextID() (id uint32, more bool) {
	if t.lastID == 0 {
		t.lastID = 1
	} else {
		t.lastID += 2
	}
	return t.lastID, t.lastID < maxStreamID-2
}

// lastOfPeer returns the last stream of the peer, which a GOAWAY names. A server opens none.
func (t *streams) lastOfPeer() uint32 {
	if t.server {
		return t.lastID
	}
	return 0
}

// admit opens the stream with that id, if its head may do so. If not, the head is to be left out; an error ends the
// connection.
func (t *streams) admit(id uint32) (ok bool, err error) {
	switch {
	case id%2 == 0:
		return false, &ConnError{Code: ProtocolError, Problem: "a client opened a stream with an even id"}
	case id > t.lastID:
		if t.final { // it comes too late, and the client knows
			t.remember(id)
			return false, nil
		}
		if id > t.lastID+2 {
			t.skipped = id - 2
		}
		t.lastID = id
		return true, nil
	case t.remembers(id):
		return false, nil
	case id > t.skipped:
		return false, &ConnError{Code: StreamClosed, Problem: "HEADERS on a stream that has ended"}
	}
	return false, &ConnError{Code: ProtocolError, Problem: "a stream was opened after one with a higher id"}
}

// isIdle reports whether a stream has not been opened yet, or never can be.
func (t *streams) isIdle(id uint32) bool {
	return id%2 == 0 || id > t.lastID && !(t.server && t.final) // else it came too late
}

// remember notes a stream that this side has ended and of which frames may be on their way: twice as many as may have
// been open at once. A client knows all streams that were open without that: it has opened them.
func (t *streams) remember(id uint32) {
	if !t.server {
		return
	}
	if len(t.ended) < 2*t.most {
		t.ended = append(t.ended, id)
		return
	}
	t.ended[t.oldest] = id
	t.oldest = (t.oldest + 1) % len(t.ended)
}

func (t *streams) remembers(id uint32) bool {
	return slices.Contains(t.ended, id)
}
