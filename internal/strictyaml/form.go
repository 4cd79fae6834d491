package strictyaml

import (
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Limits of every file. More than this is a mistake.
const (
	MaxBytes   = 1 << 20 // size of the file
	MaxNames   = 10_000  // entries of a keyed list
	MaxMembers = 1_000   // of other lists

	maxErrors = 1_000     // reported mistakes
	maxVisits = 1_000_000 // YAML nodes looked at, those behind aliases counted each time
)

// Form is one kind of file, and what its messages call things. All fields but Scale are needed.
type Form struct {
	Noun  string // what a file holds: "policy"
	Least string // what a file needs at least, with an example, said when there is nothing in it
	Key   string // a key that could stand in it: "maxRetries"
	// Scale multiplies MaxBytes and MaxMembers, for files that programs write; 0 means 1.
	Scale int
}

func (f Form) scaled(limit int) int { return limit * max(1, f.Scale) }

// Read reads a file from r, and refuses more than MaxBytes, with an Errors, without reading on. file stands in the
// message.
func (f Form) Read(file string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		err = f.tooLarge(file)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func (f Form) tooLarge(file string) Errors {
	return Errors{{File: file, Line: 1, Col: 1,
		Problem: fmt.Sprintf("the file is larger than %d MiB", f.scaled(MaxBytes)>>20),
		Fix:     fmt.Sprintf("allowed: at most %d bytes; this is hardly a %s file", f.scaled(MaxBytes), f.Noun)}}
}

// Decode reads the file's one YAML document over the struct that into points to. file stands in the messages. Keys of
// the top level that begin with x- are not looked at: anchors have a place to stand. With mistakes the struct holds
// what could be read. The Positions is never nil: more mistakes can be added to it, and its Errors are then all of
// them. No input makes it panic, and its work is bounded whatever the aliases in the file say.
func (f Form) Decode(file string, data []byte, into any) (*Positions, Errors) {
	d := &Document{Form: f, File: file}
	p := &Positions{Document: d, open: true}
	if len(data) > f.scaled(MaxBytes) {
		d.errs = f.tooLarge(file)
		return p, d.Errors()
	}
	if root := d.Root(data); root != nil {
		p.Where = root
		target := reflect.ValueOf(into).Elem()
		p.Read(ShapeOf(target.Type()), root, target)
	}
	return p, d.Errors()
}

// Reserved reports a key of the top level that is not looked at: it begins with x-.
func Reserved(key string) bool { return len(key) > 2 && strings.HasPrefix(key, "x-") }
