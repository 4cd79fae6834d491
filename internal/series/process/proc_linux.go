package process

import (
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/abate-go/abate/internal/series"
)

// ticks is in how many parts of a second the kernel counts in /proc, on every system that Go runs on.
const ticks = 100

// Collect reads /proc.
func (Process) Collect(send func(series.Sample)) {
	if s, ok := statOf(read("/proc/self/stat")); ok {
		send(series.Count(cpuDesc, s.cpu))
		send(series.Gauge(virtualDesc, s.virtual))
		send(series.Gauge(residentDesc, s.pages*float64(os.Getpagesize())))
		if boot, ok := number(valueOf(read("/proc/stat"), "btime")); ok {
			send(series.Gauge(startDesc, boot+s.start))
		}
	}
	if n, ok := descriptors(); ok {
		send(series.Gauge(openDesc, float64(n)))
	}
	limits := read("/proc/self/limits")
	for name, d := range map[string]*series.Desc{"Max open files": mostDesc, "Max address space": addressDesc} {
		if v, ok := number(valueOf(limits, name)); ok {
			send(series.Gauge(d, v))
		}
	}
	if names, values, ok := ipExt(read("/proc/self/net/netstat")); ok {
		for i, name := range names {
			v, _ := number(values[i])
			switch name {
			case "InOctets":
				send(series.Count(receivedDesc, v))
			case "OutOctets":
				send(series.Count(sentDesc, v))
			}
		}
	}
}

// read returns a file, "" if it cannot be read.
func read(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// stat is what is used of /proc/self/stat.
type stat struct{ cpu, start, virtual, pages float64 }

// statOf reads it. The name of the program is in parentheses and may have any character.
func statOf(text string) (s stat, ok bool) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the first is the third of the page proc(5)
	of := func(n int) (v float64) {
		if n-3 >= len(fields) {
			ok = false
			return 0
		}
		v, err := strconv.ParseFloat(fields[n-3], 64)
		ok = ok && err == nil
		return v
	}
	ok = true
	s = stat{cpu: (of(14) + of(15)) / ticks, start: of(22) / ticks, virtual: of(23), pages: of(24)}
	return s, ok
}

// valueOf returns the word after a name at the beginning of a line.
func valueOf(text, name string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if words := strings.Fields(rest); len(words) > 0 {
				return words[0]
			}
		}
	}
	return ""
}

// number reads a number as /proc writes them: what has no limit is as many as can be counted.
func number(word string) (v float64, ok bool) {
	if word == "unlimited" {
		return math.MaxUint64, true
	}
	v, err := strconv.ParseFloat(word, 64)
	return v, err == nil
}

// descriptors counts those that are open. Since Linux 6.2 the folder's size says how many there are.
func descriptors() (n int, ok bool) {
	const folder = "/proc/self/fd"
	if info, err := os.Stat(folder); err == nil && info.Size() > 0 {
		return int(info.Size()), true
	}
	all, err := os.ReadDir(folder)
	return len(all), err == nil
}

// ipExt returns the names of the line of names of IpExt, and what the line of values has below them.
func ipExt(text string) (names, values []string, ok bool) {
	for line := range strings.Lines(text) {
		rest, is := strings.CutPrefix(line, "IpExt:")
		if !is {
			continue
		}
		if names == nil {
			names = strings.Fields(rest)
			continue
		}
		values = strings.Fields(rest)
		return names, values, len(names) == len(values)
	}
	return nil, nil, false
}
