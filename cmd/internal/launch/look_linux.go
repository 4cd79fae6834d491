package launch

import (
	"net/netip"
	"os"
	"strconv"
)

// looks reports whether this system tells who is connected to what.
const looks = true

// tree is a process and all that it has started.
func tree(root int) map[int]bool {
	parents := map[int]int{}
	entries, _ := os.ReadDir("/proc") // without it there are none
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat") // it may have ended
		if parent, ok := parentOf(stat); ok {
			parents[pid] = parent
		}
	}
	return descendants(root, parents)
}

// direct finds the connections to some addresses that a process, and those that it has started, have by themselves.
func direct(root int, to map[netip.AddrPort]string) (found []netip.AddrPort) {
	at := "/proc/" + strconv.Itoa(root) + "/net/"
	wanted := map[uint64]netip.AddrPort{}
	for _, name := range []string{"tcp", "tcp6"} {
		table, _ := os.ReadFile(at + name) // it may have ended
		for _, s := range sockets(table) {
			if _, ok := to[s.remote]; ok {
				wanted[s.inode] = s.remote
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	for pid := range tree(root) {
		folder := "/proc/" + strconv.Itoa(pid) + "/fd/"
		open, _ := os.ReadDir(folder) // it may have ended
		for _, e := range open {
			link, _ := os.Readlink(folder + e.Name())
			if inode, ok := inodeOf(link); ok && wanted[inode].IsValid() {
				found = append(found, wanted[inode])
			}
		}
	}
	return found
}
