package haproxy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// find returns the last line of a section, or of the defaults that it inherits, that begins with some words, and the
// section that has it.
func (s *section) find(words ...string) (line, *section) {
	for at := s; at != nil; at = at.defaults {
		for i := len(at.lines) - 1; i >= 0; i-- {
			if at.lines[i].is(words...) {
				return at.lines[i], at
			}
		}
	}
	return nil, nil
}

// value returns the argument after some words, or the default.
func value[T topology.Scalar](in *instance, s *section, parse func(string) (T, error), byDefault T, words ...string,
) topology.Value[T] {
	l, from := s.find(words...)
	if l == nil {
		return topology.DefaultOf(byDefault, in.product(), s.at)
	}
	w, ok := l.arg(len(words))
	if !ok {
		return topology.NotKnown[T](strings.Join(words, " ")+" has no value", l[0].at)
	}
	v, remarks := source.Word(w.text, w.at, parse)
	in.form.Remarks = append(in.form.Remarks, remarks...)
	return inherit(v, s, from)
}

func inherit[T topology.Scalar](v topology.Value[T], s, from *section) topology.Value[T] {
	if from != s && v.Origin == topology.Written {
		return topology.Inherit(v.V, v.At, strings.TrimSpace(from.kind+" "+from.name))
	}
	return v
}

// option returns whether an option is on: what stands last holds, "option x" or "no option x".
func (in *instance) option(s *section, name string) topology.Value[bool] {
	for at := s; at != nil; at = at.defaults {
		for i := len(at.lines) - 1; i >= 0; i-- {
			switch l := at.lines[i]; {
			case l.is("option", name):
				return inherit(topology.Write(true, l[0].at), s, at)
			case l.is("no", "option", name):
				return inherit(topology.Write(false, l[0].at), s, at)
			}
		}
	}
	return topology.DefaultOf(false, in.product(), s.at)
}

var units = []struct {
	name string
	unit time.Duration
}{{"us", time.Microsecond}, {"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour},
	{"d", 24 * time.Hour}}

// duration reads a time as HAProxy writes it: 500, 500ms, 5s. A number alone is milliseconds.
func duration(word string) (time.Duration, error) {
	digits := strings.TrimRight(word, "smuhd")
	n, err := strconv.ParseInt(digits, 10, 32)
	unit := time.Duration(0)
	if name := word[len(digits):]; name == "" {
		unit = time.Millisecond
	} else {
		for _, u := range units {
			if u.name == name {
				unit = u.unit
			}
		}
	}
	if err != nil || n < 0 || unit == 0 || n > int64(time.Hour*24*365*100/unit) {
		return 0, fmt.Errorf("%q is no time such as 500ms, 5s or 1m", word)
	}
	return time.Duration(n) * unit, nil
}
