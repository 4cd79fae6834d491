package kafka

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs"
)

// limit is how long a broker may take to answer or to stop. Machines that test are busy.
const limit = 2 * time.Minute

// Broker is a Kafka of one node. Its methods are safe for concurrent use.
type Broker struct {
	in      installation
	cluster string
	more    []string

	mu      sync.Mutex
	ports   ports
	process *needs.Process
	before  bool // it has taken part before
}

// Start starts a broker for one test, which takes some seconds: prefer Shared. more are lines of its configuration,
// such as "message.max.bytes=2000000", in which {clients} and {controller} stand for its ports. Without Java or Maven
// the test is skipped, or fails where CI is true.
func Start(t testing.TB, more ...string) *Broker {
	t.Helper()
	b := begin(t, installed(t), more)
	t.Cleanup(b.remove)
	return b
}

var shared struct {
	sync.Mutex
	*Broker
}

// Shared returns the one broker of this process, which lives as long. Tests use topics and groups with names of their
// own, and never stop it.
func Shared(t testing.TB) *Broker {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.Broker == nil {
		shared.Broker = begin(t, installed(t), nil)
	}
	return shared.Broker
}

func begin(t testing.TB, in installation, more []string) *Broker {
	t.Helper()
	needs.Program(t, "sh")
	process, err := needs.NewProcess("kafka", "KILL")
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{in: in, process: process, cluster: id(), more: more}
	if err := in.prepare(b.data(), b.cluster); err != nil {
		b.remove()
		t.Fatal(err)
	}
	for range 5 {
		if err = b.ports.find(); err == nil {
			err = b.Restart()
		}
		if !errors.Is(err, needs.ErrEnded) {
			break
		}
	}
	if err != nil {
		log := b.Log()
		b.remove()
		t.Fatalf("%v; its log:\n%s", err, log)
	}
	return b
}

// Addr is where clients connect: 127.0.0.1 and a port that stays the same.
func (b *Broker) Addr() string { return fmt.Sprintf("127.0.0.1:%d", b.ports.clients) }

// Restart starts a broker that does not run, on the same port and data, and returns when it answers. It stops one that
// runs.
func (b *Broker) Restart() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(syscall.SIGTERM)
	err := b.launch()
	for i := 0; i < 5 && b.before && errors.Is(err, needs.ErrEnded); i++ { // somebody else may have the port for a moment
		err = b.launch()
	}
	if err != nil {
		return fmt.Errorf("broker %s: %w", b.Addr(), err)
	}
	return nil
}

// Kill ends it as a crash would, and returns when it has ended.
func (b *Broker) Kill() { b.stop(syscall.SIGKILL) }

// Stop shuts it down in order, and returns when it has ended.
func (b *Broker) Stop() { b.stop(syscall.SIGTERM) }

func (b *Broker) stop(how syscall.Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(how)
}

// Log returns the end of its log.
func (b *Broker) Log() string { return b.process.Log() }

func (b *Broker) data() string { return b.process.File("data") }

// launch starts the process and waits until it answers.
func (b *Broker) launch() error {
	file := b.process.File("server.properties")
	more := b.more
	if b.before {
		more = slices.Concat(again, more)
	}
	if err := os.WriteFile(file, properties(b.ports, b.data(), more), 0o600); err != nil {
		return err
	}
	cmd := b.in.command("kafka.Kafka", file)
	cmd.Dir = b.process.Folder
	if err := b.process.Start(cmd); err != nil {
		return err
	}
	return b.answers()
}

// answers waits until the broker takes part in its cluster. An answer of somebody else on the port does not count.
func (b *Broker) answers() error {
	var last error
	err := b.process.Await(func() bool {
		cluster, brokers, err := ask(b.Addr())
		last = fmt.Errorf("cluster %q with %d brokers, want %q with one (%w)", cluster, brokers, b.cluster, err)
		return err == nil && cluster == b.cluster && brokers > 0
	}, limit)
	switch {
	case err == nil:
		b.before = true
	case !errors.Is(err, needs.ErrEnded):
		b.end(syscall.SIGKILL)
		err = fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// end ends the process, if there is one; one that does not stop in time is killed.
func (b *Broker) end(how syscall.Signal) { b.process.End(how, limit/4) }

// remove ends the broker for ever, and its folder.
func (b *Broker) remove() {
	b.Kill()
	b.process.Release()
}
