package ingress

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// read is source.Scalar, whose remarks are added to the form's.
func read[T topology.Scalar](r *reader, n source.Node, parse func(string) (T, error)) topology.Value[T] {
	v, more := source.Scalar(n, parse)
	r.form.Remarks = append(r.form.Remarks, more...)
	return v
}

func or[T topology.Scalar](v, other topology.Value[T]) topology.Value[T] {
	if v.IsZero() {
		return other
	}
	return v
}

// dropped reads an annotation that its controller leaves out if it cannot read it: then it is absent, with a remark.
func dropped[T topology.Scalar](r *reader, n source.Node, subject, controller string, parse func(string) (T, error),
) topology.Value[T] {
	if n.Text() == "" && !n.IsMap() && !n.IsList() || source.Template(n.Text()) != "" {
		return read(r, n, parse)
	}
	v, err := parse(n.Text())
	if err != nil {
		r.remark("F601", n.At(), subject, controller+" cannot read this, so its default holds: "+err.Error(),
			"write a whole number without a unit, in quotes")
		return topology.Value[T]{}
	}
	return topology.Write(v, n.At())
}

// seconds reads a whole number of them.
func seconds(word string) (time.Duration, error) { return whole(word, time.Second) }

func whole(word string, unit time.Duration) (time.Duration, error) {
	n, err := strconv.Atoi(strings.TrimSpace(word))
	if err != nil || n < 0 || n > int(time.Duration(1<<62)/unit) {
		return 0, fmt.Errorf("%q is no whole number of %s", word, map[time.Duration]string{time.Second: "seconds",
			time.Millisecond: "milliseconds"}[unit])
	}
	return time.Duration(n) * unit, nil
}
