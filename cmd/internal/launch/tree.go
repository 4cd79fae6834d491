package launch

import (
	"bytes"
	"strconv"
)

// parentOf reads who the parent of a process is, from its /proc/PID/stat. The name of the process stands in parentheses
// and may hold any.
func parentOf(stat []byte) (parent int, ok bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

// ended reports whether a process has ended and is only still listed, from its /proc/PID/stat.
func ended(stat []byte) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 0 && (fields[0][0] == 'Z' || fields[0][0] == 'X')
}

// startOf is when a process began, from its /proc/PID/stat.
func startOf(stat []byte) string {
	const starttime = 22 - 3 // behind the name, which is the second
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= starttime {
		return ""
	}
	return string(fields[starttime])
}

// descendants are a process and all that it has started, by who the parent of each process is.
func descendants(root int, parents map[int]int) map[int]bool {
	in := map[int]bool{root: true}
	for pid := range parents {
		var way []int
		for at, steps := pid, 0; steps <= len(parents); steps++ {
			if in[at] {
				for _, one := range way {
					in[one] = true
				}
				break
			}
			way = append(way, at)
			parent, known := parents[at]
			if !known {
				break
			}
			at = parent
		}
	}
	return in
}
