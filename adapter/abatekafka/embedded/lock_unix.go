//go:build unix && !solaris && !illumos && !aix

package embedded

import (
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder takes a folder for one broker. The lock ends with the file, and so with the process.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// unlockFolder gives a folder back. To close the file is not enough: a process that is just being started has a copy of
// it until its program begins, and the lock lives as long as any copy.
func unlockFolder(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}
