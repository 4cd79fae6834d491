package proxy

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"github.com/abate-go/abate/internal/pathform"
	"github.com/abate-go/abate/policyfile"
)

// settlePath gives the path of the request the form in which it is matched and in which the service gets it. It works
// in place: the form is never longer. doubt is why two servers may read it in two ways, if such a request is refused
// where it came in. The path of a request to a host that no service has stays as it came: nothing is matched with it.
func (r *request) settlePath() (doubt string) {
	listen := r.client.origin().listen
	rule := r.plane.policies.PathRule(listen)
	if rule == policyfile.Keep || r.isForStranger() {
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

// isForStranger reports whether the request names a host that no service has, and may be passed on.
func (r *request) isForStranger() bool {
	from, p, authority := r.client.origin(), r.plane, text(r.Host)
	switch {
	case from.listen != "" || p.outside.lists(p.config.PassThrough).pass.Empty():
		return false
	case r.Scheme != nil && !from.isSelf(&r.Request):
	case from.tunnelled == nil && from.original.IsValid():
		authority = from.meant(authority)
		if _, listed := p.policies.Listed(from.original.String()); listed {
			return false
		}
	default:
		return false
	}
	if _, listed := p.policies.Listed(authority); listed {
		return false
	}
	if _, ok := p.policies.Forward(cmp.Or(text(r.Scheme), "http"), authority, "/"); ok {
		return false // as for most without a port: what follows costs memory
	}
	if at := strings.LastIndexByte(authority, ':'); at < 0 || strings.IndexByte(authority[at:], ']') >= 0 {
		var room [300]byte
		_, port := (&target{scheme: text(r.Scheme), authority: authority}).hostPort()
		full := strconv.AppendUint(append(append(room[:0], authority...), ':'), uint64(port), 10)
		if _, listed := p.policies.Listed(text(full)); listed {
			return false
		}
	}
	_, pinned := p.pinned.Load(authority)
	return !pinned
}

// meant is the service of the listener at which the request came in, or for which it was meant; "" if that is for all.
func meant(r *request) string {
	if service := r.client.origin().service; service != "" {
		return service
	}
	service, _ := r.plane.pinned.Load(text(r.Host))
	name, _ := service.(string)
	return name
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
		return r.leaveFor(target{scheme: text(r.Scheme), authority: host}, path)
	case from.tunnelled != nil:
		return r.leaveFor(target{scheme: "http", authority: text(from.tunnelled)}, path)
	case from.original.IsValid():
		return r.leaveFor(target{scheme: "http", authority: from.meant(host), to: from.original}, path)
	case from.service != "":
		return r.leaveFrom(from.service)
	}
	d, ok := p.policies.Route(host, path)
	return ok && p.services.leaveBy(&r.route, &d)
}

// leaveFrom has a request go to the service whose calls alone come in at a door.
func (r *request) leaveFrom(service string) bool {
	d, ok := r.plane.policies.Service(service)
	d.Label = service
	return ok && r.plane.services.leaveBy(&r.route, &d)
}

// leaveFor finds where a request goes that names its host: to a service, or, if the file lets it, to the host itself.
func (r *request) leaveFor(to target, path string) bool {
	p := r.plane
	d, ok := p.policies.Forward(to.scheme, to.authority, path)
	if service, pinned := p.pinned.Load(to.authority); pinned && !ok {
		return r.leaveFrom(service.(string))
	}
	if !ok && to.to.IsValid() { // perhaps the file has the address
		d, ok = p.policies.Forward(to.scheme, to.to.String(), path)
	}
	if ok {
		return p.services.leaveBy(&r.route, &d)
	}
	lists := p.outside.lists(p.config.PassThrough)
	return !lists.pass.Empty() && p.outside.passOn(&r.route, lists, to)
}
