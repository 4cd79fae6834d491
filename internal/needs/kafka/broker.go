package kafka

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs"
)

// limit is how long a broker may take to answer or to stop. Machines that test are busy.
const limit = 2 * time.Minute

// errEnded is that a broker's process ended before it answered: a port was taken, for example.
var errEnded = errors.New("it ended before it answered")

// Broker is a Kafka of one node. Its methods are safe for concurrent use.
type Broker struct {
	in      installation
	folder  string // data, configuration and log
	cluster string
	more    []string
	guard   *needs.Guard

	mu     sync.Mutex
	ports  ports
	run    *running // nil if it does not run
	before bool     // it has taken part before
}

// running is one process of a broker.
type running struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed at its end
}

// Start starts a broker for one test, which takes some seconds: prefer Shared. more are lines of its configuration, such as
// "message.max.bytes=2000000", in which {clients} and {controller} stand for its ports. Without Java or Maven the test is skipped, or fails where CI is true.
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

// Shared returns the one broker of this process, which lives as long. Tests use topics and groups with names of their own, and never
// stop it.
func Shared(t testing.TB) *Broker {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.Broker == nil {
		shared.Broker = begin(t, installed(t), nil)
	}
	return shared.Broker
}

// begin makes and starts a broker.
func begin(t testing.TB, in installation, more []string) *Broker {
	t.Helper()
	needs.Program(t, "sh")
	folder, err := os.MkdirTemp("", "abate-kafka-")
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{in: in, folder: folder, cluster: id(), more: more}
	if b.guard, err = needs.Watch(folder, "KILL"); err != nil {
		t.Fatal(err)
	}
	if err := in.prepare(b.data(), b.cluster); err != nil {
		b.remove()
		t.Fatal(err)
	}
	for range 5 {
		if err = b.ports.find(); err == nil {
			err = b.Restart()
		}
		if !errors.Is(err, errEnded) {
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

// Restart starts a broker that does not run, on the same port and data, and returns when it answers. It stops one that runs.
func (b *Broker) Restart() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(syscall.SIGTERM)
	err := b.launch()
	for i := 0; i < 5 && b.before && errors.Is(err, errEnded); i++ { // somebody else may have the port for a moment
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
func (b *Broker) Log() string {
	const most = 64 << 10
	f, err := os.Open(b.logFile())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-most), io.SeekStart)
	}
	text, _ := io.ReadAll(f)
	return string(text)
}

func (b *Broker) data() string    { return filepath.Join(b.folder, "data") }
func (b *Broker) logFile() string { return filepath.Join(b.folder, "log") }

// launch starts the process and waits until it answers.
func (b *Broker) launch() error {
	file := filepath.Join(b.folder, "server.properties")
	more := b.more
	if b.before {
		more = slices.Concat(again, more)
	}
	if err := os.WriteFile(file, properties(b.ports, b.data(), more), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(b.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := b.in.command("kafka.Kafka", file)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.folder, log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	b.guard.Of(cmd.Process.Pid)
	run := &running{cmd: cmd, ended: make(chan struct{})}
	b.run = run
	go func() {
		_ = cmd.Wait()
		b.guard.Of(0)
		close(run.ended)
	}()
	return b.answers()
}

// answers waits until the broker takes part in its cluster. An answer of somebody else on the port does not count.
func (b *Broker) answers() error {
	over := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		cluster, brokers, err := ask(b.Addr())
		if err == nil && cluster == b.cluster && brokers > 0 {
			b.before = true
			return nil
		}
		last = fmt.Errorf("cluster %q with %d brokers, want %q with one (%w)", cluster, brokers, b.cluster, err)
		select {
		case <-b.run.ended:
			b.run = nil
			return errEnded
		case <-over:
			b.end(syscall.SIGKILL)
			return fmt.Errorf("no answer within %v: %w", limit, last)
		case <-tick.C:
		}
	}
}

// end ends the process, if there is one; one that does not stop in time is killed.
func (b *Broker) end(how syscall.Signal) {
	if b.run == nil {
		return
	}
	_ = b.run.cmd.Process.Signal(how)
	select {
	case <-b.run.ended:
	case <-time.After(limit / 4):
		_ = b.run.cmd.Process.Kill()
		<-b.run.ended
	}
	b.run = nil
}

// remove ends the broker for ever, and its folder.
func (b *Broker) remove() {
	b.Kill()
	b.guard.Release()
}
