package embedded_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/abate-go/abate/adapter/abatekafka/embedded"
)

// A process that is started while a broker runs has copies of its files for a moment.
func TestABrokerGivesItsFolderBackThoughAProcessThatBeginsHasACopyOfTheLock(t *testing.T) {
	config := embedded.Config{Dir: t.TempDir()}
	b, err := embedded.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	copied := copyOf(t, filepath.Join(config.Dir, ".lock"))
	defer syscall.Close(copied)
	b.Close()
	if b, err = embedded.Start(config); err != nil {
		t.Fatal(err)
	}
	b.Close()
}

// copyOf duplicates the descriptor under which this process has a file open.
func copyOf(t *testing.T, path string) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range open {
		if name, err := os.Readlink("/proc/self/fd/" + o.Name()); err != nil || name != path {
			continue
		}
		fd, err := strconv.Atoi(o.Name())
		if err == nil {
			fd, err = syscall.Dup(fd)
		}
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	t.Fatalf("%s is not open", path)
	return -1
}
