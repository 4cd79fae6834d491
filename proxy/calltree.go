package proxy

import (
	"strings"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/calltree"
)

// called is what an exchange knows of the call tree of a call that goes out.
type called struct {
	// the proxy decides about its repeats; a gateway may not, and leaves the fields about them as they are
	owner bool
	tree  *core.CallTree // nil if it is the first of its tree
	asks  bool           // its client sent an allowance, and is told what was made of it
}

// findTree finds the call tree that the request belongs to: that of the request whose service makes this call, else
// what it says itself. Most calls are the first of theirs, and know it at once.
func (r *request) findTree() {
	r.called = called{owner: r.in == nil && r.ownsRetries()}
	if r.in != nil {
		return
	}
	r.before = r.madeBefore()
	trees := &r.plane.trees
	a, id, ok := r.allowance()
	r.asks = ok
	switch {
	case !r.owner:
	case ok:
		if id != 0 {
			r.tree = trees.ByID(id, a)
		}
		if r.tree == nil {
			a.Owner = strings.Clone(a.Owner) // copies may outlive the request
			r.tree = core.NewCallTree(a)
		}
	case trees.Joined():
		n, keys := 0, [calltree.MaxTraces]uint64{}
		if r.has(hasTree) {
			n = calltree.Traces(r.Fields, &keys)
		}
		r.tree = trees.ByTrace(keys[:n])
	}
}

// allowance is what the request says that its tree has left: see calltree.AllowanceIn.
func (r *request) allowance() (least core.Allowance, id uint64, ok bool) {
	if !r.has(hasAllowance) {
		return core.Allowance{}, 0, false
	}
	return calltree.AllowanceIn(r.Fields)
}

// madeBefore is how many attempts of this call its client has made before, as it says: it retries by itself, and such
// an attempt earns no budget. What strangers say to a gateway means nothing.
func (r *request) madeBefore() (n int) {
	if r.plane.config.Gateway || !r.has(hasNumber) {
		return 0
	}
	for _, f := range r.Fields {
		if number, ok := hops.NumberOf(text(f.Name), text(f.Value)); ok {
			n = max(n, number-1)
		}
	}
	return n
}
