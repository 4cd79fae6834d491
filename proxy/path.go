package proxy

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/abate-go/abate/internal/pathform"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/h1"
)

// settlePath gives the path of the request the form in which it is matched and in which the service gets it. It works
// in place: the form is never longer. doubt is why two servers may read it in two ways, if such a request is refused
// where it came in.
func (x *exchange) settlePath() (doubt string) {
	listen := x.client.origin().door.name
	rule := x.plane.policies.PathRule(listen)
	if rule == policyfile.Keep {
		return ""
	}
	path, query := x.req.Path, []byte(nil)
	if i := bytes.IndexByte(path, '?'); i >= 0 {
		path, query = path[:i], path[i:]
	}
	if rule == policyfile.Refuse {
		if doubt = pathform.Doubt(path); doubt != "" {
			return doubt
		}
	}
	canonical := pathform.Canonical(path)
	if rule == policyfile.Refuse && x.plane.policies.CaseDecides(listen, text(x.req.Host), text(canonical)) {
		return "letters of another case than a route's"
	}
	if len(canonical) < len(path) {
		x.req.Path = append(canonical, query...) // behind it, where it has room
	}
	return pathform.Disguise(canonical)
}

// pathReason is the reason of an answer to a path in doubt.
const pathReason = "ambiguous-path"

// refusePath answers a request whose path is in doubt.
func (x *exchange) refusePath(doubt string) {
	x.problem(problem{Status: http.StatusBadRequest, Reason: pathReason,
		Detail: "the path holds " + doubt + ": servers differ in what that means; write it in its plain form (ambiguousPaths in the policy file says what is taken)"})
}

// find finds where the request goes. In a request to a forward proxy the authority of the absolute URI decides,
// unless it is the proxy's own.
func (x *exchange) find() bool {
	from, host := x.client.origin(), text(x.req.Host)
	path := text(x.req.Path)
	if i := bytes.IndexByte(x.req.Path, '?'); i >= 0 {
		path = path[:i]
	}
	p := x.plane
	switch {
	case from.door.name != "":
		return p.services.enterRoute(&x.route, from.door.name, host, path)
	case x.req.Scheme != nil && !from.isSelf(&x.req):
		d, ok := p.policies.Forward(text(x.req.Scheme), host, path)
		return ok && p.services.leaveBy(&x.route, &d)
	}
	d, ok := p.policies.Route(host, path)
	return ok && p.services.leaveBy(&x.route, &d)
}

// isSelf reports whether an absolute URI names the address at which the proxy got it.
func (o *origin) isSelf(r *h1.Request) bool {
	host := text(r.Host)
	if host == o.self {
		return true
	}
	port, ok := strings.CutPrefix(host, "localhost:")
	return ok && strings.HasSuffix(o.self, ":"+port)
}
