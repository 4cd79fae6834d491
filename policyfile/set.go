package policyfile

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/redelivery"
)

// maxUnlisted is how many names that the file does not list get a guard of their own.
const maxUnlisted = 1_000

// sharedName is the guard of all names past maxUnlisted.
const sharedName = "(unlisted)"

// Set is the guards and gates of one policy file. It is safe for concurrent use. They live as long as the Set: a reload
// changes their policy or protection and keeps their state, so fetch one once and keep it, or look it up for every
// call; both see reloads.
type Set struct {
	// Interval is how often Watch looks at the file; 0 means once a second. Set it before Watch.
	Interval time.Duration

	path  string
	hooks Hooks

	current atomic.Pointer[table]
	others  sync.Map // name to *abate.Guard: asked for while not listed, or listed before
	reload  sync.Mutex
	shared  *abate.Guard          // under reload; never replaced
	unasked int                   // members of others; under reload
	gates   map[string]*protected // by name, also those that the file no longer has; under reload

	status atomic.Pointer[Status]
}

// Hooks set what a file cannot hold: Policy such as Observer and Classify, Protection such as Observer, Fleet and
// Store. The functions run in their order on each policy and each protection, at the first load and at every later one,
// before it is put in force. They must be safe to call from Reload's goroutine.
type Hooks struct {
	Policy     []func(service string, p *abate.Policy)
	Protection []func(name string, p *inbound.Protection)
}

// table is one file in force. It is immutable.
type table struct {
	file   *File
	listed map[string]*abate.Guard
	full   map[string]*Policy // every default written out
	index  *index
	number uint64 // of the load

	protected map[string]*protected
	entrances map[string]*index // by listen
	paths     map[string]string // by listen, "" for calls that go out: a word of PathRules
	listens   []string
	outside   *Outside
}

// Status is the policy in force and the result of the last attempt to load another.
type Status struct {
	Path   string
	Loaded time.Time // when the policy in force was loaded
	Hash   string    // SHA-256 of the file in force, in hex
	Err    error     // why the last load failed; nil when it did not

	tried string // contentOf the last load, good or bad
}

// Load is LoadWith for those who need to set something in policies only.
func Load(path string, adjust ...func(service string, p *abate.Policy)) (*Set, error) {
	return LoadWith(path, Hooks{Policy: adjust})
}

