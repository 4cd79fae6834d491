package ingress

import (
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// read is source.Scalar, whose remarks are added to the form's.
func read[T topology.Scalar](r *reader, n source.Node, parse func(string) (T, error)) topology.Value[T] {
	v, more := source.Scalar(n, parse)
	r.form.Remarks = append(r.form.Remarks, more...)
	return v
}

// dropped reads a value that its controller leaves out if it cannot read it.
func dropped[T topology.Scalar](r *reader, n source.Node, subject string, parse func(string) (T, error),
) topology.Value[T] {
	v, more := source.Tolerated(n, ingressNginx, subject, parse)
	r.form.Remarks = append(r.form.Remarks, more...)
	return v
}

func or[T topology.Scalar](v, other topology.Value[T]) topology.Value[T] {
	if v.IsZero() {
		return other
	}
	return v
}
