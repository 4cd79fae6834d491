package breaker

import "sync/atomic"

// row counts failures in a row. An answer that begins well shows that the dependency answers: it ends a row of calls
// that failed. Whether answers are whole it does not show: each of them may break off, and at any moment another one
// has just begun. So a row of those that broke off goes on until one has come to its end, or a call without such an
// answer has succeeded.
//
// Both numbers are in one word, so that a success looks at one: in the lower half are the calls that have failed since
// a success or the beginning of an answer, in the upper half the answers that broke off since a success or the end of
// an answer.
type row struct{ counts atomic.Uint64 }

const (
	oneCall   = 1
	oneAnswer = 1 << 32
)

// length is how many failures FailureThreshold sees.
func (r *row) length() int64 {
	n := r.counts.Load()
	return int64(n%oneAnswer + n/oneAnswer)
}

// failed notes a call that failed.
func (r *row) failed() { r.counts.Add(oneCall) }

// brokeOff notes an answer that broke off.
func (r *row) brokeOff() { r.counts.Add(oneAnswer) }

// end notes a success; whole: not only the beginning of one.
func (r *row) end(whole bool) {
	if n := r.counts.Load(); n != 0 {
		r.cut(n, whole)
	}
}

// cut ends a row that stood at n.
func (r *row) cut(n uint64, whole bool) {
	switch {
	case whole:
		r.counts.Store(0)
	case n%oneAnswer != 0:
		r.counts.And(^uint64(oneAnswer - 1))
	}
}

func (r *row) take(old *row) { r.counts.Store(old.counts.Load()) }
