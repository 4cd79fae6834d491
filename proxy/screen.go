package proxy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/abate-go/abate/internal/exhausted"
	"github.com/abate-go/abate/internal/untaken"
	"github.com/abate-go/abate/policy/reach"
)

// screen looks at every address that is about to be dialled for a host that the policy file does not list. What was
// looked up before does not count: between the two a name may have got another address.
type screen struct {
	list reach.List
	key  string // of the policy file
	host string
	port uint16
}

// deniedError is an address that may not be dialled.
type deniedError struct {
	text   string
	reason string // under which it is counted
}

func (e *deniedError) Error() string { return e.text }

// kinds are how the kinds of special addresses are called.
var kinds = map[string]string{
	"loopback": "a loopback address", "link-local": "a link-local address", "metadata": "where a cloud keeps credentials",
	"unspecified": "no address of another machine", "multicast": "a multicast address",
}

// deny says why an address is denied.
func (s *screen) deny(addr netip.Addr, v reach.Verdict) *deniedError {
	port := strconv.Itoa(int(s.port))
	at := net.JoinHostPort(addr.String(), port)
	if v.Special == "" {
		return &deniedError{fmt.Sprintf("%s of the policy file allows neither %s nor its address %s: add one of them", s.key,
			net.JoinHostPort(s.host, port), at), "unlisted"}
	}
	return &deniedError{fmt.Sprintf("%s of the policy file does not allow %s for %s: it is %s, which the list must have "+
		"itself; add %q if it is meant", s.key, addr, s.host, kinds[v.Special], at), v.Special}
}

// control is called with the address of every connection before it is made.
func (s *screen) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if v := s.list.Decide(s.host, s.port, at.Addr()); !v.Allowed {
		return s.deny(at.Addr().Unmap(), v)
	}
	return nil
}

// dialer returns what connections are made with. A nil screen lets every address through.
func (t *transport) dialer(s *screen) *net.Dialer {
	if s == nil && t.mark == 0 && t.control == nil {
		return new(net.Dialer)
	}
	return &net.Dialer{Control: func(network, address string, raw syscall.RawConn) error {
		if s != nil {
			if err := s.control(network, address, raw); err != nil {
				return err
			}
		}
		if t.control != nil {
			if err := t.control(network, address, raw); err != nil {
				return err
			}
		}
		if t.mark == 0 {
			return nil
		}
		return setMark(raw, t.mark)
	}}
}

// dialPast makes a connection to addr, if s lets its address through. Where this process has no descriptors left,
// those of idle connections to services are made free first.
func (t *transport) dialPast(ctx context.Context, s *screen, network, addr string) (net.Conn, error) {
	d := t.dialer(s)
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil && exhausted.Own(err) {
		t.idle()
		nc, err = d.DialContext(ctx, network, addr)
	}
	if err != nil {
		return nil, err
	}
	untaken.Bound(nc, t.stallTimeout)
	return nc, nil
}
