package idempotency

import (
	"context"
	"errors"
	"time"
)

// State is what a Store says about a key.
type State uint8

const (
	// Run: nobody has done this, or whoever began is taken for crashed. The caller holds the key now: do the work, then
	// Complete or Fail.
	Run State = iota
	// Running: somebody is doing it.
	Running
	// Replay: it is done; Begun.Response is the answer.
	Replay
	// Mismatch: the key belongs to a request with another fingerprint.
	Mismatch
)

// String returns the state's name, for logs and tests.
func (s State) String() string {
	names := [...]string{Run: "run", Running: "running", Replay: "replay", Mismatch: "mismatch"}
	if int(s) >= len(names) {
		return "unknown state"
	}
	return names[s]
}

// Begun is the answer of Store.Begin.
type Begun struct {
	// State says what to do.
	State State
	// Token proves, with Run, that the key is held: whoever was taken over holds an older one and can change nothing any
	// more. It is greater than all earlier ones of the key.
	Token uint64
	// TakenOver reports, with Run, whether an earlier attempt began and never ended: its effect may have happened.
	TakenOver bool
	// Response is, with Replay, the answer. It is shared: do not change it.
	Response Response
	// Lease is, with Running, how long the one that is running is not taken for crashed.
	Lease time.Duration
}

// Try is one try of a request that has an idempotency key, for the handler that does it.
type Try struct {
	// Key is the key as the client sent it.
	Key string
	// Token is greater than those of all earlier tries with this key. What can compare numbers can refuse to be changed by
	// a try that was taken for crashed and goes on all the same.
	Token uint64
	// TakenOver reports whether an earlier try began and never ended: its effect may have happened.
	TakenOver bool
}

// Abandoned is how long an attempt that never ended is remembered after its lease: so long the next one sees it in
// TakenOver, and the attempt itself, should it wake up, may still Renew or Complete if nobody has taken over.
const Abandoned = 24 * time.Hour

// Store remembers what was done under which key. Keys are 1 to MaxKey bytes of anything; others get ErrKey. All methods
// are safe for concurrent use, and return soon: within their context, or a limit of their own. One whose context is
// over returns its error; so do not end an attempt with the context of its request, which is over when the client has
// gone. A lease or a retention of zero or less is over at once. The suite in storetest is what a Store has to pass.
type Store interface {
	// Begin asks for key. At most one caller gets Run until it has ended its try or its lease is over. ErrFull: there
	// is no place for a further key. After any other error the key may be held, until the lease is over.
	Begin(ctx context.Context, key string, fp Fingerprint, lease time.Duration) (Begun, error)
	// Renew keeps the key for another lease, from now. It does so after the end of the last one too, as long as nobody has
	// taken over. ErrLost: it is somebody else's by now, or its try has ended.
	Renew(ctx context.Context, key string, token uint64, lease time.Duration) error
	// Complete stores a copy of the answer for retention and lets the key go. A store that has no room for the answer
	// keeps it as Truncated. Whoever did not hear that it was stored may ask again: the token that completed the key
	// completes it again without an error, and changes nothing, except that an answer takes the place of a Truncated
	// one. ErrLost: somebody else has taken over, or the attempt has failed; nothing is stored. Nil promises that no later
	// Begin of the key, at whatever instance, gets Run before the retention is over.
	Complete(ctx context.Context, key string, token uint64, r Response, retention time.Duration) error
	// Fail lets the key go as if Begin had not been called: the work had no effect, and the next attempt may do it. If
	// the attempt had taken over from another one, so will the next. ErrLost as with Complete.
	Fail(ctx context.Context, key string, token uint64) error
}

// Restorer is a Store that may lose what it has confirmed, as one whose replicas lag behind their master when that
// dies. Then the holder, who still knows, records it again.
type Restorer interface {
	Store
	// Restore makes the key again that token was given for, held for another lease from now, if nothing is known of it. If
	// token holds it still, Restore does nothing. ErrLost: somebody else has, or had, the key meanwhile, or it is done.
	Restore(ctx context.Context, key string, fp Fingerprint, was Begun, lease time.Duration) error
}

var (
	// ErrLost: the key is not held any more by this token.
	ErrLost = errors.New("idempotency: the lease of the key has passed to another try")
	// ErrFull: the store has no place for a further key.
	ErrFull = errors.New("idempotency: the store is full")
)
