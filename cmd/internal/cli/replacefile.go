package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceFile puts data into a file as a whole or not at all: it is written beside the file, reaches the disk, and
// takes the file's place. The file keeps its mode, its owner and group too as far as this process may give a file away,
// and a link stays a link. What cannot be replaced is refused: a file that may not be written, a link to nothing, of
// which nobody knows what it should lead to. What is there and no file, such as a pipe or a device, is written to.
func ReplaceFile(name string, data []byte) error {
	target, old, err := replaceable(name)
	if err != nil {
		return err
	}
	if old != nil && !old.Mode().IsRegular() {
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return errors.Join(err, f.Close())
	}
	// In a folder of its own the new file has the mode that a new file should have, and no name that a crash could
	// leave in the way.
	beside, err := os.MkdirTemp(filepath.Dir(target), ".abate-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(beside)
	whole := filepath.Join(beside, "new")
	if err := writeDurably(whole, data, old); err != nil {
		return err
	}
	if err := os.Rename(whole, target); err != nil {
		return err
	}
	if folder, err := os.Open(filepath.Dir(target)); err == nil {
		_ = folder.Sync() // some systems cannot, and then the name is as safe as it can be
		folder.Close()
	}
	return nil
}

// replaceable is what a name leads to, and what is there now; nil if there is nothing.
func replaceable(name string) (target string, old fs.FileInfo, err error) {
	old, err = os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(name); err == nil {
			return "", nil, fmt.Errorf("%s is a link to nothing: remove it, or make what it leads to", name)
		}
		return name, nil, nil
	case err != nil:
		return "", nil, err
	case old.IsDir():
		return "", nil, fmt.Errorf("%s is a folder: name a file in it", name)
	case !old.Mode().IsRegular():
		return name, old, nil
	}
	// to replace it, the folder's mode would do; who has protected the file means the file
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return "", nil, err
	}
	if err := f.Close(); err != nil {
		return "", nil, err
	}
	target, err = filepath.EvalSymlinks(name)
	return target, old, err
}

// writeDurably makes a file with the mode and the owner of the old one, and returns when its bytes are on the disk.
func writeDurably(name string, data []byte, old fs.FileInfo) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && old != nil {
		keepOwner(f, old)                // first: it may take bits of the mode away
		err = f.Chmod(old.Mode().Perm()) // also what this process would mask
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
