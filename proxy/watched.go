package proxy

import (
	"os"
	"sync/atomic"

	"github.com/abate-go/abate/proxy/identity"
)

// watched is something read from files, which is read again when they change. What was good last stays while they are
// not.
type watched[T any] struct {
	files []string
	read  func() (*T, error) // a value beside an error is better than none
	check func(*T) error     // what is wrong with a value by now; nil for nothing
	seen  []os.FileInfo      // as they were before the last read that went well
	value atomic.Pointer[T]
}

// refresh reads the files if they have changed. It is called by one goroutine at a time.
func (w *watched[T]) refresh() (changed bool, err error) {
	now := make([]os.FileInfo, len(w.files))
	for i, path := range w.files {
		if now[i], err = os.Stat(path); err != nil {
			return false, err
		}
	}
	if w.seen != nil && same(w.seen, now) {
		return false, w.checked()
	}
	value, err := w.read()
	if err != nil && (value == nil || w.value.Load() != nil) { // perhaps half of a new pair is there: looked at again
		return false, err
	}
	changed = w.seen != nil
	w.seen = now
	w.value.Store(value)
	return changed, err
}

func (w *watched[T]) checked() error {
	if w.check == nil {
		return nil
	}
	return w.check(w.value.Load())
}

// same reports whether files are as they were: also those that a mounted Secret replaces by turning a link.
func same(a, b []os.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() {
			return false
		}
	}
	return true
}

func watchTokens(path string) *watched[identity.Tokens] {
	return &watched[identity.Tokens]{files: []string{path}, read: func() (*identity.Tokens, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return identity.ParseTokens(path, data)
	}}
}
