package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer"
)

// Stdin is the name that means standard input among paths, and StdinName what positions call it.
const (
	Stdin     = "-"
	StdinName = "stdin"
)

// skipped are folders that hold other people's files, or files that were made from others.
var skipped = []string{"node_modules", "vendor", "target", "dist", "build", "__pycache__", "venv"}

// media are extensions of files that are no configuration and may be large.
var media = []string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".pdf", ".zip", ".gz", ".tgz", ".jar", ".war",
	".so", ".dll", ".exe", ".o", ".a", ".woff", ".woff2", ".ttf", ".mp4", ".class", ".wasm", ".bin", ".lock", ".sum"}

// Collect reads the files at paths, and all files of folders among them, in the order of their names. A path "-" is
// standard input. Folders whose name begins with a dot, of dependencies and of build results are left out, unless they
// are named themselves; so are media. progress, if not nil, is told after each file how many were read.
//
// A path that is not there, or cannot be read, is an error; the errors of all paths are joined. When ctx is done,
// Collect returns its error.
func Collect(ctx context.Context, paths []string, stdin io.Reader, progress func(files int)) ([]importer.File, error) {
	c := &collecting{ctx: ctx, progress: progress, seen: map[string]bool{}}
	for _, path := range paths {
		if path == Stdin {
			data, err := waitFor(c.ctx, func() ([]byte, error) {
				return io.ReadAll(io.LimitReader(stdin, importer.MaxBytes+1))
			})
			if err != nil {
				c.errs = append(c.errs, fmt.Errorf("standard input: %w", err))
				continue
			}
			c.files = append(c.files, importer.File{Name: StdinName, Data: data})
			continue
		}
		c.path(filepath.Clean(path))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.files, errors.Join(c.errs...)
}

// missing is a path that was named and is not there.
type missing string

func (m missing) Error() string { return string(m) + ": there is no such file or folder" }

func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

type collecting struct {
	ctx      context.Context
	progress func(int)
	seen     map[string]bool
	files    []importer.File
	errs     []error
}

func (c *collecting) path(root string) {
	if info, err := os.Stat(root); err == nil && info.IsDir() {
		root += string(filepath.Separator) // a link to a folder is that folder, if somebody names it
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case c.ctx.Err() != nil:
			return filepath.SkipAll
		case path == root && errors.Is(err, fs.ErrNotExist):
			c.errs = append(c.errs, missing(filepath.Clean(root)))
		case err != nil:
			c.errs = append(c.errs, err)
		case d.IsDir():
			name := d.Name()
			if path != root && (strings.HasPrefix(name, ".") || slices.Contains(skipped, name)) {
				return filepath.SkipDir
			}
		case d.Type().IsRegular() || path == root:
			if path == root || !slices.Contains(media, strings.ToLower(filepath.Ext(path))) {
				c.file(path)
			}
		}
		return nil
	})
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

func (c *collecting) file(path string) {
	name := filepath.ToSlash(path)
	if c.seen[name] {
		return
	}
	c.seen[name] = true
	data, err := readUpTo(c.ctx, path, importer.MaxBytes+1)
	if err != nil {
		c.errs = append(c.errs, err)
		return
	}
	c.files = append(c.files, importer.File{Name: name, Data: data})
	if c.progress != nil {
		c.progress(len(c.files))
	}
}

// readUpTo reads a file. A named pipe is opened when somebody writes to it, which may be never: it is left when ctx is
// done.
func readUpTo(ctx context.Context, path string, most int64) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return readFile(path, most)
	}
	return waitFor(ctx, func() ([]byte, error) { return readFile(path, most) })
}

// waitFor reads what may never end. It is left when ctx is done.
func waitFor(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := read()
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
