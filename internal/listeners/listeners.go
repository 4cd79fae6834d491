// Package listeners makes one observer of several.
package listeners

import (
	"reflect"
	"slices"
)

// Link is an observer and those behind it. It is a value, so that two of them compare by whom they tell.
type Link[O any] struct{ First, Rest O }

// Parts returns the observer and those behind it.
func (l Link[O]) Parts() (first, rest O) { return l.First, l.Rest }

// Chain makes the list from its end. join makes an observer of a Link.
func Chain[O any](all []O, join func(Link[O]) O) (list O) {
	for _, o := range slices.Backward(all) {
		list = prepend(o, list, join)
	}
	return list
}

// prepend puts o, or what it is a list of, before a list.
func prepend[O any](o, list O, join func(Link[O]) O) O {
	first, rest, several := apart(o)
	switch {
	case several:
		return prepend(first, prepend(rest, list, join), join)
	case any(o) == nil || Reaches(list, o):
		return list
	case any(list) == nil:
		return o
	}
	return join(Link[O]{o, list})
}

// Reaches reports whether o is in a list.
func Reaches[O any](list, o O) bool {
	if first, rest, several := apart(list); several {
		return Reaches(first, o) || Reaches(rest, o)
	}
	return reflect.ValueOf(o).Comparable() && any(list) == any(o)
}

func apart[O any](o O) (first, rest O, several bool) {
	l, several := any(o).(interface{ Parts() (O, O) })
	if several {
		first, rest = l.Parts()
	}
	return first, rest, several
}
