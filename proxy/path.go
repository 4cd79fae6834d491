package proxy

import (
	"bytes"

	"github.com/abate-go/abate/internal/pathform"
	"github.com/abate-go/abate/policyfile"
)

// settlePath gives the path of the request the form in which it is matched and in which the service gets it. It works
// in place: the form is never longer. doubt is why two servers may read it in two ways, if such a request is refused
// where it came in.
func (r *request) settlePath() (doubt string) {
	listen := r.client.origin().listen
	rule := r.plane.policies.PathRule(listen)
	if rule == policyfile.Keep {
		return ""
	}
	path, query := r.Path, []byte(nil)
	if i := bytes.IndexByte(path, '?'); i >= 0 {
		path, query = path[:i], path[i:]
	}
	if rule == policyfile.Refuse {
		if doubt = pathform.Doubt(path); doubt != "" {
			return doubt
		}
	}
	canonical := pathform.Canonical(path)
	if rule == policyfile.Refuse && r.plane.policies.CaseDecides(listen, text(r.Host), text(canonical)) {
		return "letters of another case than a route's"
	}
	if len(canonical) < len(path) {
		r.Path = append(canonical, query...) // behind it, where it has room
	}
	return pathform.Disguise(canonical)
}

// find finds where the request goes. In a request to a forward proxy the authority of the absolute URI decides,
// unless it is the proxy's own.
func (r *request) find() bool {
	from, host := r.client.origin(), text(r.Host)
	path := text(r.Path)
	if i := bytes.IndexByte(r.Path, '?'); i >= 0 {
		path = path[:i]
	}
	p := r.plane
	switch {
	case from.listen != "":
		return p.services.enterRoute(&r.route, from.listen, host, path)
	case r.Scheme != nil && !from.isSelf(&r.Request):
		d, ok := p.policies.Forward(text(r.Scheme), host, path)
		return ok && p.services.leaveBy(&r.route, &d)
	}
	d, ok := p.policies.Route(host, path)
	return ok && p.services.leaveBy(&r.route, &d)
}
