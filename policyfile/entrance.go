package policyfile

import (
	"fmt"
	"slices"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
)

// Entrance is where Set.Entrance sends a request that has arrived: to the gate first, and what that admits to the
// service.
type Entrance struct {
	Gate *inbound.Gate
	// Protection is that of the file by which the entrance was found, every default written out. It is shared: do not
	// change it. The gate may follow a newer one already.
	Protection *Protection
	// Destination is the service itself: its guard lets everything pass, and its policy has only the upstreams and
	// how they are balanced.
	Destination
}

// protected is one entry of protect in force. It is immutable.
type protected struct {
	gate  *inbound.Gate
	full  *Protection  // every default written out
	local *abate.Guard // of the way from here to the service
	to    *Policy      // its policy
}

// Gate returns the gate of a service under protect.
func (s *Set) Gate(name string) (*inbound.Gate, bool) {
	p := s.current.Load().protected[name]
	if p == nil {
		return nil, false
	}
	return p.gate, true
}

// Protection returns what the file has for a service under protect, every default written out. It is shared: do not
// change it.
func (s *Set) Protection(name string) (*Protection, bool) {
	p := s.current.Load().protected[name]
	if p == nil {
		return nil, false
	}
	return p.full, true
}

// Behind is the destination of what the gate of a service under protect admits: the service itself.
func (s *Set) Behind(name string) (Destination, bool) {
	t := s.current.Load()
	p := t.protected[name]
	if p == nil {
		return Destination{}, false
	}
	return Destination{Guard: p.local, Policy: p.to, Load: t.number}, true
}

// GateNames lists the services under protect in the order of the file.
func (s *Set) GateNames() []string {
	protect := s.current.Load().file.Protect
	names := make([]string, len(protect))
	for i := range protect {
		names[i] = protect[i].Name
	}
	return names
}

// Listens lists the addresses that the entries of protect listen on, each once, in the order of the file.
func (s *Set) Listens() []string { return slices.Clone(s.current.Load().listens) }

// Redis is where instances share limits, budgets and keys, every default written out; off when the file has none.
func (s *Set) Redis() Redis { return s.current.Load().file.Redis.WithDefaults() }

// Entrance finds what a request that arrived at listen, one of Listens, belongs to. The longest path prefix of the
// routes wins, and between equal paths the more exact host, as in Match; an entry without routes takes what no other
// takes.
func (s *Set) Entrance(listen, host, path string) (Entrance, bool) {
	t := s.current.Load()
	x := t.entrances[listen]
	if x == nil {
		return Entrance{}, false
	}
	d, _ := x.find(host, path)
	p := t.protected[d.service]
	if p == nil {
		return Entrance{}, false
	}
	return Entrance{p.gate, p.full, Destination{p.local, p.to, t.number, d.label, false, d.rewrite}}, true
}

// Places is what the calls of the Set's guards hold while they last, for a guard beside it: Policy.Places of each that
// no hook has given another.
func (s *Set) Places() abate.Places { return (*held)(s) }

// held is a Set as what the calls of its guards hold while they last: a request that a gate of the file has let in. It
// is the same program that answers and that calls; what it calls for nobody's request holds nothing, but is not told
// from the rest.
type held Set

// Scarce reports whether little is left of what one of the services behind the gates can do at once.
func (h *held) Scarce() bool {
	t := h.current.Load()
	if t == nil { // it is being loaded
		return false
	}
	for _, p := range t.protected {
		if p.gate.Scarce() {
			return true
		}
	}
	return false
}

// gateChange is a gate and the protection it is about to get.
type gateChange struct {
	gate       *inbound.Gate
	protection inbound.Protection
}

// planGates makes the gates and local guards that t needs, and returns which of the existing ones have to change. It
// changes none of them.
func (s *Set) planGates(t *table) (changes []gateChange, problems []error) {
	for i := range t.file.Protect {
		name, p := t.file.Protect[i].Name, t.file.Protect[i].Protection.own()
		for _, f := range s.hooks.Protection {
			f(name, &p.Protection)
		}
		to := Policy{Upstreams: p.Upstreams, Discovery: p.Discovery, OutlierDetection: p.OutlierDetection,
			TLS: p.UpstreamTLS, SendProxyProtocol: p.SendProxyProtocol}
		full, fullTo := p.WithDefaults(), to.WithDefaults()
		if p.IdentityHeaders == "" && t.file.authenticatesAt(p.Listen) {
			full.IdentityHeaders = "remove"
		}
		entry := &protected{full: &full, to: &fullTo}
		var err error
		if old := s.gates[name]; old == nil {
			if entry.gate, err = inbound.NewGate(name, p.Protection); err == nil {
				entry.local, err = abate.New(localName(name), abate.Policy{})
			}
		} else if err = p.Validate(); err != nil {
			err = fmt.Errorf("policyfile: protection of %q: %w", name, err)
		} else {
			entry.gate, entry.local = old.gate, old.local
			changes = append(changes, gateChange{old.gate, p.Protection})
		}
		problems = append(problems, err)
		t.protected[name] = entry
	}
	return changes, problems
}

// putGates has gates follow their new protections.
func putGates(changes []gateChange) {
	for _, c := range changes {
		_ = c.gate.Update(c.protection) // checked by planGates: it cannot fail
	}
}

// newEntrances is where requests go by the address they arrive at, and these addresses in the order of the file.
func newEntrances(protect []Protected) (entrances map[string]*index, listens []string) {
	entrances = map[string]*index{}
	for i := range protect {
		name, p := protect[i].Name, &protect[i].Protection
		if p.Listen == "" {
			continue
		}
		x := entrances[p.Listen]
		if x == nil {
			x = emptyIndex()
			entrances[p.Listen], listens = x, append(listens, p.Listen)
		}
		for _, r := range p.Routes {
			x.addRoute(r, name)
		}
		if len(p.Routes) == 0 {
			x.add(x.routes, place{}, destination{service: name, label: "/"})
		}
	}
	return entrances, listens
}
