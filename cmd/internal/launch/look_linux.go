package launch

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// looks reports whether this system tells who is connected to what.
const looks = true

// processes are all that there are: who started each, and when.
func processes() (parents map[int]int, begun map[int]string) {
	parents, begun = map[int]int{}, map[int]string{}
	entries, _ := os.ReadDir("/proc") // without it there are none
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat") // it may have ended
		if parent, ok := parentOf(stat); ok && !ended(stat) {
			parents[pid], begun[pid] = parent, startOf(stat)
		}
	}
	return parents, begun
}

// tree is a process and all that it has started.
func tree(root int) map[int]bool {
	parents, _ := processes()
	return descendants(root, parents)
}

// family is a program and all that it has started, daemons that have no parent any more included: those have its
// environment.
type family struct {
	root  int
	mark  []byte            // a variable of its environment that nobody else has
	known map[relative]bool // whether it belongs here
}

// relative is a process. Another one may get its number when it has ended.
type relative struct {
	pid   int
	begun string
}

func newFamily(root int, proxy string) *family {
	return &family{root, []byte("\x00ABATE_RUN_PROXY=" + proxy + "\x00"), map[relative]bool{}}
}

// members are those that have not ended.
func (f *family) members() map[int]bool {
	parents, begun := processes()
	in := descendants(f.root, parents)
	now := make(map[relative]bool, len(begun))
	for pid, at := range begun {
		one := relative{pid, at}
		ours, seen := f.known[one]
		if !seen && !in[pid] {
			environment, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ") // of others it cannot be read
			ours = bytes.Contains(append([]byte{0}, environment...), f.mark)
		}
		if ours && !in[pid] {
			for child := range descendants(pid, parents) {
				in[child] = true
			}
		}
		now[one] = ours
	}
	for one := range now {
		now[one] = now[one] || in[one.pid]
	}
	f.known = now
	return in
}

// list are the connections that are open in the network of the program, as /proc has them: without cookies.
func (f *family) list() (all []socket) {
	for _, name := range []string{"tcp", "tcp6"} {
		table, _ := os.ReadFile("/proc/" + strconv.Itoa(f.root) + "/net/" + name) // it may have ended
		all = append(all, sockets(table)...)
	}
	return all
}

// elsewhere reports whether the program is in a network namespace of its own.
func (f *family) elsewhere() bool {
	here, err := os.Readlink("/proc/self/ns/net")
	there, bad := os.Readlink("/proc/" + strconv.Itoa(f.root) + "/ns/net") // it may have ended
	return err == nil && bad == nil && here != there
}

// holders finds out who has some connections, by their inodes: this process or the family. hidden is one of the family
// that cannot be looked into, if nobody is known to have one of them; else it is 0.
func (f *family) holders(wanted []socket) (has map[uint64]whose, hidden int) {
	has = map[uint64]whose{}
	if len(wanted) == 0 {
		return has, 0
	}
	unknown := map[uint64]bool{}
	for _, s := range wanted {
		unknown[s.inode] = true
	}
	note := func(open []uint64, who whose) {
		for _, inode := range open {
			if unknown[inode] {
				has[inode] = who
				delete(unknown, inode)
			}
		}
	}
	own, _ := socketsOf(os.Getpid())
	note(own, proxys)
	for pid := range f.members() {
		open, err := socketsOf(pid)
		if errors.Is(err, fs.ErrPermission) {
			hidden = pid
		}
		note(open, programs)
	}
	if len(unknown) == 0 {
		hidden = 0
	}
	return has, hidden
}

// socketsOf are the sockets that a process has open.
func socketsOf(pid int) (inodes []uint64, err error) {
	folder := "/proc/" + strconv.Itoa(pid) + "/fd/"
	open, err := os.ReadDir(folder)
	for _, e := range open {
		link, _ := os.Readlink(folder + e.Name()) // it may have been closed
		if inode, ok := inodeOf(link); ok {
			inodes = append(inodes, inode)
		}
	}
	return inodes, err
}

// leftAfter is how many of the family go on after the program itself has ended. They have so long to end, too.
func (f *family) leftAfter(d time.Duration) (n int) {
	for until := time.Now().Add(d); ; time.Sleep(d / 10) {
		in := f.members()
		delete(in, f.root)
		if n = len(in); n == 0 || time.Now().After(until) {
			return n
		}
	}
}
