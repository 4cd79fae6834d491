package proxy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	holding "github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// client is where a request came from and its answer goes: a clientConn (HTTP/1.1) or a stream (HTTP/2).
type client interface {
	// gone reports whether the client has left.
	gone() bool
	// context ends when the client leaves, if gone has no way to tell.
	context() context.Context
	// takeContent returns the content of the request if all of it is there already.
	takeContent() ([]byte, bool)
	// skipContent does away with what is there of the content that nobody wants.
	skipContent()
	// Read reads the content otherwise: it waits for StallTimeout at most, and not past until. stop interrupts it, and
	// complete reports whether the content has been read to its end.
	Read(p []byte, until time.Duration) (int, error)
	stop()
	complete() bool
	trailer() []h1.Field

	// interim sends an informational answer; begin the head of the final one, write and end its content, and abort
	// breaks it off.
	interim(status int, fields []h1.Field)
	begin(*head)
	write([]byte)
	flush()
	end(trailer []h1.Field)
	abort()
	// broken reports whether the client no longer takes what is sent.
	broken() bool

	// next is Read without a copy, for a client of HTTP/2: what it returns is valid until the next call.
	next(until time.Duration) ([]byte, error)
	// hook has the waits for up end when the client leaves; it is false if the client has no way to do that. unhook
	// ends it.
	hook(up *h2.Stream) bool
	unhook()
	// sink is the socket to which content can be moved without reading it, within stall; nil if there is none, or if it
	// has to be known whether the client or the service is waited for.
	// takeOver gives the connection away, with what has been read of it; nil if it cannot be given away.
	sink(stall time.Duration) *net.TCPConn
	takeOver() (nc net.Conn, early []byte)
	// accept tells the client of CONNECT that its tunnel is there. enterTunnel does so too, and has the requests that come
	// in it be read; it is false if that cannot be.
	accept()
	enterTunnel(authority []byte) bool

	// lend has the waits for the client lend the slot that the request holds at its gate, until lend(nil).
	lend(*holding.Loan)

	// origin is where it comes from; multiplexed reports whether it speaks HTTP/2.
	origin() *origin
	multiplexed() bool
}

// head is the head of an answer to a client.
type head struct {
	status int
	reason []byte // nil for the usual one
	fields []h1.Field
	length int64  // of the content, -1 when not known
	extra  []byte // more fields, as lines
}

// clone returns the head in memory of its own.
func (a head) clone() head {
	a.reason, a.extra = bytes.Clone(a.reason), bytes.Clone(a.extra)
	fields := make([]h1.Field, len(a.fields))
	for i, f := range a.fields {
		fields[i] = h1.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)}
	}
	a.fields = fields
	return a
}

// says reports whether the answer has a field already.
func (a *head) says(name string) bool {
	for _, f := range a.fields {
		if strings.EqualFold(text(f.Name), name) {
			return true
		}
	}
	return strings.Contains(text(a.extra), name+": ")
}

// origin is where a connection comes from.
type origin struct {
	listen string         // the door at which it came in, as the policy file writes it; "" where no gate stands
	peer   netip.Addr     // the zero Addr if it has none
	self   netip.AddrPort // the address at which it came in; zero if it has none
	name   string         // in the client's certificate, "" without one
	tls    bool
	// service is whose calls come in at the door, "" for those of all. tunnelled is the authority of a CONNECT before the
	// requests. original is where the connection was meant for that a firewall has redirected to the door.
	service   string
	tunnelled []byte
	original  netip.AddrPort

	source, dst netip.AddrPort // of the client's connection, or what a trusted proxy says of it; zero if not known

	upstreamSlots atomic.Int32 // that the connection has
	herald        herald       // of it, for PROXY headers
}

// isSelf reports whether an absolute URI names the address at which the proxy got it.
func (o *origin) isSelf(r *h1.Request) bool {
	var room [64]byte
	host, self := text(r.Host), text(o.self.AppendTo(room[:0]))
	if host == self {
		return true
	}
	port, ok := strings.CutPrefix(host, "localhost:")
	return ok && strings.HasSuffix(self, ":"+port)
}

// meant is the authority that a request asks for which was redirected here: its Host, with the port that it was sent
// to.
func (o *origin) meant(host string) string {
	port := strconv.Itoa(int(o.original.Port()))
	switch i := strings.LastIndexByte(host, ':'); {
	case host == "":
		return o.original.String()
	case i >= 0 && strings.IndexByte(host[i:], ']') < 0:
		return host
	case o.original.Port() == 80:
		return host
	}
	return host + ":" + port
}

// announced is what services are told of the client by PROXY headers of that version; 0 is none.
func (o *origin) announced(version int) announcement {
	if version == 0 {
		return announcement{}
	}
	return announcement{version, o.source, o.dst, &o.herald}
}

// glance is how often a wait looks whether the client has left.
const glance = 250 * time.Millisecond

// errGone is the end of a call whose client has left.
var errGone = context.Canceled

// errSlowBody is a client that does not send what it has announced.
var errSlowBody = &h1.Error{Status: 408, Problem: "the body of the request did not come in time"}

// errStopped ends a Read that stop has interrupted.
var errStopped = errors.New("the rest of the request is not wanted")

var errStalls = errors.New("the client takes nothing")
