package abatebolt

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
)

// Files are the files that the entries of a policy file name in idempotency.file. The zero Files is ready for use, and
// its methods are safe for concurrent use:
//
//	var files abatebolt.Files
//	defer files.Close()
//	hooks := policyfile.Hooks{Protection: []func(string, *inbound.Protection){files.AdjustProtection}}
//	set, err := policyfile.LoadWith(path, hooks)
//	err = errors.Join(err, files.Err())
type Files struct {
	mu     sync.Mutex
	open   map[string]*file // by path
	closed bool
}

// file is one of them, and what those who share it want. It is the Store that they get.
type file struct {
	path  string
	users map[string]user       // by gate; guarded by Files.mu
	store atomic.Pointer[Store] // nil while it cannot be opened
	err   atomic.Pointer[error] // why
}

var (
	_ idempotency.Store    = (*file)(nil)
	_ idempotency.Measured = (*file)(nil)
)

// user is what one gate wants of a file.
type user struct {
	max      int64
	floor    time.Duration
	observer inbound.GateObserver
}

// AdjustProtection makes the protection of a gate keep its keys in the file that it names, if it does; it fits the
// Protection of policyfile.Hooks, behind those that set an Observer. A file that cannot be opened makes the keys
// unreachable, see idempotency.Config.WhenAway; Err has the reason. A file stays open until Close, also when no entry
// names it any more. After Close none is opened: nobody would close it, and its lock would keep the next process out.
// Gates that share a file have the room of the one that wants most, and none forgets earlier than the strictest allows.
func (f *Files) AdjustProtection(name string, p *inbound.Protection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, other := range f.open {
		delete(other.users, name)
	}
	c := p.Idempotency.WithDefaults()
	if !c.Enabled() || c.File == "" || p.Store != nil {
		return
	}
	path := filepath.Clean(c.File)
	one := f.open[path]
	if one == nil {
		one = &file{path: path, users: map[string]user{}}
		if f.open == nil {
			f.open = map[string]*file{}
		}
		f.open[path] = one
	}
	one.users[name] = user{c.MaxFile, c.Floor(), p.Observer}
	f.have(one)
	p.Store = one
}

// have opens a file, unless it is too late. mu is held.
func (f *Files) have(one *file) {
	if f.closed {
		err := ErrClosed
		one.err.Store(&err)
		return
	}
	one.open()
}

// open opens the file if it is not open, and gives it the settings of its users.
func (f *file) open() {
	o := f.options()
	if s := f.store.Load(); s != nil {
		s.Reconfigure(o)
		return
	}
	s, err := Open(f.path, o)
	f.err.Store(&err)
	if err == nil {
		f.store.Store(s)
	}
}

// options joins what the users of a file want.
func (f *file) options() Options {
	var o Options
	observers := map[string]inbound.GateObserver{}
	for name, u := range f.users {
		o.MaxBytes, o.Floor = max(o.MaxBytes, u.max), max(o.Floor, u.floor)
		if u.observer != nil {
			observers[name] = u.observer
		}
	}
	o.Forgotten = func(s idempotency.Shortened) {
		for _, name := range slices.Sorted(maps.Keys(observers)) {
			observers[name].ObserveGate(inbound.GateEvent{
				Kind: inbound.KeysForgotten, Gate: name, At: core.Now(), Delay: s.Held,
			})
		}
	}
	return o
}

// Err returns why files that are in use cannot be opened, joined; nil if all are open. It tries again those that were
// not.
func (f *Files) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []error
	for _, path := range slices.Sorted(maps.Keys(f.open)) {
		if one := f.open[path]; len(one.users) > 0 && one.store.Load() == nil {
			f.have(one)
			all = append(all, *one.err.Load())
		}
	}
	return errors.Join(all...)
}

// Close closes all files, for good: from then on they are away, with ErrClosed.
func (f *Files) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []error
	for _, one := range f.open {
		if s := one.store.Load(); s != nil {
			all = append(all, s.Close())
		}
	}
	f.open, f.closed = nil, true
	return errors.Join(all...)
}

// opened is the store of the file. While there is none, keys cannot be looked up: a request must not be done without
// that.
func (f *file) opened() (*Store, error) {
	if s := f.store.Load(); s != nil {
		return s, nil
	}
	return nil, *f.err.Load()
}

// Begin implements idempotency.Store.
func (f *file) Begin(ctx context.Context, key string, fp idempotency.Fingerprint, lease time.Duration) (
	idempotency.Begun, error) {
	s, err := f.opened()
	if err != nil {
		return idempotency.Begun{}, err
	}
	return s.Begin(ctx, key, fp, lease)
}

// Renew implements idempotency.Store.
func (f *file) Renew(ctx context.Context, key string, token uint64, lease time.Duration) error {
	s, err := f.opened()
	if err != nil {
		return err
	}
	return s.Renew(ctx, key, token, lease)
}

// Complete implements idempotency.Store.
func (f *file) Complete(ctx context.Context, key string, token uint64, r idempotency.Response,
	retention time.Duration) error {
	s, err := f.opened()
	if err != nil {
		return err
	}
	return s.Complete(ctx, key, token, r, retention)
}

// Fail implements idempotency.Store.
func (f *file) Fail(ctx context.Context, key string, token uint64) error {
	s, err := f.opened()
	if err != nil {
		return err
	}
	return s.Fail(ctx, key, token)
}

// Usage implements idempotency.Measured.
func (f *file) Usage() idempotency.Usage {
	if s := f.store.Load(); s != nil {
		return s.Usage()
	}
	return idempotency.Usage{}
}
