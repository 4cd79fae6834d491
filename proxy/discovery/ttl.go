package discovery

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// lifetime is the least TTL of the answers of one look: when the first of them is over, so is the look.
type lifetime struct {
	mu    sync.Mutex
	least time.Duration
	known bool
}

// read takes what a message of a name server says.
func (l *lifetime) read(message []byte) {
	var p dnsmessage.Parser
	if h, err := p.Start(message); err != nil || !h.Response || p.SkipAllQuestions() != nil {
		return
	}
	for {
		h, err := p.AnswerHeader()
		if err != nil || p.SkipAnswer() != nil {
			return
		}
		switch h.Type {
		case dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeCNAME, dnsmessage.TypeSRV:
			l.note(time.Duration(h.TTL) * time.Second)
		}
	}
}

func (l *lifetime) note(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known || ttl < l.least {
		l.least, l.known = ttl, true
	}
}

// get is the least, unsaid if there was none.
func (l *lifetime) get() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		return unsaid
	}
	return l.least
}

// reader reads along what Go's resolver reads, and tells l.
func (l *lifetime) reader(c net.Conn) net.Conn {
	if u, ok := c.(*net.UDPConn); ok {
		return &datagrams{UDPConn: u, l: l}
	}
	return &stream{Conn: c, l: l}
}

// datagrams has one message in each read. The resolver wants to see a net.PacketConn.
type datagrams struct {
	*net.UDPConn
	l *lifetime
}

func (d *datagrams) Read(b []byte) (int, error) {
	n, err := d.UDPConn.Read(b)
	d.l.read(b[:n])
	return n, err
}

// stream has messages with their length before them, in reads of any size.
type stream struct {
	net.Conn
	l    *lifetime
	have []byte
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.have = append(s.have, b[:n]...)
	for len(s.have) >= 2 {
		size := int(binary.BigEndian.Uint16(s.have))
		if len(s.have) < 2+size {
			break
		}
		s.l.read(s.have[2 : 2+size])
		s.have = s.have[2+size:]
	}
	return n, err
}
