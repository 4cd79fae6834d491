package cpu

import (
	"io"
	"math"
	"os"
	"path"
	"runtime"
	"time"
)

// sources are the files that tell how much is used.
type sources struct {
	root   string  // of the file system; "" for the real one
	limits []limit // of the groups that have one
	stat   *os.File
	busy   counter
	total  counter
	room   [4096]byte
}

// limit is the limit of one group: how much it may use and has used.
type limit struct {
	max, period, usage *os.File // period is nil with cgroup v2
	used               counter
}

// open finds what there is to read; false if that is nothing.
func (s *sources) open() bool {
	for _, v := range []struct{ controller, accounting string }{{"", ""}, {"cpu", "cpuacct"}} {
		if s.openGroups(v.controller, v.accounting); len(s.limits) > 0 {
			return true
		}
	}
	s.stat, _ = os.Open(path.Join("/", s.root, "proc/stat"))
	return s.stat != nil
}

// openGroups opens the files of all groups around this process that have a limit.
func (s *sources) openGroups(controller, accounting string) {
	groups, _ := os.ReadFile(path.Join("/", s.root, "proc/self/cgroup"))
	mounts, _ := os.ReadFile(path.Join("/", s.root, "proc/self/mountinfo"))
	find := func(controller string) []string {
		group, ok := groupPath(groups, controller)
		point, root, mounted := mountOf(mounts, controller)
		if !ok || !mounted {
			return nil
		}
		return folders(path.Join("/", s.root, point), root, group)
	}
	limited, counted := find(controller), find(accounting)
	for i := range min(len(limited), len(counted)) {
		l, err := openLimit(limited[i], counted[i], controller == "")
		if err == nil && !math.IsInf(s.processors(&l), 1) {
			s.limits = append(s.limits, l)
		} else {
			l.close()
		}
	}
}

func openLimit(limited, counted string, v2 bool) (l limit, err error) {
	open := func(folder, name string) (f *os.File) {
		if err == nil {
			f, err = os.Open(path.Join(folder, name))
		}
		return f
	}
	if v2 {
		l.max, l.usage = open(limited, "cpu.max"), open(counted, "cpu.stat")
	} else {
		l.max, l.period, l.usage = open(limited, "cpu.cfs_quota_us"), open(limited, "cpu.cfs_period_us"),
			open(counted, "cpuacct.usage")
	}
	return l, err
}

func (l *limit) close() {
	for _, f := range []*os.File{l.max, l.period, l.usage} {
		f.Close() // nothing was written; of nil it is an error
	}
}

// close lets all files go.
func (s *sources) close() {
	for i := range s.limits {
		s.limits[i].close()
	}
	s.stat.Close()
	*s = sources{root: s.root}
}

// content reads a file from its beginning, as much as matters.
func (s *sources) content(f *os.File, room []byte) []byte {
	n, err := f.ReadAt(room, 0)
	if err != nil && err != io.EOF {
		return nil
	}
	return room[:n]
}

// processors is how many a group may use now; infinity for no limit, and if that cannot be read.
func (s *sources) processors(l *limit) float64 {
	half := len(s.room) / 2
	text := s.content(l.max, s.room[:half])
	n, ok := 0.0, false
	if l.period == nil {
		n, ok = parseMax(text)
	} else {
		n, ok = parseQuota(text, s.content(l.period, s.room[half:]))
	}
	if !ok {
		return math.Inf(1)
	}
	return n
}

// read returns the share used in the time that has passed since the last call, 0 in the first; false if nothing can be
// read.
func (s *sources) read(passed time.Duration) (share float64, ok bool) {
	for i := range s.limits {
		l := &s.limits[i]
		processors := min(s.processors(l), float64(runtime.NumCPU()))
		text := s.content(l.usage, s.room[:])
		used, found := parseNanoseconds(text)
		if l.period == nil {
			used, found = parseUsage(text)
		}
		if !found {
			return 0, false
		}
		if by, ok := l.used.grown(used); ok {
			share = max(share, ratio(by.Seconds(), passed.Seconds()*processors))
		}
	}
	if s.stat == nil {
		return share, len(s.limits) > 0
	}
	busy, total, found := parseStat(s.content(s.stat, s.room[:]))
	busyBy, ok := s.busy.grown(busy)
	totalBy, also := s.total.grown(total)
	if ok && also {
		share = ratio(float64(busyBy), float64(totalBy))
	}
	return share, found
}
