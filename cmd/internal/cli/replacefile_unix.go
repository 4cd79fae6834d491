//go:build unix

package cli

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file to the owner and the group of the old one: root writes rules that only Prometheus may read.
// Others may at most keep the group; what they may not is left as it is, for the folder let them replace the file.
func keepOwner(f *os.File, old fs.FileInfo) {
	if was, ok := old.Sys().(*syscall.Stat_t); ok && f.Chown(int(was.Uid), int(was.Gid)) != nil {
		_ = f.Chown(-1, int(was.Gid))
	}
}
