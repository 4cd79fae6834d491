package proxy

import (
	"strings"
	"sync/atomic"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/identity"
)

// post is a gate as requests need it: what can be worked out once for each load of the policy file.
type post struct {
	gate       *inbound.Gate
	protection *policyfile.Protection
	service    *service                  // behind it
	tokens     *watched[identity.Tokens] // nil when none are asked for
	caller     source                    // who a request is from
	bucket     source                    // what has a bucket of the rate limit
	priority   string                    // the name of the field that says it, in lower case
	priorityAs string                    // as the file writes it
	limit      []byte                    // RateLimit-Policy, a field of all answers
	unnames    bool                      // it takes off what strangers say about who a user is
}

// source is what tells requests apart.
type source struct {
	kind  sourceKind
	field string // the name of a header, in lower case
}

type sourceKind uint8

const (
	nobody sourceKind = iota // all are the same
	byIP
	byHeader
	byCertificate
	byToken
	byCaller
)

// sourceOf reads the words of the policy file, which has checked them.
func sourceOf(word string) source {
	switch word {
	case "ip":
		return source{kind: byIP}
	case "mtls":
		return source{kind: byCertificate}
	case "token":
		return source{kind: byToken}
	case "caller":
		return source{kind: byCaller}
	}
	if name, ok := strings.CutPrefix(word, "header:"); ok {
		return source{byHeader, strings.ToLower(name)}
	}
	return source{}
}

// watchpost is the post of a gate under the load of the file that is in force.
type watchpost struct {
	gate    *inbound.Gate
	current atomic.Pointer[post] // nil before the first request
}

// addGate makes what belongs to a gate before its first request, so that metrics show it.
func (l *services) addGate(g *inbound.Gate) *watchpost {
	if w, ok := l.posts.Load(g); ok {
		return w.(*watchpost)
	}
	w, loaded := l.posts.LoadOrStore(g, &watchpost{gate: g})
	if !loaded {
		l.metrics.AddGate(g)
	}
	return w.(*watchpost)
}

// postOf is the post for requests that came in at e.
func (l *services) postOf(e *policyfile.Entrance, s *service) *post {
	w := l.addGate(e.Gate)
	if before := w.current.Load(); before != nil && before.protection == e.Protection {
		return before
	}
	now := l.newPost(e, s)
	w.current.Store(now)
	return now
}

func (l *services) newPost(e *policyfile.Entrance, s *service) *post {
	t := e.Protection
	o := &post{
		gate: e.Gate, protection: t, service: s, tokens: l.secrets.tokensIn(t.Authentication),
		caller: sourceOf(t.Caller), bucket: sourceOf(t.RateLimit.Key),
		priority: strings.ToLower(t.Priority.Header), priorityAs: t.Priority.Header,
		unnames: t.IdentityHeaders == "remove",
	}
	if t.RateLimit.Enabled() {
		o.limit = abatehttp.AppendRateLimitPolicy([]byte("RateLimit-Policy: "), t.RateLimit.Config)
		o.limit = append(o.limit, "\r\n"...)
	}
	return o
}
