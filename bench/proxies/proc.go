package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of the times in /proc, the same on every Linux that Go runs on.
const ticksPerSecond = 100

// stat is what is used of /proc/PID/stat (see proc_pid_stat(5)). Times are in ticks and count all threads, ended ones
// too; reaped is the time of the children that were waited for.
type stat struct {
	parent      int
	own, reaped int64
}

// parseStat reads one line of /proc/PID/stat. The name in it may hold spaces and parentheses.
func parseStat(line string) (stat, error) {
	end := strings.LastIndexByte(line, ')')
	fields := strings.Fields(line[end+1:])
	if end < 0 || len(fields) < 15 {
		return stat{}, fmt.Errorf("not a line of /proc/PID/stat: %q", line)
	}
	var n [5]int64 // ppid, utime, stime, cutime, cstime: fields 4 and 14 to 17, the name being field 2
	for i, field := range []int{4, 14, 15, 16, 17} {
		v, err := strconv.ParseInt(fields[field-3], 10, 64)
		if err != nil {
			return stat{}, fmt.Errorf("field %d of /proc/PID/stat: %w", field, err)
		}
		n[i] = v
	}
	return stat{parent: int(n[0]), own: n[1] + n[2], reaped: n[3] + n[4]}, nil
}

// parseMachine reads the first line of /proc/stat: the ticks that all processors together spent for processes, and
// those that the hypervisor gave to somebody else. Interrupts are left out: most kernels charge them to whichever
// process they interrupted as well.
func parseMachine(text string) (busy, stolen int64, err error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("not the first line of /proc/stat: %q", line)
	}
	var n [8]int64 // user, nice, system, idle, iowait, irq, softirq, steal
	for i := range n {
		if n[i], err = strconv.ParseInt(fields[i+1], 10, 64); err != nil {
			return 0, 0, fmt.Errorf("field %d of /proc/stat: %w", i+1, err)
		}
	}
	return n[0] + n[1] + n[2] + n[7], n[7], nil
}

// parseRSS reads the resident kilobytes from /proc/PID/status; a process without memory (a zombie) has none.
func parseRSS(status []byte) (kilobytes int64, err error) {
	_, rest, found := bytes.Cut(status, []byte("\nVmRSS:"))
	if !found {
		return 0, nil
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	text, isKB := strings.CutSuffix(strings.TrimSpace(string(line)), " kB")
	kilobytes, err = strconv.ParseInt(text, 10, 64)
	if err != nil || !isKB {
		return 0, fmt.Errorf("VmRSS of /proc/PID/status is %q, not a number of kB", line)
	}
	return kilobytes, nil
}

// table is all processes at one moment.
type table map[int]stat

func readTable() (table, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make(table)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		line, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil { // it has ended meanwhile
			continue
		}
		if all[pid], err = parseStat(string(line)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// tree returns root and all that descend from it.
func (all table) tree(root int) []int {
	children := make(map[int][]int)
	for pid, s := range all {
		children[s.parent] = append(children[s.parent], pid)
	}
	found := []int{root}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// ticks sums the time of some processes. A child that ends moves its time to its parent, so the sum over a tree never
// jumps.
func (all table) ticks(pids []int) (sum int64) {
	for _, pid := range pids {
		sum += all[pid].own + all[pid].reaped
	}
	return sum
}

// meter is the processor time spent up to one moment, in ticks: by one target, by the upstream, by this command with
// everything it started, by every process that can be seen, and by the whole machine.
type meter struct {
	target, upstream, ours, visible, machine, stolen int64
}

// readMeter reads all of it at once. A pid of 0 stands for nobody.
func readMeter(target, upstream int) (meter, error) {
	all, err := readTable()
	if err != nil {
		return meter{}, err
	}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return meter{}, err
	}
	m := meter{ours: all.ticks(all.tree(os.Getpid()))}
	if target != 0 {
		m.target = all.ticks(all.tree(target))
	}
	if upstream != 0 {
		m.upstream = all.ticks(all.tree(upstream))
	}
	for pid := range all {
		m.visible += all[pid].own + all[pid].reaped
	}
	m.machine, m.stolen, err = parseMachine(string(text))
	return m, err
}

func (m meter) since(start meter) meter {
	return meter{
		m.target - start.target, m.upstream - start.upstream, m.ours - start.ours,
		m.visible - start.visible, m.machine - start.machine, m.stolen - start.stolen,
	}
}

// others is how many processors other programs kept busy for that many seconds. It takes the larger of two sums that
// are both too small at times: the machine's misses interrupts, which on some kernels hide a quarter of a processor,
// and that of the visible processes misses other containers.
func (m meter) others(seconds float64) float64 {
	return max(float64(max(m.machine, m.visible+m.stolen)-m.ours)/ticksPerSecond/seconds, 0)
}

// residentKB is the memory of a process and all its children. Pages they share count once for each.
func residentKB(pid int) (int64, error) {
	all, err := readTable()
	if err != nil {
		return 0, err
	}
	return residentOf(all.tree(pid))
}

func residentOf(pids []int) (sum int64, err error) {
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if errors.Is(err, os.ErrNotExist) {
			return 0, fmt.Errorf("process %d has ended", pid)
		}
		if err != nil {
			return 0, err
		}
		kb, err := parseRSS(status)
		if err != nil {
			return 0, err
		}
		sum += kb
	}
	return sum, nil
}
