package cpu_test

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/cpu"
)

// machine is a file system in a folder of its own.
type machine struct {
	t    *testing.T
	root string
}

func newMachine(t *testing.T, files map[string]string) machine {
	m := machine{t, t.TempDir()}
	for name, text := range files {
		m.write(name, text)
	}
	return m
}

func (m machine) write(name, text string) {
	m.t.Helper()
	full := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

const (
	v2Mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	v1Mount = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	tenth   = 100 * time.Millisecond
)

// container is one with cgroup v2 and a limit of half a processor.
func container() map[string]string {
	return map[string]string{
		"proc/self/cgroup":       "0::/\n",
		"proc/self/mountinfo":    v2Mount,
		"sys/fs/cgroup/cpu.max":  "50000 100000\n",
		"sys/fs/cgroup/cpu.stat": "usage_usec 1000000\nuser_usec 1\n",
		"proc/stat":              "cpu  100 0 100 800 0 0 0 0 0 0\n",
	}
}

func TestOfTheContainersLimit(t *testing.T) {
	m := newMachine(t, container())
	share, now := cpu.At(m.root), time.Now()
	if got := share(now); got != 0 {
		t.Errorf("the first is %v", got)
	}
	m.write("sys/fs/cgroup/cpu.stat", "usage_usec 1025000\n") // 25 ms in 100 ms
	if got := share(now.Add(tenth)); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("%v of half a processor", got)
	}
	if got := share(now.Add(tenth + time.Millisecond)); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("right after it, %v", got)
	}
	m.write("sys/fs/cgroup/cpu.max", "25000 100000")
	m.write("sys/fs/cgroup/cpu.stat", "usage_usec 1050000\n")
	if got := share(now.Add(2 * tenth)); math.Abs(got-1) > 1e-9 {
		t.Errorf("%v of a quarter, after the limit has changed", got)
	}
	m.write("sys/fs/cgroup/cpu.stat", "usage_usec 9050000\n")
	if got := share(now.Add(3 * tenth)); got != 1 {
		t.Errorf("%v in a burst", got)
	}
	m.write("sys/fs/cgroup/cpu.stat", "usage_usec 1\n")
	if got := share(now.Add(4 * tenth)); got != 0 {
		t.Errorf("%v when the counter goes back", got)
	}
}

func TestOfTheTightestOfNestedLimits(t *testing.T) {
	m := newMachine(t, map[string]string{
		"proc/self/cgroup":                "0::/pods/a/b\n",
		"proc/self/mountinfo":             v2Mount,
		"sys/fs/cgroup/pods/cpu.max":      "max 100000\n",
		"sys/fs/cgroup/pods/cpu.stat":     "usage_usec 0\n",
		"sys/fs/cgroup/pods/a/cpu.max":    "20000 100000\n",
		"sys/fs/cgroup/pods/a/cpu.stat":   "usage_usec 0\n",
		"sys/fs/cgroup/pods/a/b/cpu.max":  "80000 100000\n",
		"sys/fs/cgroup/pods/a/b/cpu.stat": "usage_usec 0\n",
	})
	share, now := cpu.At(m.root), time.Now()
	share(now)
	m.write("sys/fs/cgroup/pods/a/cpu.stat", "usage_usec 10000\n")
	m.write("sys/fs/cgroup/pods/a/b/cpu.stat", "usage_usec 8000\n")
	if got := share(now.Add(tenth)); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("%v, want that of the group around", got)
	}
	m.write("sys/fs/cgroup/pods/a/b/cpu.stat", "usage_usec 72000\n")
	if got := share(now.Add(2 * tenth)); math.Abs(got-0.8) > 1e-9 {
		t.Errorf("%v, want that of the group inside", got)
	}
}

func TestOfTheLimitOfOldControlGroups(t *testing.T) {
	m := newMachine(t, map[string]string{
		"proc/self/cgroup":                                  "4:cpu,cpuacct:/pod\n0::/\n",
		"proc/self/mountinfo":                               v1Mount,
		"sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us":    "50000\n",
		"sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us":   "100000\n",
		"sys/fs/cgroup/cpu,cpuacct/pod/cpuacct.usage":       "1000000000\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":        "-1\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":       "100000\n",
		"sys/fs/cgroup/cpu,cpuacct/cpuacct.usage":           "1000000000\n",
		"sys/fs/cgroup/cpu,cpuacct/pod/other/cpuacct.usage": "1\n",
	})
	share, now := cpu.At(m.root), time.Now()
	share(now)
	m.write("sys/fs/cgroup/cpu,cpuacct/pod/cpuacct.usage", "1010000000\n")
	if got := share(now.Add(tenth)); math.Abs(got-0.2) > 1e-9 {
		t.Errorf("%v", got)
	}
}

