package policyfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/strictyaml"
)

// Read reads what Parse takes from r, and refuses more than MaxBytes without reading on. name stands in the message.
func Read(name string, r io.Reader) ([]byte, error) {
	data, err := form.Read(name, r)
	var mistakes strictyaml.Errors
	switch {
	case errors.As(err, &mistakes):
		return nil, mistakes
	case err != nil:
		return nil, fmt.Errorf("policyfile: %w", err)
	}
	return data, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("policyfile: %w", err)
	}
	defer f.Close()
	return Read(path, f)
}

// contentOf identifies what was read: its SHA-256, or the error that came instead.
func contentOf(data []byte, err error) string {
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// same reports whether guard follows this policy already, as far as that can be known: two classifiers cannot be
// compared.
func same(g *abate.Guard, next *abate.Policy) bool {
	now, want := *g.Describe(), *next
	if want.Classify != nil || want.Rand != nil || now.Classify != nil || now.Rand != nil ||
		!sameValue(now.Observer, want.Observer) || !sameValue(now.Places, want.Places) {
		return false
	}
	now.Observer, want.Observer = nil, nil
	now.Places, want.Places = nil, nil
	return reflect.DeepEqual(now, want.WithDefaults())
}

// sameValue reports whether two values of an interface, either of which may be nil, are the same.
func sameValue(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
