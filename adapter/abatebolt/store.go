package abatebolt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/abate-go/abate/policy/idempotency"
)

// Options are what a Store needs to know beside its path. The zero Options are good for most.
type Options struct {
	// MaxBytes bounds what keys and answers take up; the file grows to about twice that. 0 means 1 GiB.
	MaxBytes int64
	// Floor is how long a finished key is remembered at least, when a full store forgets the oldest ones early: see
	// idempotency.Config.Floor. 0 means that none is forgotten early.
	Floor time.Duration
	// Forgotten, if not nil, is called when keys were forgotten early. No lock is held during the call.
	Forgotten func(idempotency.Shortened)
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Store keeps idempotency keys in a file. It is safe for concurrent use. It has a goroutine, which Close ends.
type Store struct {
	db    *bolt.DB
	now   func() time.Time
	calls chan *call
	stop  chan struct{}
	ended chan struct{}
	once  sync.Once

	options    atomic.Pointer[Options]
	usage      atomic.Pointer[idempotency.Usage]
	unreported atomic.Bool // keys were forgotten early, and that has not been reported
}

var (
	_ idempotency.Store    = (*Store)(nil)
	_ idempotency.Measured = (*Store)(nil)
)

// ErrClosed is what the methods of a Store return after Close.
var ErrClosed = errors.New("abatebolt: the store is closed")

// call is something to do in a write.
type call struct {
	do   func(*tx) error
	err  error
	done chan struct{}
}

// most is how many calls share a write.
const most = 256

// Open opens the file, which is made if there is none, with what keys it has. Another process that has it open is an
// error, after a second.
func Open(path string, o Options) (*Store, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("abatebolt: %s is in use by another process; each needs a file of its own", path)
	case err != nil:
		return nil, fmt.Errorf("abatebolt: cannot open %s: %w", path, err)
	}
	s := &Store{db: db, now: o.Now, calls: make(chan *call, most), stop: make(chan struct{}), ended: make(chan struct{})}
	if s.now == nil {
		s.now = time.Now
	}
	s.Reconfigure(o)
	if err := s.write(nil); err != nil { // makes the buckets
		return nil, errors.Join(fmt.Errorf("abatebolt: cannot use %s: %w", path, err), db.Close())
	}
	go s.run()
	return s, nil
}

// Reconfigure changes the options, but for Now. No key is forgotten for a smaller MaxBytes.
func (s *Store) Reconfigure(o Options) {
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Floor <= 0 {
		o.Floor = math.MaxInt64
	}
	s.options.Store(&o)
}

// Close closes the file. What is under way is finished; calls that come later get ErrClosed.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.stop) })
	<-s.ended
	return s.db.Close()
}

// Usage implements idempotency.Measured.
func (s *Store) Usage() idempotency.Usage {
	u := *s.usage.Load()
	u.MaxBytes = s.options.Load().MaxBytes
	u.MaxKeys = u.MaxBytes / (keyCost + 3*64)
	if u.Oldest > 0 { // when that was, until here
		u.Oldest = max(time.Duration(s.now().UnixNano())-u.Oldest, 0)
	}
	return u
}

// run carries out calls, those that have come together in one write.
func (s *Store) run() {
	defer close(s.ended)
	for {
		var calls []*call
		select {
		case c := <-s.calls:
			calls = append(calls, c)
		case <-s.stop:
			return
		}
		for more := true; more && len(calls) < most; {
			select {
			case c := <-s.calls:
				calls = append(calls, c)
			default:
				more = false
			}
		}
		err := s.write(calls)
		for _, c := range calls {
			if err != nil {
				c.err = fmt.Errorf("abatebolt: %w", err)
			}
			close(c.done)
		}
	}
}