func TestWithoutALimitItIsTheMachine(t *testing.T) {
	for name, change := range map[string]func(map[string]string){
		"no limit":           func(f map[string]string) { f["sys/fs/cgroup/cpu.max"] = "max 100000\n" },
		"no control groups":  func(f map[string]string) { delete(f, "proc/self/cgroup") },
		"no mounts":          func(f map[string]string) { delete(f, "proc/self/mountinfo") },
		"odd mounts":         func(f map[string]string) { f["proc/self/mountinfo"] = "30 - cgroup2\nx y z\n - \n" },
		"no limit to read":   func(f map[string]string) { delete(f, "sys/fs/cgroup/cpu.max") },
		"no usage to read":   func(f map[string]string) { delete(f, "sys/fs/cgroup/cpu.stat") },
		"a limit of nothing": func(f map[string]string) { f["sys/fs/cgroup/cpu.max"] = "0 0" },
		"a garbled limit":    func(f map[string]string) { f["sys/fs/cgroup/cpu.max"] = "\x00\xff" },
	} {
		t.Run(name, func(t *testing.T) {
			files := container()
			change(files)
			m := newMachine(t, files)
			share, now := cpu.At(m.root), time.Now()
			share(now)
			m.write("proc/stat", "cpu  110 0 110 820 10 0 0 0 0 0\ncpu0 1 1 1\n") // 20 busy, 30 idle
			if got := share(now.Add(tenth)); math.Abs(got-0.4) > 1e-9 {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestWhatCannotBeReadIsLookedForAgain(t *testing.T) {
	m := newMachine(t, container())
	share, now := cpu.At(m.root), time.Now()
	share(now)
	m.write("sys/fs/cgroup/cpu.stat", "nothing\n")
	if got := share(now.Add(tenth)); got != 0 {
		t.Errorf("%v", got)
	}
	m.write("sys/fs/cgroup/cpu.max", "max\n")
	share(now.Add(2 * tenth))
	m.write("proc/stat", "cpu  200 0 100 800\n")
	if got := share(now.Add(3 * tenth)); got != 1 {
		t.Errorf("%v of the machine", got)
	}
	if got := cpu.At(t.TempDir())(now); got != 0 {
		t.Errorf("%v of nothing", got)
	}
}

func TestManyMayAskAtOnce(t *testing.T) {
	m := newMachine(t, container())
	share, now := cpu.At(m.root), time.Now()
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 100 {
				if got := share(now.Add(time.Duration(n+i) * tenth)); got < 0 || got > 1 {
					t.Error(got)
				}
			}
		})
	}
	wg.Wait()
}

func TestThisMachineCanBeMeasured(t *testing.T) {
	before := runtime.NumGoroutine()
	if got := cpu.At("/")(time.Now()); got != 0 {
		t.Errorf("the first is %v", got)
	}
	got := cpu.Share() // the first only of this process: the test may run twice
	for end := time.Now().Add(time.Minute); got == 0 && time.Now().Before(end); {
		got = cpu.Share() // which is work
	}
	if got <= 0 || got > 1 {
		t.Errorf("%v after work", got)
	}
	if runtime.NumGoroutine() > before {
		t.Error("it has started a goroutine")
	}
}

func TestAReadingAllocatesNothing(t *testing.T) {
	for name, change := range map[string]string{"limit": "50000 100000", "machine": "max"} {
		files := container()
		files["sys/fs/cgroup/cpu.max"] = change
		m := newMachine(t, files)
		share, now := cpu.At(m.root), time.Now()
		share(now)
		if got := testing.AllocsPerRun(100, func() {
			now = now.Add(tenth)
			share(now)
		}); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func BenchmarkShare(b *testing.B) {
	share, now := cpu.At("/"), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(tenth)
		share(now)
	}
}
