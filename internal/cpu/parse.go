package cpu

import (
	"bytes"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// number reads a whole number that is not negative and leaves room for arithmetic.
func number(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// field cuts the first word off a line.
func field(b []byte) (word, rest []byte) {
	b = bytes.TrimLeft(b, " \t")
	i := bytes.IndexAny(b, " \t\n")
	if i < 0 {
		return b, nil
	}
	return b[:i], b[i:]
}

// parseMax reads cpu.max of cgroup v2, "max 100000" or "50000 100000": how many processors the group may use. Infinity
// if there is no limit; false if it says neither.
func parseMax(b []byte) (processors float64, ok bool) {
	quota, rest := field(b)
	if string(quota) == "max" {
		return math.Inf(1), true
	}
	period, _ := field(rest)
	return quotient(quota, period)
}

// quotient is quota / period.
func quotient(quota, period []byte) (float64, bool) {
	q, ok := number(quota)
	p, also := number(period)
	if !ok || !also || q == 0 || p == 0 {
		return 0, false
	}
	return float64(q) / float64(p), true
}

// parseQuota reads cpu.cfs_quota_us and cpu.cfs_period_us of cgroup v1. The quota is -1 if there is no limit.
func parseQuota(quota, period []byte) (processors float64, ok bool) {
	quota, _ = field(quota)
	period, _ = field(period)
	if string(quota) == "-1" {
		return math.Inf(1), true
	}
	return quotient(quota, period)
}

// parseUsage reads how much processor time a group has used, from cpu.stat of cgroup v2.
func parseUsage(b []byte) (time.Duration, bool) {
	for line := range bytes.Lines(b) {
		name, rest := field(line)
		if string(name) != "usage_usec" {
			continue
		}
		value, _ := field(rest)
		n, ok := number(value)
		if n > math.MaxInt64/int64(time.Microsecond) {
			return 0, false
		}
		return time.Duration(n) * time.Microsecond, ok
	}
	return 0, false
}

// parseNanoseconds reads the same from cpuacct.usage of cgroup v1.
func parseNanoseconds(b []byte) (time.Duration, bool) {
	value, _ := field(b)
	n, ok := number(value)
	return time.Duration(n), ok
}

// parseStat reads the first line of /proc/stat: how long the machine's processors were busy, and how long they were
// there, in ticks of whatever length. What a hypervisor has kept for others was not there to be used, so it counts as
// busy.
func parseStat(b []byte) (busy, total time.Duration, ok bool) {
	name, rest := field(b)
	if string(name) != "cpu" {
		return 0, 0, false
	}
	for i := range 8 { // user nice system idle iowait irq softirq steal; guests are part of user
		var word []byte
		if word, rest = field(rest); len(word) == 0 {
			return busy, total, i > 3 // very old kernels have four
		}
		n, ok := number(word)
		if !ok || n > math.MaxInt64/16 {
			return 0, 0, false
		}
		total += time.Duration(n)
		if i != 3 && i != 4 {
			busy += time.Duration(n)
		}
	}
	return busy, total, true
}

// groupPath finds in /proc/self/cgroup the path of this process' group: in the hierarchy that has the controller, or
// with an empty controller in that of cgroup v2.
func groupPath(b []byte, controller string) (string, bool) {
	for line := range strings.Lines(string(b)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		names, group, ok := strings.Cut(rest, ":")
		if ok && lists(names, controller) {
			return group, strings.HasPrefix(group, "/")
		}
	}
	return "", false
}

// lists reports whether a list has a name. The list of cgroup v2 is empty.
func lists(names, name string) bool {
	return slices.Contains(strings.Split(names, ","), name)
}

// mountOf finds in /proc/self/mountinfo where a hierarchy is mounted, and which of its groups that is: that of cgroup
// v2, or with a controller that of cgroup v1.
func mountOf(b []byte, controller string) (point, root string, ok bool) {
	for line := range strings.Lines(string(b)) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) < 3 {
			continue
		}
		v2 := controller == "" && kind[0] == "cgroup2"
		v1 := controller != "" && kind[0] == "cgroup" && lists(kind[2], controller)
		if v1 || v2 {
			return unescape(fields[4]), unescape(fields[3]), true
		}
	}
	return "", "", false
}

// unescape reads the names in mountinfo, in which white space stands as \040.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// folders are those of a group and of all groups around it that can be seen, from the inside out. If the group is not
// below the root of the mount, as in a container that sees the paths of its host, the root is all there is to see.
func folders(point, root, group string) []string {
	inside, ok := strings.CutPrefix(path.Clean(group), strings.TrimSuffix(path.Clean(root), "/"))
	if !ok || inside != "" && inside[0] != '/' || strings.HasPrefix(inside, "/..") {
		inside = "/"
	}
	var all []string
	for p := path.Join("/", inside); ; p = path.Dir(p) {
		all = append(all, path.Join(point, p))
		if p == "/" || len(all) > 64 {
			return all
		}
	}
}
