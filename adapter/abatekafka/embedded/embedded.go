// Package embedded is a Kafka broker inside the program, for trying things and for tests. It is a fake: its author made
// it for tests, it has no replication, and nothing of it belongs into production.
//
// It speaks the protocol that clients speak: topics, consumer groups, transactions, compaction and retention. Its
// limits: one broker, loopback only, no encryption and no authentication, no quotas, topics are created by a request
// and never by themselves, and a folder is read by one program at a time and by no other version than the one that
// wrote it or the next.
package embedded

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Notice is what a program that uses it says to people.
const Notice = "This is a fake broker inside this program (kfake), for trying things: no replication, nothing for " +
	"production."

// Broker is one that runs. It is safe for concurrent use.
type Broker struct {
	cluster *kfake.Cluster
	lock    *os.File // of the folder; nil without one
}

// Config describes a broker. The zero Config keeps everything in memory and listens on a free port of loopback.
type Config struct {
	// Dir keeps the data; empty: memory. It is made if it is missing. What was acknowledged is on the disk, so each
	// batch costs a write that waits for it. A second broker on the same folder is refused.
	Dir string
	// Port to listen on, on loopback; 0: a free one.
	Port int
}

// minSession is the shortest session timeout that a consumer may ask for: short, so that a member that was killed is
// soon missed.
const minSession = time.Second

// Start starts one, in milliseconds. It fails if the port is taken, or if the folder cannot be used or read.
func Start(c Config) (*Broker, error) {
	opts := []kfake.Opt{
		kfake.NumBrokers(1), kfake.Ports(c.Port), kfake.GroupMinSessionTimeout(minSession), kfake.DefaultNumPartitions(1),
	}
	b := &Broker{}
	if c.Dir != "" {
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("embedded broker: folder %s: %w; name one that can be written", c.Dir, err)
		}
		lock, err := lockFolder(c.Dir)
		if err != nil {
			return nil, fmt.Errorf("embedded broker: folder %s is in use by another broker (%w); stop that one, or name "+
				"another folder", c.Dir, err)
		}
		b.lock = lock
		opts = append(opts, kfake.DataDir(c.Dir), kfake.SyncWrites())
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		b.unlock()
		return nil, startError(c, err)
	}
	b.cluster = cluster
	return b, nil
}

// startError says what to do about an error of the start.
func startError(c Config, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("embedded broker: port %d of 127.0.0.1 is taken (%w); stop what listens there, or use port 0 for "+
			"a free one", c.Port, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("embedded broker: port %d of 127.0.0.1 or folder %q is not allowed to this user (%w)", c.Port,
			c.Dir, err)
	case c.Dir != "":
		return fmt.Errorf("embedded broker: folder %s: %w; it holds nothing but tries: move it away to begin anew",
			c.Dir, err)
	}
	return fmt.Errorf("embedded broker: %w", err)
}

// Addresses are where it listens, as host:port.
func (b *Broker) Addresses() []string { return b.cluster.ListenAddrs() }

// Cluster is the fake itself, for tests that have requests fail.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Close stops it. With a folder, everything is in it afterwards; without one, everything is gone.
func (b *Broker) Close() {
	b.cluster.Close()
	b.unlock()
}

func (b *Broker) unlock() {
	if b.lock != nil {
		unlockFolder(b.lock)
	}
}
