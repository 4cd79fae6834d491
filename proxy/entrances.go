package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy/identity"
)

// entrances is what the policy file's protect needs beside its gates: listeners, certificates and tokens. They follow the
// file once a second, and when it is reloaded.
type entrances struct {
	mu      sync.Mutex // held while following
	open    bool       // Open was called
	doors   map[string]*door
	tokens  map[string]*watched[identity.Tokens]
	secure  map[abate.TLS]*watched[tls.Config]
	trouble map[string]bool // what has been said and is not over
}

// ListenError is an address of the policy file at which the proxy cannot listen.
type ListenError struct {
	Key     string // as in protect.orders.listen
	Address string
	Err     error
}

func (e *ListenError) Error() string { return fmt.Sprintf("%s %s: %v", e.Key, e.Address, e.Err) }
func (e *ListenError) Unwrap() error { return e.Err }

// Open listens at the addresses of the file's protect, and from then on follows the file: addresses that come are opened,
// those that go are closed once their clients have their answers. The error joins one *ListenError for each that cannot be
// opened; then none is. Later such an address is logged and tried again every second, and the others serve on.
func (p *Proxy) Open() error {
	e := &p.entrances
	e.mu.Lock()
	defer e.mu.Unlock()
	problems := p.openDoors()
	if len(problems) > 0 {
		p.closeDoors(nil)
		return errors.Join(problems...)
	}
	e.open = true
	return nil
}

// Entrance is an address at which clients of protected services come in.
type Entrance struct {
	Listen string        // as the file writes it
	Addr   net.Addr      // what came of it, with a port where that was left open
	TLS    bool          // clients speak TLS
	Gates  []*abate.Gate // those behind it, in the order of the file
}

// Entrances lists the addresses that are open, in the order of the file.
func (p *Proxy) Entrances() (all []Entrance) {
	e := &p.entrances
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, listen := range p.policies.Listens() {
		if d := e.doors[listen]; d != nil {
			all = append(all, Entrance{listen, d.l.Addr(), d.secure.Load() != nil, p.gatesAt(listen)})
		}
	}
	return all
}

// gatesAt lists the gates behind an address.
func (p *Proxy) gatesAt(listen string) (gates []*abate.Gate) {
	for _, name := range p.policies.GateNames() {
		if g, ok := p.policies.Gate(name); ok && g.Describe().Listen == listen {
			gates = append(gates, g)
		}
	}
	return gates
}

// follow brings files and listeners up to the policy file.
func (p *Proxy) follow() {
	e := &p.entrances
	e.mu.Lock()
	defer e.mu.Unlock()
	problems := p.readSecrets()
	if p.draining.Load() {
		return
	}
	if err := p.followRedis(); err != nil {
		problems = append(problems, err)
	}
	if err := p.keyFiles.Err(); err != nil {
		problems = append(problems, err)
	}
	if e.open {
		p.closeDoors(p.policies.Listens()) // first: an address that comes may be a wider one of those that go
		problems = append(problems, p.openDoors()...)
	}
	p.tell(problems)
}

// tell logs problems that are new, and those that are over. mu is held.
func (p *Proxy) tell(problems []error) {
	e, log := &p.entrances, p.config.Log
	now := map[string]bool{}
	for _, err := range problems {
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
func (p *Proxy) openDoors() (problems []error) {
	e := &p.entrances
	for _, listen := range p.policies.Listens() {
		gates := p.gatesAt(listen)
		if len(gates) == 0 { // a reload is under way
			continue
		}
		secure, err := p.secureAt(gates[0])
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if d := e.doors[listen]; d != nil {
			d.secure.Store(secure)
			continue
		}
		l, err := net.Listen("tcp", listen)
		if err != nil {
			problems = append(problems, &ListenError{"protect." + gates[0].Name() + ".listen", listen, err})
			continue
		}
		d := p.enterAt(listen, l)
		if d == nil { // draining
			l.Close()
			continue
		}
		d.secure.Store(secure)
		e.doors[listen] = d
		go d.attend()
	}
	return problems
}

// attend serves at an address of the file. One that breaks is opened again by the next follow.
func (d *door) attend() {
	err := d.serve()
	if err == nil {
		return
	}
	d.proxy.config.Log.Error("no longer listening, trying again", "listen", d.name, "error", err)
	e := &d.proxy.entrances
	e.mu.Lock()
	if e.doors[d.name] == d {
		delete(e.doors, d.name)
	}
	e.mu.Unlock()
	d.retire()
}

// secureAt is the certificate to show at an address, nil for none. It is an error while none could be read.
func (p *Proxy) secureAt(g *abate.Gate) (*watched[tls.Config], error) {
	t := g.Describe().TLS
	if !t.Enabled() {
		return nil, nil
	}
	w := p.entrances.secure[t]
	if w == nil || w.value.Load() == nil {
		return nil, fmt.Errorf("protect.%s.listen %s: not opened without its certificate", g.Name(), g.Describe().Listen)
	}
	return w, nil
}

// closeDoors closes the doors that are not in keep. mu is held.
func (p *Proxy) closeDoors(keep []string) {
	e := &p.entrances
	for listen, d := range e.doors {
		if !slices.Contains(keep, listen) {
			delete(e.doors, listen)
			d.retire()
		}
	}
}
