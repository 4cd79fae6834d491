//go:build unix

package rehearse

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Rules that root has replaced must stay readable to the Prometheus that they belong to.
func TestAFileThatIsReplacedKeepsItsOwnerAndGroup(t *testing.T) {
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 4711, 4712
	} else if len(groups) > 0 {
		gid = groups[len(groups)-1] // another than new files have, if there is one
	}
	out := filepath.Join(t.TempDir(), "rules.yaml")
	for _, err := range []error{os.WriteFile(out, []byte("old"), 0o600), os.Chown(out, uid, gid), os.Chmod(out, 0o640)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if code, said := exportTo(t, out); code != 0 {
		t.Fatal(said)
	}
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t); int(is.Uid) != uid || int(is.Gid) != gid || info.Mode() != 0o640 {
		t.Errorf("owner %d, group %d, mode %v; want %d, %d, 0640", is.Uid, is.Gid, info.Mode(), uid, gid)
	}
	isWritten(t, out, "rules.yaml")
}
