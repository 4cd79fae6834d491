package discovery

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// maxFile is how long a file may be: 100,000 targets of 80 bytes.
const maxFile = 8 << 20

// file is a file of targets that is looked at. Looking instead of listening survives every way in which files change:
// the ..data link of a mounted ConfigMap, an editor's rename, a network file system.
type file struct {
	path  string
	every time.Duration
	seen  os.FileInfo // at the last look
	read  os.FileInfo // when it was read last
	list  []Endpoint  // what that brought
	err   error
}

// look reads the file if it has changed, once it has stayed the same for two looks: a program that writes it in place
// has its first half there for a moment, and half of a list in YAML is a list. The first look reads it at once.
func (f *file) look(context.Context) ([]Endpoint, time.Duration, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		f.seen, f.read, f.err = nil, nil, err
		return nil, f.every, err
	}
	before := f.seen
	f.seen = info
	if f.read != nil && unchanged(f.read, info) {
		return f.list, f.every, f.err
	}
	if before != nil && !unchanged(before, info) {
		return f.list, f.every, f.err
	}
	f.list, f.err = readTargets(f.path)
	if f.read = info; time.Since(info.ModTime()) < settled {
		f.read = nil // another write within the same moment would leave the time stamp as it is
	}
	return f.list, f.every, f.err
}

// settled is how old a file's time stamp must be before it is trusted to change with the next write.
const settled = 2 * time.Second

func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func readTargets(path string) ([]Endpoint, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("it is longer than %d MiB", maxFile>>20)
	}
	return Parse(data)
}
