package cpu_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/cpu"
)

func TestLimitsAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"max 100000\n": "+Inf true", "50000 100000\n": "0.5 true", "200000 100000": "2 true", "max": "+Inf true",
		"": "0 false", "50000": "0 false", "-1 100000": "0 false", "0 100000": "0 false", "1 0": "0 false",
		"99999999999999999999 1": "0 false", "a b": "0 false",
	} {
		n, ok := cpu.ParseMax([]byte(text))
		if got := fmt.Sprint(n, ok); got != want {
			t.Errorf("cpu.max %q: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"-1\n": "+Inf true", "50000\n": "0.5 true", "": "0 false", "x": "0 false", "-2": "0 false",
	} {
		n, ok := cpu.ParseQuota([]byte(text), []byte("100000\n"))
		if got := fmt.Sprint(n, ok); got != want {
			t.Errorf("quota %q: %s, want %s", text, got, want)
		}
	}
}

func TestUsageIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"usage_usec 1500\nuser_usec 1\n": "1.5ms true", "nr_periods 1\nusage_usec 2000\n": "2ms true",
		"user_usec 1\n": "0s false", "": "0s false", "usage_usec\n": "0s false", "usage_usec -1\n": "0s false",
		"usage_usec 999999999999999999\n": "0s false",
	} {
		d, ok := cpu.ParseUsage([]byte(text))
		if got := fmt.Sprint(d, ok); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if d, ok := cpu.ParseNanoseconds([]byte("1500000\n")); d.String() != "1.5ms" || !ok {
		t.Error(d, ok)
	}
}

func TestTheMachinesTimesAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"cpu  1 2 3 10 20 4 5 6 7 8\ncpu0 9\n": "21 51 true",
		"cpu  1 2 3 10\n":                      "6 16 true",
		"cpu  1 2 3\n":                         "6 6 false",
		"cpu0 1 2 3 4\n":                       "0 0 false",
		"cpu  1 2 x 4\n":                       "0 0 false",
		"":                                     "0 0 false",
	} {
		busy, total, ok := cpu.ParseStat([]byte(text))
		if got := fmt.Sprint(int(busy), int(total), ok); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestGroupsAreFound(t *testing.T) {
	const groups = "9:name=systemd:/s\n4:cpu,cpuacct:/a:b\n1:cpuset:/c\n0::/d\n"
	for controller, want := range map[string]string{
		"": "/d true", "cpu": "/a:b true", "cpuacct": "/a:b true", "memory": " false",
	} {
		group, ok := cpu.GroupPath([]byte(groups), controller)
		if got := fmt.Sprint(group, " ", ok); got != want {
			t.Errorf("%q: %s, want %s", controller, got, want)
		}
	}
	const mounts = "30 23 0:26 /root /sys/fs/cgroup\\040x rw,nosuid shared:9 - cgroup2 cgroup2 rw\n32 31 0:29 / /cpu rw " +
		"- cgroup cgroup rw,cpu\n"
	for controller, want := range map[string]string{
		"": "/sys/fs/cgroup x /root true", "cpu": "/cpu / true", "memory": "  false",
	} {
		point, root, ok := cpu.MountOf([]byte(mounts), controller)
		if got := fmt.Sprint(point, " ", root, " ", ok); got != want {
			t.Errorf("%q: %s, want %s", controller, got, want)
		}
	}
	for _, c := range []struct{ root, group, want string }{
		{"/", "/", "[/m]"},
		{"/", "/a/b", "[/m/a/b /m/a /m]"},
		{"/docker/1", "/docker/1", "[/m]"},
		{"/docker/1", "/docker/1/x", "[/m/x /m]"},
		{"/docker/1", "/docker/12", "[/m]"},
		{"/", "/../../b", "[/m/b /m]"},
		{"/docker/1", "/../other", "[/m]"},
	} {
		if got := fmt.Sprint(cpu.Folders("/m", c.root, c.group)); got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.group, c.root, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"max 100000", "50000 100000\n", "usage_usec 1\n", "cpu  1 2 3 4 5 6 7 8\n", "0::/\n", "4:cpu,cpuacct:/a\n",
		"30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", strings.Repeat("9", 30),
	} {
		f.Add([]byte(text), "/a/b")
	}
	f.Fuzz(func(t *testing.T, b []byte, group string) {
		if n, ok := cpu.ParseMax(b); ok && (n <= 0 || math.IsNaN(n)) {
			t.Error(n)
		}
		if n, ok := cpu.ParseQuota(b, b); ok && (n <= 0 || math.IsNaN(n)) {
			t.Error(n)
		}
		if d, ok := cpu.ParseUsage(b); ok && d < 0 {
			t.Error(d)
		}
		if d, ok := cpu.ParseNanoseconds(b); ok && d < 0 {
			t.Error(d)
		}
		if busy, total, ok := cpu.ParseStat(b); ok && (busy < 0 || total < busy) {
			t.Error(busy, total)
		}
		for _, controller := range []string{"", "cpu"} {
			if found, ok := cpu.GroupPath(b, controller); ok && !strings.HasPrefix(found, "/") {
				t.Error(found)
			}
			_, root, _ := cpu.MountOf(b, controller)
			for _, folder := range cpu.Folders("/m", root, group) {
				if folder != "/m" && !strings.HasPrefix(folder, "/m/") {
					t.Errorf("%q in %q is outside: %q", group, root, folder)
				}
			}
		}
	})
}
