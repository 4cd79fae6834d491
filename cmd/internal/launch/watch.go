package launch

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/upstream"
)

// hosts are those of the services, each with its port, and whose each is: of their upstreams and of their routes.
func (s *session) hosts() map[string]string {
	all := map[string]string{}
	for _, name := range s.services() {
		d, ok := s.proxy.Policies().Service(name)
		if !ok {
			continue
		}
		for _, raw := range d.Policy.Upstreams {
			if u, ok := upstream.Parse(raw); ok && u.Authority() != "" {
				all[strings.ToLower(u.Authority())] = name
			}
		}
		for _, r := range d.Policy.Routes {
			if _, _, err := net.SplitHostPort(r.Host); r.Host != "" && err != nil {
				all[net.JoinHostPort(strings.ToLower(r.Host), "80")] = name
			} else if r.Host != "" {
				all[strings.ToLower(r.Host)] = name
			}
		}
	}
	return all
}

// addresses are those of the services, as far as they can be looked up, and those that discovery has found. Those of
// this proxy are not among them. A service of this machine may listen at all of its addresses, so all are watched.
func (s *session) addresses(ctx context.Context) map[netip.AddrPort]string {
	hosts, found := s.hosts(), map[netip.AddrPort]string{}
	for _, name := range s.services() {
		for _, at := range s.proxy.Addresses(name) {
			hosts[at] = name
		}
	}
	for at, name := range hosts {
		host, port, _ := net.SplitHostPort(at)
		n, _ := net.LookupPort("tcp", port)
		addrs, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host) // a name that has none cannot be gone to
		for _, a := range addrs {
			found[netip.AddrPortFrom(a.Unmap(), uint16(n))] = name
		}
	}
	var local []netip.Addr
	interfaces, _ := net.InterfaceAddrs() // without them the service's own address is left
	for _, i := range interfaces {
		if block, err := netip.ParsePrefix(i.String()); err == nil {
			local = append(local, block.Addr().Unmap())
		}
	}
	return everywhere(found, local)
}

// everywhere adds the other addresses of this machine to those of a service that is on it.
func everywhere(found map[netip.AddrPort]string, local []netip.Addr) map[netip.AddrPort]string {
	all := maps.Clone(found)
	for at, name := range found {
		if !at.Addr().IsLoopback() && !at.Addr().IsUnspecified() && !slices.Contains(local, at.Addr()) {
			continue
		}
		for _, a := range local {
			if other := netip.AddrPortFrom(a, at.Port()); found[other] == "" {
				all[other] = name
			}
		}
	}
	return all
}

// look looks for connections of the program that go past the proxy: often at first, and less often later. The kernel
// tells of those that are gone before anybody looks.
func (s *session) look(ctx context.Context, around *family) {
	if !looks {
		return
	}
	for round := 0; ; round++ {
		if round%50 == 0 {
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second) // a program may end at once
			s.to = s.addresses(limit)
			cancel()
			if s.kernel != nil {
				s.kernel.watch(s.to)
			}
		}
		s.glance(around)
		pause := time.Second
		if round < 100 {
			pause = 100 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			s.lookBack(around)
			return
		case <-time.After(pause):
		}
	}
}

// lookBack looks for what there was since the last glance, when the program has ended.
func (s *session) lookBack(around *family) {
	if s.kernel != nil {
		s.tally.complete = s.kernel.flush(2*time.Second) && !s.apart
	}
	s.glance(around)
	s.glance(around) // what has ended without a notice is believed when it is seen twice
}

// glance looks once.
func (s *session) glance(around *family) {
	list, told := []socket(nil), false
	if !s.apart && around.elsewhere() {
		s.apart = true
		s.say("the program is in a network namespace of its own: its calls do not reach the proxy, which is at %s out here, "+
			"and only connections that last a while are seen", s.around.proxy)
	}
	if s.kernel != nil && !s.apart {
		list, told = s.kernel.list()
	}
	if !told {
		list = around.list()
	}
	unknown := s.ledger.look(time.Since(s.began), list, s.to)
	has, hidden := around.holders(unknown)
	found := s.ledger.settle(unknown, has, hidden == 0)
	for _, line := range s.tally.sees(found, s.ledger.passages(s.to), s.to, s.around.bases) {
		s.say("%s", line)
	}
	if hidden != 0 && !s.unsure {
		s.unsure = true
		s.say("process %d of the program cannot be looked into, perhaps because it runs as another user: nobody sees "+
			"whether it calls a service without the proxy", hidden)
	}
}
