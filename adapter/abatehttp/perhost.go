package abatehttp

import (
	"container/list"
	"net/http"
	"strings"
	"sync"

	"github.com/abate-go/abate"
)

// PerHost returns a function for Transport.Select that gives each host (with its port, unless that is the scheme's own)
// a guard under the policy, named after the host. It keeps at most max guards, 1024 if max is zero or less, and
// forgets the one that was not used for the longest time: memory stays bounded whatever hosts are asked for, and a
// forgotten host starts anew. It fails when the policy is not valid. A choice costs a short lock and no allocation.
func PerHost(policy abate.Policy, max int) (func(*http.Request) *abate.Guard, error) {
	if _, err := abate.New("per host", policy); err != nil {
		return nil, err
	}
	if max <= 0 {
		max = 1024
	}
	h := &hostGuards{policy: policy, max: max, byHost: make(map[string]*list.Element)}
	return h.guard, nil
}

// hostGuards is a bounded map of guards, the one used last in front.
type hostGuards struct {
	policy abate.Policy
	max    int

	mu     sync.Mutex
	byHost map[string]*list.Element // of *abate.Guard
	byUse  list.List
}

func (h *hostGuards) guard(req *http.Request) *abate.Guard {
	host := endpoint(req)
	if host == "" {
		return nil // the base says what is wrong with it
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.byHost[host]; ok {
		h.byUse.MoveToFront(e)
		return e.Value.(*abate.Guard)
	}
	g, err := abate.New(host, h.policy)
	if err != nil {
		return nil // cannot be: PerHost has tried the policy
	}
	h.byHost[host] = h.byUse.PushFront(g)
	if h.byUse.Len() > h.max {
		oldest := h.byUse.Remove(h.byUse.Back()).(*abate.Guard)
		delete(h.byHost, oldest.Name())
	}
	return g
}

// endpoint is whom a request goes to, written in one way: lower case, without the port that the scheme implies.
func endpoint(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	host := strings.ToLower(req.URL.Host)
	switch req.URL.Scheme {
	case "http":
		return strings.TrimSuffix(host, ":80")
	case "https":
		return strings.TrimSuffix(host, ":443")
	}
	return host
}
