package topology

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Unbounded is a number of tries without a limit.
const Unbounded = math.MaxInt32

// Origin says where a value comes from.
type Origin uint8

// The origins. Absent is the zero value: nothing is set, and the format has no default for it.
const (
	Absent    Origin = iota
	Written          // At is where
	Inherited        // from a block further out; At is where it is written, Why names the block
	Default          // of a product; Why names it and its version, At is the block that leaves the value out
	Assumed          // by us, or told on the command line; Why says the reason
	Unknown          // it is there, but could not be read; Why says the reason
)

// A Scalar is what a Value can hold. A duration of 0 means no limit.
type Scalar interface {
	int | float64 | bool | string | time.Duration
}

// Value is one setting with the place it comes from. The zero Value is absent.
type Value[T Scalar] struct {
	V      T // meaningless when the value is Absent or Unknown
	Origin Origin
	At     Position
	Why    string // of all origins but Written and Absent; one line
}

// Write returns a value that stands in a file at a place.
func Write[T Scalar](v T, at Position) Value[T] { return Value[T]{V: v, Origin: Written, At: at} }

// Inherit returns a value that a block leaves out and another, from, gives.
func Inherit[T Scalar](v T, at Position, from string) Value[T] {
	return Value[T]{V: v, Origin: Inherited, At: at, Why: from}
}

// DefaultOf returns a value that a product gives by default where a block, at, leaves it out. product names the version
// too: "Istio 1.24 and later".
func DefaultOf[T Scalar](v T, product string, at Position) Value[T] {
	return Value[T]{V: v, Origin: Default, At: at, Why: product}
}

// Assume returns a value that no file says.
func Assume[T Scalar](v T, why string) Value[T] { return Value[T]{V: v, Origin: Assumed, Why: why} }

// NotKnown returns a value that is there but could not be read.
func NotKnown[T Scalar](why string, at Position) Value[T] {
	return Value[T]{Origin: Unknown, At: at, Why: why}
}

// Get returns the value, and reports whether there is one: it is neither absent nor unknown.
func (v Value[T]) Get() (T, bool) {
	if v.Origin == Absent || v.Origin == Unknown {
		var zero T
		return zero, false
	}
	return v.V, true
}

// Or returns the value, or other when there is none.
func (v Value[T]) Or(other T) T {
	if got, ok := v.Get(); ok {
		return got
	}
	return other
}

// IsZero reports whether the value is absent.
func (v Value[T]) IsZero() bool { return v.Origin == Absent }

// IsUnknown reports whether the value is there but could not be read.
func (v Value[T]) IsUnknown() bool { return v.Origin == Unknown }

// Source says in words where the value comes from: "app.yaml:12:7", "default of Istio 1.24 and later".
func (v Value[T]) Source() string {
	switch v.Origin {
	case Written:
		return v.At.String()
	case Inherited:
		return join("inherited from "+v.Why, v.At)
	case Default:
		return join("default of "+v.Why, v.At)
	case Assumed:
		return "assumed: " + v.Why
	case Unknown:
		return join("unknown: "+v.Why, v.At)
	}
	return ""
}

func join(words string, at Position) string {
	if at.IsZero() {
		return words
	}
	return words + "; " + at.String()
}

// String is the value and its source: "3 (app.yaml:12:7)". It is how the YAML form writes a value.
func (v Value[T]) String() string {
	if v.Origin == Absent {
		return ""
	}
	text, source := "unknown", v.Source()
	if v.Origin != Unknown {
		text = format(v.V)
	} else {
		source = strings.TrimPrefix(source, "unknown: ")
	}
	if source == "" {
		return text
	}
	return text + " (" + source + ")"
}

// MarshalText is String.
func (v Value[T]) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what String writes. A value alone, without a source, is Written at no place.
func (v *Value[T]) UnmarshalText(text []byte) error {
	word, source := strings.TrimSpace(string(text)), ""
	if i := strings.Index(word, " ("); i >= 0 && strings.HasSuffix(word, ")") {
		word, source = strings.TrimSpace(word[:i]), word[i+2:len(word)-1]
	}
	got := Value[T]{Origin: Written}
	if word == "unknown" {
		got.Origin = Unknown
		got.Why, got.At = split(source)
		*v = got
		return nil
	}
	if err := parse(word, &got.V); err != nil {
		return err
	}
	if err := got.readSource(source); err != nil {
		return err
	}
	*v = got
	return nil
}

func (v *Value[T]) readSource(source string) error {
	for _, o := range []struct {
		prefix string
		origin Origin
	}{{"inherited from ", Inherited}, {"default of ", Default}, {"assumed: ", Assumed}} {
		if rest, ok := strings.CutPrefix(source, o.prefix); ok {
			v.Origin = o.origin
			if v.Why, v.At = rest, (Position{}); o.origin != Assumed {
				v.Why, v.At = split(rest)
			}
			return nil
		}
	}
	if source == "" {
		return nil
	}
	return v.At.UnmarshalText([]byte(source))
}

// split takes "words; file:1:2" apart.
func split(s string) (words string, at Position) {
	if i := strings.LastIndex(s, "; "); i >= 0 && at.UnmarshalText([]byte(s[i+2:])) == nil && at.Line > 0 {
		return s[:i], at
	}
	return s, Position{}
}

func format[T Scalar](v T) string {
	switch x := any(v).(type) {
	case int:
		if x == Unbounded {
			return "unbounded"
		}
		return strconv.Itoa(x)
	case time.Duration:
		if x == 0 {
			return "none"
		}
		return x.String()
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

func parse[T Scalar](word string, into *T) (err error) {
	switch p := any(into).(type) {
	case *int:
		if word == "unbounded" {
			*p = Unbounded
			return nil
		}
		if *p, err = strconv.Atoi(word); err != nil || *p < 0 {
			return fmt.Errorf("%q is no whole number; write for example 3, unbounded or unknown", word)
		}
	case *float64:
		if *p, err = strconv.ParseFloat(word, 64); err != nil || !(*p >= 0) || math.IsInf(*p, 0) {
			return fmt.Errorf("%q is no number; write for example 0.2 or unknown", word)
		}
	case *bool:
		switch word {
		case "true", "yes":
			*p = true
		case "false", "no":
			*p = false
		default:
			return fmt.Errorf("%q is neither true nor false; write true, false or unknown", word)
		}
	case *time.Duration:
		if word == "none" {
			*p = 0
			return nil
		}
		if *p, err = time.ParseDuration(word); err != nil || *p < 0 {
			return fmt.Errorf("%q is no duration; write for example 250ms, none or unknown", word)
		}
	case *string:
		*p = word
	}
	return nil
}