// write is one write to the disk. Its error is that of all calls: none of them has happened.
func (s *Store) write(calls []*call) error {
	o := s.options.Load()
	t := &tx{max: o.MaxBytes, floor: int64(o.Floor)}
	var oldest int64
	err := s.db.Update(func(b *bolt.Tx) error {
		if err := t.open(b); err != nil {
			return err
		}
		for _, c := range calls {
			t.now = s.now().UnixNano()
			if err := t.expire(); err != nil {
				return err
			}
			if c.err = c.do(t); c.err != nil && !errors.Is(c.err, idempotency.ErrFull) &&
				!errors.Is(c.err, idempotency.ErrLost) {
				return c.err
			}
		}
		if _, place, _ := cursor(t.done); place != nil {
			oldest = timeOf(place)
		}
		return t.meta.Put(countName, t.count.encode())
	})
	if err != nil {
		return err
	}
	u := idempotency.Usage{Keys: t.count.keys, Bytes: t.count.bytes, Oldest: time.Duration(oldest)}
	if before := s.usage.Load(); before != nil {
		u.Shortened = before.Shortened
	}
	if t.early > 0 {
		u.Shortened.Keys += t.early
		u.Shortened.Held = t.age
	}
	s.usage.Store(&u)
	if t.early > 0 {
		s.unreported.Store(true)
	}
	return nil
}

// submit has do run in the next write, and waits for that. After an error of ctx it may have happened, or happen still.
func (s *Store) submit(ctx context.Context, key string, do func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := idempotency.CheckKey(key); err != nil {
		return err
	}
	c := &call{do: do, done: make(chan struct{})}
	select {
	case s.calls <- c:
	case <-s.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-c.done:
		s.report()
		return c.err
	case <-s.ended:
		select {
		case <-c.done:
			return c.err
		default:
			return ErrClosed
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// report reports what was forgotten early, on the goroutine of one of the callers.
func (s *Store) report() {
	if s.unreported.Load() && s.unreported.CompareAndSwap(true, false) {
		if forgotten := s.options.Load().Forgotten; forgotten != nil {
			forgotten(s.usage.Load().Shortened)
		}
	}
}

// Begin implements idempotency.Store. What a read can answer costs no write.
func (s *Store) Begin(ctx context.Context, key string, fp idempotency.Fingerprint, lease time.Duration) (
	begun idempotency.Begun, err error) {
	if err := ctx.Err(); err != nil {
		return begun, err
	}
	if err := idempotency.CheckKey(key); err != nil {
		return begun, err
	}
	decided := false
	err = s.db.View(func(b *bolt.Tx) error {
		now := s.now().UnixNano()
		r, err := find(b.Bucket(keysName), key, now)
		if r != nil {
			begun, decided, err = decide(b.Bucket(answersName), r, fp, now)
		}
		return err
	})
	switch {
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return idempotency.Begun{}, ErrClosed
	case decided || err != nil:
		return begun, err
	}
	made := new(idempotency.Begun) // and not begun: a write that comes after the end of ctx must not race with the caller
	err = s.submit(ctx, key, func(t *tx) (err error) {
		*made, err = t.begin(key, fp, lease)
		return err
	})
	if err != nil {
		return idempotency.Begun{}, err
	}
	return *made, nil
}

// Renew implements idempotency.Store.
func (s *Store) Renew(ctx context.Context, key string, token uint64, lease time.Duration) error {
	return s.submit(ctx, key, func(t *tx) error {
		return t.held(key, token, func(r *record) error {
			t.hold(r, after(t.now, lease))
			return nil
		})
	})
}

// Complete implements idempotency.Store.
func (s *Store) Complete(ctx context.Context, key string, token uint64, r idempotency.Response,
	retention time.Duration) error {
	var answer []byte
	if !r.Truncated {
		answer = r.AppendTo(nil)
	}
	return s.submit(ctx, key, func(t *tx) error {
		return t.complete(key, token, r.Status, answer, retention)
	})
}

// Fail implements idempotency.Store.
func (s *Store) Fail(ctx context.Context, key string, token uint64) error {
	return s.submit(ctx, key, func(t *tx) error {
		forget := false
		err := t.held(key, token, func(r *record) error {
			if forget = !r.takenOver; !forget {
				r.token = 0 // nobody's
				t.hold(r, t.now)
			}
			return nil
		})
		if err == nil && forget {
			err = t.forget(key)
		}
		return err
	})
}