// LoadWith reads the file, checks everything and makes the guards and gates. For services that the file does not list
// the hooks run when their guard is made. A file with mistakes gives an Errors.
func LoadWith(path string, hooks Hooks) (*Set, error) {
	s := &Set{path: path, hooks: hooks, gates: map[string]*protected{}}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

// Guard returns the guard of a service, never nil. A service that the file does not list gets one under the defaults,
// made once; past 1,000 such names they share one, so that names taken from requests cannot fill the memory.
func (s *Set) Guard(name string) *abate.Guard {
	if g, ok := s.Lookup(name); ok {
		return g
	}
	if g, ok := s.others.Load(name); ok {
		return g.(*abate.Guard)
	}
	s.reload.Lock()
	defer s.reload.Unlock()
	t := s.current.Load()
	if g := t.listed[name]; g != nil {
		return g
	}
	if g, ok := s.others.Load(name); ok {
		return g.(*abate.Guard)
	}
	if name == "" || s.unasked >= maxUnlisted {
		return s.shared
	}
	g, err := abate.New(name, s.adjusted(name, t.file.Defaults.forStrangers()).Policy)
	if err != nil { // adjust made the policy invalid for this name only
		return s.shared
	}
	s.others.Store(name, g)
	s.unasked++
	return g
}

// Lookup returns the guard of a service that the file lists.
func (s *Set) Lookup(name string) (*abate.Guard, bool) {
	g := s.current.Load().listed[name]
	return g, g != nil
}

// Names lists the services of the file in its order.
func (s *Set) Names() []string {
	services := s.current.Load().file.Services
	names := make([]string, len(services))
	for i := range services {
		names[i] = services[i].Name
	}
	return names
}

// Match returns the guard of the service that a request belongs to. host may carry a port. Routes are looked at first:
// the longest path prefix wins, on whole segments, and between equal paths the more exact host. Then upstreams: a
// request to the host of a base URL belongs to its service. path is compared as it is. Give it as it is sent, in Go
// what URL.EscapedPath returns: unescaped, an escaped slash would look like one.
func (s *Set) Match(host, path string) (*abate.Guard, bool) {
	m, ok := s.Route(host, path)
	return m.Guard, ok
}

// Destination is where Route sends a request.
type Destination struct {
	Guard *abate.Guard
	// Policy is the service's policy in the file by which the route was found, every default written out. It is shared:
	// do not change it. The guard may follow a newer one already; upstreams are to be taken from here, so that a
	// request that has been routed arrives although the file is replaced meanwhile. Load counts the loads, so that it
	// can be seen which of two policies is newer.
	Policy *Policy
	Load   uint64
	// Label is the route as the file writes it, or the host and base path of the upstream: a bounded set, fit for metrics.
	Label string
	// Upstream reports whether the request named an upstream of the service itself, as requests to a forward proxy do.
	Upstream bool
	// Rewrite is what the route makes of the path.
	Rewrite Rewrite
}

// Route is Match with what a proxy needs to know beyond the guard.
func (s *Set) Route(host, path string) (Destination, bool) {
	t := s.current.Load()
	d, upstream := t.index.find(host, path)
	return t.destination(d, upstream)
}

// Forward is Route for a request to a forward proxy, whose target is an absolute URI with that scheme: its authority
// decides, always. Routes without a host are for requests to the proxy itself, and do not count; an upstream counts if
// its port is the same.
func (s *Set) Forward(scheme, host, path string) (Destination, bool) {
	t := s.current.Load()
	d, upstream := t.index.forward(scheme, host, path)
	return t.destination(d, upstream)
}

// Service is the destination of a service that the file lists, by its name.
func (s *Set) Service(name string) (Destination, bool) {
	return s.current.Load().destination(destination{service: name}, false)
}

func (t *table) destination(d destination, upstream bool) (Destination, bool) {
	g := t.listed[d.service]
	return Destination{g, t.full[d.service], t.number, d.label, upstream, d.rewrite}, g != nil
}

// FormatPolicy writes the effective policy of the guard of a service, p, and what the file has beside it, as
// Policy.Format does.
func (s *Set) FormatPolicy(service string, p *abate.Policy) []byte {
	all := *s.current.Load().policy(service)
	all.Policy = *p
	return all.Format(service)
}

// Redelivery returns how messages are delivered again that a handler fails for which the guard of this service stands:
// the Redelivery of a Consumer of adapter/abatekafka. The function that it returns sees reloads. Nobody may change what
// that returns.
func (s *Set) Redelivery(service string) func() *redelivery.Config {
	return func() *redelivery.Config { return &s.current.Load().policy(service).Kafka }
}

// policy returns the policy of a service, that of the unlisted ones if it is one; every default is written out.
func (t *table) policy(service string) *Policy {
	if p := t.full[service]; p != nil {
		return p
	}
	return t.full[sharedName]
}

// GatewayRetries is the file's gatewayRetries: whether a gateway in front of the services may retry too.
func (s *Set) GatewayRetries() bool { return s.current.Load().file.GatewayRetries }

// Status returns what is in force.
func (s *Set) Status() Status { return *s.status.Load() }

// Reload reads the file again and puts it in force: all of it, or, when it has a mistake, nothing. Calls that are
// running finish under the policy they began with; breakers, budgets, bulkheads, buckets and limits keep their state. A
// service that the file no longer lists goes on under the defaults. A gate that it no longer has keeps the protection
// it had last, and its state for when it comes back: no request is led to it any more.
func (s *Set) Reload() error {
	s.reload.Lock()
	defer s.reload.Unlock()
	data, err := readFile(s.path)
	next := Status{Path: s.path}
	if before := s.status.Load(); before != nil {
		next = *before
	}
	next.tried = contentOf(data, err)
	var file *File
	if err == nil {
		if file, err = Parse(s.path, data); err == nil {
			err = s.apply(file)
		}
	}
	if next.Err = err; err == nil {
		next.Loaded, next.Hash = time.Now(), next.tried
	}
	s.status.Store(&next)
	return err
}

// change is a guard and the policy it is about to get.
type change struct {
	guard  *abate.Guard
	policy abate.Policy
}

// apply makes what is missing and checks everything first; only when nothing can fail any more does it change a guard
// or a gate.
func (s *Set) apply(file *File) error {
	t := newTable(file)
	before := s.current.Load()
	if before != nil {
		t.number = before.number + 1
		if reflect.DeepEqual(before.outside, t.outside) {
			t.outside = before.outside
		}
	}
	var changes []change
	plan := func(name string, old *abate.Guard, p Policy) (*abate.Guard, error) {
		p = s.adjusted(name, p)
		full := p.WithDefaults()
		full.Fallback.Identity = file.identity(full.Fallback.Identity)
		t.full[name] = &full
		if old == nil {
			return abate.New(name, p.Policy)
		}
		if err := p.Validate(); err != nil {
			return nil, fmt.Errorf("policyfile: policy of %q: %w", name, err)
		}
		changes = append(changes, change{old, p.Policy})
		return old, nil
	}
	var problems []error
	for i := range file.Services {
		service := &file.Services[i]
		g, err := plan(service.Name, s.known(before, service.Name), service.Policy)
		problems = append(problems, err)
		t.listed[service.Name] = g
	}
	gates, wrong := s.planGates(t)
	problems = append(problems, wrong...)
	listed := len(changes)
	shared, err := plan(sharedName, s.shared, file.Defaults.forStrangers())
	problems = append(problems, err)
	gone := s.unlisted(before, t)
	for name, g := range gone {
		_, err := plan(name, g, file.Defaults.forStrangers())
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	// What the new file lists follows its policy before it can be found, and what it no longer lists goes on under the
	// defaults only when it cannot be found any more.
	put(changes[:listed])
	putGates(gates)
	s.swap(t, shared, gone)
	put(changes[listed:])
	return nil
}

func newTable(file *File) *table {
	n := len(file.Services)
	t := &table{file: file, listed: make(map[string]*abate.Guard, n), full: make(map[string]*Policy, n),
		index: newIndex(file.Services)}
	t.protected = make(map[string]*protected, len(file.Protect))
	t.entrances, t.listens = newEntrances(file.Protect)
	t.paths = pathRules(file)
	t.outside = &file.Outside
	return t
}

func (s *Set) swap(t *table, shared *abate.Guard, gone map[string]*abate.Guard) {
	for name, g := range gone {
		s.others.Store(name, g)
	}
	maps.Copy(s.gates, t.protected)
	s.shared = shared
	s.current.Store(t)
	s.unasked = len(gone)
}

// put has guards follow their new policies.
func put(changes []change) {
	for _, c := range changes {
		if !same(c.guard, &c.policy) {
			_ = c.guard.Update(c.policy) // checked by apply: it cannot fail
		}
	}
}

// known is the guard that a name has already, or nil.
func (s *Set) known(before *table, name string) *abate.Guard {
	if before != nil && before.listed[name] != nil {
		return before.listed[name]
	}
	if g, ok := s.others.Load(name); ok {
		return g.(*abate.Guard)
	}
	return nil
}

// unlisted are the guards there are whose names t does not list.
func (s *Set) unlisted(before, t *table) map[string]*abate.Guard {
	list := map[string]*abate.Guard{}
	s.others.Range(func(name, g any) bool {
		if t.listed[name.(string)] == nil {
			list[name.(string)] = g.(*abate.Guard)
		}
		return true
	})
	if before != nil {
		for name, g := range before.listed {
			if t.listed[name] == nil {
				list[name] = g
			}
		}
	}
	return list
}

func (s *Set) adjusted(name string, p Policy) Policy {
	p = p.own()
	for _, f := range s.hooks.Policy {
		f(name, &p.Policy)
	}
	if p.Places == nil {
		p.Places = s.Places()
	}
	return p
}

// Format writes the policy in force as a policy file, every default written out; see File.Format.
func (s *Set) Format() []byte { return s.current.Load().file.Format() }
