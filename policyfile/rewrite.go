package policyfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/abate-go/abate/internal/check"
	"github.com/abate-go/abate/internal/pathform"
	"github.com/abate-go/abate/internal/strictyaml"
)

// Rewrite is what a route makes of the path of a request: it takes its prefix off and puts another in its place. The
// zero Rewrite leaves the path as it is.
type Rewrite struct {
	cut int    // bytes of the path in the form in which it was matched
	put string // without a slash at its end
}

// rewriting is the Rewrite of a route whose path is prefix in the form in which requests are matched.
func (r Route) rewriting(prefix string) Rewrite {
	if r.Rewrite == "" {
		return Rewrite{}
	}
	return Rewrite{len(prefix), strings.TrimRight(r.Rewrite, "/")}
}

// Nothing reports whether the path stays as it is.
func (w Rewrite) Nothing() bool { return w.cut == 0 }

// Append writes a path, with its query, as the service gets it. path is one that was matched by the route, in the form
// in which it was: in that form it has no empty segments, so what is left of it begins with one slash. It allocates
// nothing if dst has room.
func (w Rewrite) Append(dst, path []byte) []byte {
	if w.cut > len(path) { // cannot be: the route has matched
		return append(dst, path...)
	}
	rest := path[w.cut:]
	if w.put == "" && (len(rest) == 0 || rest[0] != '/') {
		dst = append(dst, '/')
	}
	return append(append(dst, w.put...), rest...)
}

// Strip is Append for a rewrite that only takes off: it copies nothing. ok is false if something is put in place.
func (w Rewrite) Strip(path []byte) (rest []byte, ok bool) {
	if w.put != "" || w.cut >= len(path) || path[w.cut] != '/' {
		return nil, false
	}
	return path[w.cut:], true
}

// checkRoute finds what is wrong with a route.
func checkRoute(v *check.Errors, i int, r Route) {
	v.Route(i, r.Host, r.Path)
	at, shown := fmt.Sprintf("routes[%d].rewrite", i), strconv.Quote(r.Rewrite)
	switch {
	case r.Rewrite == "":
	case strings.Trim(r.Path, "/") == "":
		v.Add(at, "there is no path whose prefix could be replaced", "give the route a path, or remove rewrite")
	case r.Rewrite[0] != '/':
		v.Add(at, shown+" does not begin with /", `write "/" to strip the prefix, or for example "/v2"`)
	case !plainPath(r.Rewrite):
		v.Add(at, shown+" is not a path in its plain form", "write it without a query, dots between slashes, doubled "+
			"slashes, semicolons, and escapes that are not needed")
	}
}

// plainPath reports whether a path is as a matched one is, and everybody reads it alike.
func plainPath(p string) bool {
	for _, c := range []byte(p) {
		if c <= ' ' || c >= 0x7f || c == '?' || c == '#' {
			return false
		}
	}
	return string(pathform.Canonical([]byte(p))) == p && pathform.Doubt([]byte(p)) == "" &&
		pathform.Disguise([]byte(p)) == ""
}

// rewrites reports routes that rewrite paths which nobody has put into one form: what is left of such a path could mean
// something else than the whole. readers are those of the services, and then those of protect.
func (d *decoder) rewrites(f *File, readers []*reader) {
	const fix = "remove rewrite, or ambiguousPaths: keep"
	report := func(r *reader, routes []Route) {
		for i := range routes {
			if routes[i].Rewrite != "" {
				r.Add(fmt.Sprintf("routes[%d].rewrite", i), strictyaml.Quote(routes[i].Rewrite)+
					" has no sure meaning where paths are kept as they come", fix)
			}
		}
	}
	for i := range f.Services {
		if f.AmbiguousPaths == Keep && i < len(readers) {
			report(readers[i], f.Services[i].Policy.Routes)
		}
	}
	for i := range f.Protect {
		if at := len(f.Services) + i; f.Protect[i].Protection.AmbiguousPaths == Keep && at < len(readers) {
			report(readers[at], f.Protect[i].Protection.Routes)
		}
	}
}
