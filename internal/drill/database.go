package drill

import (
	"errors"
	"sync/atomic"
	"time"
)

// errNoAnswer is what the service gets from a database that hangs.
var errNoAnswer = errors.New("the database does not answer")

// Database stands for what the payment service depends on. Break makes it hang: whoever asks from then on waits in vain
// for as long as he is willing to. Mend makes it answer again. It is safe for concurrent use.
type Database struct {
	serviceTime time.Duration
	down        atomic.Bool
}

// Break begins an outage.
func (d *Database) Break() { d.down.Store(true) }

// Mend ends it.
func (d *Database) Mend() { d.down.Store(false) }

// Query takes the database's service time, or limit when the database hangs. It ends early when stop is closed.
func (d *Database) Query(limit time.Duration, stop <-chan struct{}) error {
	if d.down.Load() {
		sleep(limit, stop)
		return errNoAnswer
	}
	sleep(d.serviceTime, stop)
	return nil
}

// sleep waits for d; false when stop was closed first.
func sleep(d time.Duration, stop <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}
