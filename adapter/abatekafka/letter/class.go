package letter

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/abate-go/abate"
)

// Class returns the class of an error: what its Class() string method says, if it or one that it wraps has one, else
// the type of its innermost error that has a type of its own, "*json.SyntaxError"; else "error". Of an error by a guard
// it is that of the last attempt, or without any attempt the reason, "circuit-open". nil has the class "".
func Class(err error) (class string) {
	if err == nil {
		return ""
	}
	class = "error"
	defer func() { _ = recover() }() // a nil pointer in an error, say: it must not lose the message that failed
	for at := err; at != nil; at = inner(at) {
		if name, of := typeOf(at); of {
			class = name
		}
	}
	var named interface {
		error
		Class() string
	}
	if errors.As(err, &named) {
		if s := named.Class(); s != "" {
			class = s
		}
	}
	return Cut(oneLine(class), MaxClass)
}

// typeOf is the type of an error, if it says anything: many are only a text or a wrapper.
func typeOf(err error) (name string, of bool) {
	if reason := abate.Reason(err); reason != nil {
		guarded, _ := err.(*abate.Error)
		return strings.ReplaceAll(fmt.Sprint(reason), " ", "-"), guarded == nil || guarded.Err == nil
	}
	switch name = fmt.Sprintf("%T", err); name {
	case "*errors.errorString", "*errors.joinError", "*fmt.wrapError", "*fmt.wrapErrors",
		"*errors.fundamental", "*errors.withStack", "*errors.withMessage": // the last three are of github.com/pkg/errors
		return "", false
	}
	return name, !isWrapper(reflect.TypeOf(err))
}

// isWrapper reports whether a type is one of the guards' own, which wrap what others say.
func isWrapper(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == reflect.TypeFor[abate.Error]().PkgPath() || t == reflect.TypeFor[abate.FieldError]()
}

// inner is what an error wraps: the first of several, the attempt's error of a guard's.
func inner(err error) error {
	var guarded *abate.Error
	if abate.Reason(err) != nil && errors.As(err, &guarded) {
		return guarded.Err
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return e.Unwrap()
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Text is the text of an error: of one by a guard that of the last attempt, because the guard's own has times in it
// that make every message different. An error whose Error method panics has a text as well.
func Text(err error) string {
	for {
		guarded, ok := err.(*abate.Error)
		if !ok || guarded.Err == nil {
			break
		}
		err = guarded.Err
	}
	if err == nil {
		return ""
	}
	return fmt.Sprint(err)
}

// Trace is the stack of an error: what the innermost one with a Trace() string method says, or what the innermost that
// can be printed with its stack, as those of github.com/pkg/errors, prints for %+v. Empty if there is none.
func Trace(err error) (trace string) {
	defer func() { _ = recover() }() // as in Class
	for ; err != nil; err = inner(err) {
		switch e := err.(type) {
		case interface{ Trace() string }:
			trace = e.Trace()
		case fmt.Formatter:
			if s := fmt.Sprintf("%+v", err); strings.Contains(s, "\n") {
				trace = s
			}
		}
	}
	return trace
}
