package policyfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policyfile"
)

func TestWatchFollowsRenamesAndWritesInPlace(t *testing.T) {
	path := write(t, "services: {a: {maxRetries: 1}}\n")
	set := load(t, path)
	watch(t, set)
	replace(t, path, "services: {a: {maxRetries: 2}}\n")
	eventually(t, "a renamed file", func() bool { return set.Guard("a").Describe().MaxRetries == 2 })
	if err := os.WriteFile(path, []byte("services: {a: {maxRetries: 3}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a file written in place, of the same size", func() bool {
		return set.Guard("a").Describe().MaxRetries == 3
	})
}

// A clock too coarse or wrong must not hide a change: a time stamp is trusted only when it is some seconds old.
func TestWatchSeesAChangeThatKeepsSizeAndTime(t *testing.T) {
	path := write(t, "services: {a: {maxRetries: 1}}\n")
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	set := load(t, path)
	looks := watch(t, set)
	looks()
	if err := errors.Join(os.WriteFile(path, []byte("services: {a: {maxRetries: 3}}\n"), 0o600),
		os.Chtimes(path, later, later)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change", func() bool { return set.Guard("a").Describe().MaxRetries == 3 })
}

func TestWatchFollowsAMountedConfigMap(t *testing.T) {
	mount := newMount(t, "services: {a: {maxRetries: 1}}\n")
	set := load(t, mount.path)
	watch(t, set)
	for i := 2; i < 6; i++ {
		mount.swap(fmt.Sprintf("services: {a: {maxRetries: %d}}\n", i))
		eventually(t, "the swap of ..data", func() bool { return set.Guard("a").Describe().MaxRetries == i })
	}
}

func TestWatchComplainsOncePerChangeAndGoesOn(t *testing.T) {
	logged := captureLog(t)
	path := write(t, "services: {a: {maxRetries: 1}}\n")
	set := load(t, path)
	looks := watch(t, set)
	replace(t, path, "services: {a: {maxRetries: 1000}}\n")
	eventually(t, "the first complaint", func() bool { return logged.count("level=ERROR") == 1 })
	looks()
	if n := logged.count("level=ERROR"); n != 1 {
		t.Errorf("%d complaints about one bad file", n)
	}
	if !strings.Contains(logged.String(), "policy.yaml:1:28: ") {
		t.Errorf("the complaint has no position: %s", logged)
	}
	if set.Guard("a").Describe().MaxRetries != 1 || set.Status().Err == nil {
		t.Error("the last good policy is not in force, or Status hides the mistake")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a complaint about the missing file", func() bool { return logged.count("level=ERROR") == 2 })
	looks()
	if n := logged.count("level=ERROR"); n != 2 {
		t.Errorf("%d complaints about a bad and a missing file", n)
	}
	replace(t, path, "services: {a: {maxRetries: 4}}\n")
	eventually(t, "the next good file", func() bool {
		return set.Guard("a").Describe().MaxRetries == 4 && set.Status().Err == nil
	})
}

func TestWatchForgivesABadFileThatIsTakenBack(t *testing.T) {
	path := write(t, "services: {a: {maxRetries: 1}}\n")
	set := load(t, path)
	watch(t, set)
	replace(t, path, "services: nonsense\n")
	eventually(t, "the mistake", func() bool { return set.Status().Err != nil })
	replace(t, path, "services: {a: {maxRetries: 1}}\n")
	eventually(t, "the old file to be good again", func() bool { return set.Status().Err == nil })
}

func TestWatchEndsWithItsContext(t *testing.T) {
	set := load(t, write(t, "services: {}\n"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := set.Watch(ctx); err != context.Canceled {
		t.Errorf("Watch returned %v", err)
	}
}

// Two files that alternate under load. Every limit differs, and in the second one busy is not even listed.
const (
	flip = `
defaults: {timeout: 10s}
services:
  busy: {timeout: 20s, maxRetries: 1, bulkhead: {maxConcurrentCalls: 100}, circuitBreaker: {slidingWindow: 100}}
  broken: {maxRetries: 0, circuitBreaker: {failureThreshold: 1, waitDurationInOpenState: 1h,
    maxWaitDurationInOpenState: 24h}}
  drained: {maxRetries: 1, initialDelay: 1ms, circuitBreaker: {disabled: true},
    retryBudget: {ratio: 0.0001, reserve: 3, window: 1h}}
`
	flop = `
defaults: {timeout: 30s, hedge: {delay: 1h}}
services:
  broken: {maxRetries: 2, circuitBreaker: {failureThreshold: 5, waitDurationInOpenState: 50m,
    maxWaitDurationInOpenState: 20h, slidingWindow: 1m}}
  drained: {maxRetries: 3, initialDelay: 2ms, circuitBreaker: {disabled: true},
    retryBudget: {ratio: 0.0002, reserve: 4, window: 30m}}
`
)

func TestReloadsUnderLoadHurtNoCallAndKeepTheState(t *testing.T) {
	mount := newMount(t, flip)
	set := load(t, mount.path)
	breakAndDrain(t, set)
	stop := make(chan struct{})
	var calls, reloads atomic.Int64
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for g := set.Guard("busy"); ; calls.Add(1) {
				select {
				case <-stop:
					return
				default:
				}
				if err := call(g, nil); err != nil {
					t.Errorf("a call failed because of a reload: %v", err)
					return
				}
				if set.Guard("busy") != g {
					t.Error("a reload replaced the guard")
					return
				}
			}
		})
	}
	watch(t, set) // at the same time as the reloads by hand
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	for i := range rounds {
		text := []string{flop, flip}[i%2]
		mount.swap(text)
		if i%10 < 5 {
			if err := set.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the policy to flip", func() bool {
			return set.Guard("broken").Describe().MaxRetries == []int{2, 0}[i%2]
		})
		reloads.Add(1)
		if s := set.Guard("broken").State(); s.Breaker.State != breaker.Open {
			t.Fatalf("reload %d: the open breaker is %v", i, s.Breaker.State)
		}
		if s := set.Guard("drained").State(); s.Budget >= 1 {
			t.Fatalf("reload %d: the budget was refilled to %v", i, s.Budget)
		}
	}
	close(stop)
	load.Wait()
	t.Logf("%d calls during %d reloads", calls.Load(), reloads.Load())
	if calls.Load() < reloads.Load() {
		t.Error("there was no load")
	}
	if err := call(set.Guard("broken"), nil); !errors.Is(err, abate.ErrCircuitOpen) {
		t.Errorf("the open breaker let a call through: %v", err)
	}
	if err := call(set.Guard("drained"), errors.New("down")); !errors.Is(err, abate.ErrBudgetExhausted) {
		t.Errorf("the drained budget paid: %v", err)
	}
}

// breakAndDrain opens one breaker and empties one budget.
func breakAndDrain(t *testing.T, set *policyfile.Set) {
	t.Helper()
	down := errors.New("down")
	_ = call(set.Guard("broken"), down)
	if s := set.Guard("broken").State(); s.Breaker.State != breaker.Open {
		t.Fatalf("the breaker did not open: %v", s.Breaker.State)
	}
	for range 10 {
		if errors.Is(call(set.Guard("drained"), down), abate.ErrBudgetExhausted) {
			return
		}
	}
	t.Fatal("the budget did not end")
}

// mount is a volume as kubelet makes it: policy.yaml -> ..data/policy.yaml, ..data -> ..2026_1, and a change writes
// ..2026_2 and renames a new link over ..data.
type mount struct {
	t       *testing.T
	dir     string
	path    string
	version int
}

func newMount(t *testing.T, text string) *mount {
	m := &mount{t: t, dir: t.TempDir()}
	m.path = filepath.Join(m.dir, "policy.yaml")
	m.swap(text)
	m.must(os.Symlink(filepath.Join("..data", "policy.yaml"), m.path))
	return m
}

func (m *mount) swap(text string) {
	m.t.Helper()
	old, _ := os.Readlink(filepath.Join(m.dir, "..data"))
	m.version++
	version := fmt.Sprintf("..2026_%d", m.version)
	m.must(os.Mkdir(filepath.Join(m.dir, version), 0o700))
	m.must(os.WriteFile(filepath.Join(m.dir, version, "policy.yaml"), []byte(text), 0o600))
	m.must(os.Symlink(version, filepath.Join(m.dir, "..data_tmp")))
	m.must(os.Rename(filepath.Join(m.dir, "..data_tmp"), filepath.Join(m.dir, "..data")))
	if old != "" {
		m.must(os.RemoveAll(filepath.Join(m.dir, old)))
	}
}

func (m *mount) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// watch runs Watch until the test ends. The function it returns waits for some looks at the file.
func watch(t *testing.T, set *policyfile.Set) (looks func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	set.Interval = time.Millisecond
	go func() {
		defer close(done)
		if err := set.Watch(ctx); err != context.Canceled {
			t.Errorf("Watch ended with %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range 30 {
			<-tick.C
		}
	}
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func captureLog(t *testing.T) *logBuffer {
	l := &logBuffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) count(s string) int { return strings.Count(l.String(), s) }
