package proxy

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/policyfile"
)

// entrances is what the policy file's protect needs beside its gates: listeners, certificates and tokens, and the
// Redis that instances share. They follow the file once a second, and when it is reloaded.
type entrances struct {
	plane     *plane
	lobby     *lobby
	keyFiles  func() error // what is wrong with the files that keep idempotency keys
	secrets   secrets
	instances instances

	mu      sync.Mutex // held while following
	open    bool       // begin was called
	doors   map[string]*door
	trouble map[string]bool // what has been said and is not over
}

func (e *entrances) init(p *plane, l *lobby, m *metrics.Metrics, keyFiles func() error) {
	e.plane, e.lobby, e.keyFiles, e.doors = p, l, keyFiles, map[string]*door{}
	e.secrets.init(&p.config)
	e.instances.plane, e.instances.metrics = p, m
}

// prepare reads certificates and tokens for the first time, and begins to share what is shared: here what does not go
// is a mistake.
func (e *entrances) prepare() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return unusable(append(e.secrets.follow(e.plane.policies), e.instances.follow()))
}

// ListenError is an address of the policy file at which the proxy cannot listen.
type ListenError struct {
	Key     string // as in protect.orders.listen
	Address string
	Err     error
}

func (e *ListenError) Error() string { return fmt.Sprintf("%s %s: %v", e.Key, e.Address, e.Err) }

func (e *ListenError) Unwrap() error { return e.Err }

// begin opens the addresses, and has them followed from then on.
func (e *entrances) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	problems := e.openDoors()
	if len(problems) > 0 {
		e.closeDoors(nil)
		return errors.Join(problems...)
	}
	e.open = true
	e.lobby.review()
	return nil
}

// close ends what instances share.
func (e *entrances) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.instances.close()
}

// Entrance is an address at which clients of protected services come in.
type Entrance struct {
	Listen string          // as the file writes it
	Addr   net.Addr        // what came of it, with a port where that was left open
	TLS    bool            // clients speak TLS
	Gates  []*inbound.Gate // those behind it, in the order of the file
}

// list returns the addresses that are open, in the order of the file.
func (e *entrances) list() (all []Entrance) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, listen := range e.plane.policies.Listens() {
		if d := e.doors[listen]; d != nil {
			all = append(all, Entrance{listen, d.l.Addr(), d.secure.Load() != nil, e.gatesAt(listen)})
		}
	}
	return all
}

// gatesAt lists the gates behind an address.
func (e *entrances) gatesAt(listen string) (gates []*inbound.Gate) {
	for _, name := range e.plane.policies.GateNames() {
		g, ok := e.plane.policies.Gate(name)
		if p, listed := e.plane.policies.Protection(name); ok && listed && p.Listen == listen {
			gates = append(gates, g)
		}
	}
	return gates
}

// follow brings files and listeners up to the policy file. refresh does the same for other files, and returns what is
// wrong with them; it is called by one goroutine at a time.
func (e *entrances) follow(refresh func() []error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	problems := append(e.secrets.follow(e.plane.policies), refresh()...)
	if e.lobby.draining.Load() {
		return
	}
	problems = append(problems, e.instances.follow(), e.keyFiles())
	if e.open {
		e.closeDoors(e.plane.policies.Listens()) // first: an address that comes may be a wider one of those that go
		problems = append(problems, e.openDoors()...)
	}
	e.lobby.review()
	e.tell(append(problems, e.lobby.lost()...))
}

// tell logs problems that are new, and those that are over. mu is held.
func (e *entrances) tell(problems []error) {
	log := e.plane.config.Log
	now := map[string]bool{}
	for _, err := range problems {
		if err == nil {
			continue
		}
		if now[err.Error()] = true; !e.trouble[err.Error()] {
			log.Error("not in force, and tried again every second", "error", err)
		}
	}
	for before := range e.trouble {
		if !now[before] {
			log.Info("is over", "error", before)
		}
	}
	e.trouble = now
}

// openDoors opens the addresses that are not open yet. mu is held.
func (e *entrances) openDoors() (problems []error) {
	for _, listen := range e.plane.policies.Listens() {
		gates := e.gatesAt(listen)
		if len(gates) == 0 { // a reload is under way
			continue
		}
		p, ok := e.plane.policies.Protection(gates[0].Name())
		if !ok {
			continue
		}
		secure, err := e.secrets.secureAt(gates[0].Name(), p)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if d := e.doors[listen]; d != nil && d.isLost() { // somebody has removed its file: it comes back
			delete(e.doors, listen)
			d.retire()
		}
		if d := e.doors[listen]; d != nil {
			d.secure.Store(secure)
			d.announces.Store(announcers(p, gates))
			continue
		}
		l, err := Listen(listen)
		if err != nil {
			problems = append(problems, &ListenError{"protect." + gates[0].Name() + ".listen", listen, err})
			continue
		}
		d := e.lobby.enterAt(listen, l)
		if d == nil { // draining
			l.Close()
			continue
		}
		d.secure.Store(secure)
		d.announces.Store(announcers(p, gates))
		e.doors[listen] = d
		go e.attend(d)
	}
	return problems
}

// announcers are those who begin a connection with a PROXY header: whom all gates at the address trust.
func announcers(p *policyfile.Protection, gates []*inbound.Gate) *func(netip.Addr) bool {
	if !p.ProxyProtocol {
		return nil
	}
	all := func(peer netip.Addr) bool {
		return !slices.ContainsFunc(gates, func(g *inbound.Gate) bool { return !g.Trusts(peer) })
	}
	return &all
}

// attend serves at an address of the file. One that breaks is opened again by the next follow.
func (e *entrances) attend(d *door) {
	err := d.serve()
	if err == nil {
		return
	}
	e.plane.config.Log.Error("no longer listening, trying again", "listen", d.name, "error", err)
	e.mu.Lock()
	if e.doors[d.name] == d {
		delete(e.doors, d.name)
	}
	e.mu.Unlock()
	d.retire()
}

// closeDoors closes the doors that are not in keep. mu is held.
func (e *entrances) closeDoors(keep []string) {
	for listen, d := range e.doors {
		if !slices.Contains(keep, listen) {
			delete(e.doors, listen)
			d.retire()
		}
	}
}

// problems is what is not in force, as far as it was said.
func (e *entrances) problems() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.trouble))
}
