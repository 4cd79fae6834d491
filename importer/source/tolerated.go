package source

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// Tolerated is Scalar for programs that leave out a value they cannot read: then it is absent, with a remark. who is
// the program, and subject what the remark is about.
func Tolerated[T topology.Scalar](n Node, who, subject string, parse func(string) (T, error)) (topology.Value[T],
	[]topology.Remark,
) {
	if !n.Exists() || n.Text() == "" && !n.IsMap() && !n.IsList() {
		return topology.Value[T]{}, nil
	}
	v, remarks := Scalar(n, parse)
	if v.IsUnknown() && Template(n.Text()) == "" {
		return topology.Value[T]{}, []topology.Remark{{Rule: "F601", At: n.At(), Subject: subject,
			Text: who + " cannot read this, so its default holds: " + v.Why,
			Fix:  "write a whole number without a unit, in quotes"}}
	}
	return v, remarks
}

// Whole returns a function that reads a whole number of a unit, in which a bare number is and no other may be.
func Whole(unit time.Duration, name string) func(string) (time.Duration, error) {
	return func(word string) (time.Duration, error) {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 0 || n > int(time.Duration(1<<62)/unit) {
			return 0, fmt.Errorf("%q is no whole number of %s", word, name)
		}
		return time.Duration(n) * unit, nil
	}
}
