//go:build unix

package postgres

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"testing"
)

// runner is a user who may run the server, which refuses to run as root; none if we may.
type runner struct{ credential *syscall.Credential }

func runnerFor(t testing.TB) runner {
	t.Helper()
	if os.Getuid() != 0 {
		return runner{}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			return runner{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		}
	}
	t.Fatal("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")
	return runner{}
}

// own gives the runner a folder.
func (r runner) own(folder string) error {
	if r.credential == nil {
		return nil
	}
	return os.Chown(folder, int(r.credential.Uid), int(r.credential.Gid))
}

// run has a program run as the runner's.
func (r runner) run(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: r.credential, Setpgid: true}
}
