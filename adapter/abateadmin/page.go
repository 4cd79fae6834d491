package abateadmin

import (
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
)

// Config is what a Page is made with. The zero Config is usable: everybody sees, nobody changes anything.
type Config struct {
	// Title stands at the top of the page, such as the name of the program. Empty means "abate".
	Title string
	// Sees reports whether whoever sends the request may see data; nil: everybody. A stream asks again every second.
	Sees func(*http.Request) bool
	// Known reports whether whoever sends the request may change something; nil: nobody may.
	Known func(*http.Request) bool
	// Who is the name of somebody who is Known, for the log and the page; nil or "" if there is none.
	Who func(*http.Request) string
	// How says how to be allowed to change something. Empty means a sentence about Known.
	How string
	// Hosts are names under which a page on loopback may be asked for, without port, besides localhost and addresses.
	Hosts []string
	// Reload loads the policy file again; nil if there is none.
	Reload func() error
	// File returns the state of the policy file; nil if there is none. It is asked once a second for each reader.
	File func() File
	// Format makes a text of a policy, such as policyfile.Format, or Set.FormatPolicy of a policy file; nil shows no
	// policies.
	Format func(name string, p *abate.Policy) []byte
	// Log gets what was changed from the page; nil means slog.Default.
	Log *slog.Logger
}

// File is a policy file and what became of it.
type File struct {
	Path   string
	Loaded time.Time
	// Err is why the file as it is now was not loaded; nil if it was.
	Err error
}

// Page shows what guards and gates do. It is safe for concurrent use. Make one with New.
type Page struct {
	config Config
	mux    *http.ServeMux
	cross  *http.CrossOriginProtection
	origin time.Time // of the guards' clock
	tick   time.Duration

	places chan struct{} // of readers
	closed chan struct{}
	end    sync.Once

	mu     sync.Mutex
	guards map[string]*subject
	gates  map[string]*gateSubject
	acts   []Act  // the newest last
	run    int    // how often Begin was called
	about  string // what it said
}

// subject is a name and the guards that have it.
type subject struct {
	record *record
	guards []*abate.Guard
}

type gateSubject struct {
	record *gateRecord
	gate   *inbound.Gate // nil before AddGate
}

// maxReaders is how many look at the same time; each costs a little every second.
const maxReaders = 64

// New returns a page without guards.
func New(c Config) *Page {
	if c.Title == "" {
		c.Title = "abate"
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.How == "" {
		c.How = "This page only shows. To change something from it, the program has to set abateadmin.Config.Known."
	}
	p := &Page{
		config: c, cross: http.NewCrossOriginProtection(), origin: time.Now().Add(-core.Now()), tick: time.Second,
		places: make(chan struct{}, maxReaders), closed: make(chan struct{}),
		guards: map[string]*subject{}, gates: map[string]*gateSubject{},
	}
	p.routes()
	return p
}

// Close ends the streams of all readers, and refuses new ones. It is for http.Server.RegisterOnShutdown: a server that
// shuts down waits for its readers.
func (p *Page) Close() { p.end.Do(func() { close(p.closed) }) }

// Adjust makes the policy of a service report to the page what its guard does: it is an argument for policyfile.Load,
// or is called on a policy before abate.New. An observer that is already set is called too. Policies of one service get
// observers that are equal, so that a reload which changes nothing is seen as one; adjusting a policy twice counts
// once.
func (p *Page) Adjust(service string, policy *abate.Policy) {
	p.mu.Lock()
	r := p.subject(service).record
	p.mu.Unlock()
	policy.Observer = abate.Observers(r, policy.Observer)
}

// Begin forgets all guards and gates, and whatever was counted under their names: one run is over, and about says in a
// few words which one begins, such as the act of a drill. What is adjusted from then on counts from zero, and what the
// guards of before still do is no longer seen. A program that serves has one run, and does not call it.
func (p *Page) Begin(about string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.guards, p.gates = map[string]*subject{}, map[string]*gateSubject{}
	p.run++
	p.about = about
}

// title is what stands at the top, and which run it is. mu is held.
func (p *Page) title() string {
	if p.about == "" {
		return p.config.Title
	}
	return p.config.Title + ": " + p.about
}

// subject returns the one of a name, made when it is needed first. mu is held.
func (p *Page) subject(name string) *subject {
	s := p.guards[name]
	if s == nil {
		s = &subject{record: new(record)}
		p.guards[name] = s
	}
	return s
}

// gateSubject is subject for gates. mu is held.
func (p *Page) gateSubject(name string) *gateSubject {
	s := p.gates[name]
	if s == nil {
		s = &gateSubject{record: new(gateRecord)}
		p.gates[name] = s
	}
	return s
}

// Add shows these guards. Those with the same name share a row: it counts how many of their circuits are open, and adds
// up the rest. Adding a guard twice is fine. One whose policy was not adjusted shows its state and no traffic.
func (p *Page) Add(guards ...*abate.Guard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range guards {
		if s := p.subject(g.Name()); !slices.Contains(s.guards, g) {
			s.guards = append(s.guards, g)
		}
	}
}

// Remove no longer shows these guards. What was counted under their names is kept for when they come back.
func (p *Page) Remove(guards ...*abate.Guard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range guards {
		if s := p.guards[g.Name()]; s != nil {
			s.remove(g)
		}
	}
}

// remove takes a guard out. What it has reported about its circuit no longer counts: nobody will report that it is
// closed again.
func (s *subject) remove(g *abate.Guard) {
	i := slices.Index(s.guards, g)
	if i < 0 {
		return
	}
	s.guards = slices.Delete(s.guards, i, i+1)
	if core.Reaches(g.Describe().Observer, s.record) {
		s.record.notes.leave(core.Now(), g.State().Breaker.State)
	}
}

// AdjustProtection makes a protection report to the page what its gate does. It is Adjust for gates, and fits the
// Protection of policyfile.Hooks.
func (p *Page) AdjustProtection(name string, protection *inbound.Protection) {
	p.mu.Lock()
	r := p.gateSubject(name).record
	p.mu.Unlock()
	protection.Observer = inbound.GateObservers(r, protection.Observer)
}

// AddGate shows these gates. Of two with the same name the one added last is shown.
func (p *Page) AddGate(gates ...*inbound.Gate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range gates {
		p.gateSubject(g.Name()).gate = g
	}
}

// RemoveGate no longer shows these gates.
func (p *Page) RemoveGate(gates ...*inbound.Gate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range gates {
		if s := p.gates[g.Name()]; s != nil && s.gate == g {
			s.gate = nil
		}
	}
}

// wall places a time of the guards' clock in history, in milliseconds since 1970.
func (p *Page) wall(at time.Duration) int64 { return p.origin.Add(at).UnixMilli() }
