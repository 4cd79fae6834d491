package abatehttp

import (
	"container/list"
	"net/http"
	"strings"
	"sync"

	"github.com/abate-go/abate"
)

// PerHost returns a function for Transport.Select that gives each host (with its port, unless that is the scheme's own)
// a guard under the policy, named after the host. It keeps at most max guards, 1024 if max is zero or less, and forgets
// the one that was not used for the longest time: memory stays bounded whatever hosts are asked for. It fails when the
// policy is not valid. A choice costs a short lock and no allocation.
//
// The hosts are not told what is meant for services of your own, unless the policy's InternalHeaders says so.
//
// What is forgotten gives nothing away. The first max hosts have a retry budget each; hosts that come later, or again,
// share one budget, so that whatever hosts are asked for, all together send ratio × first attempts and max + 1 reserves
// of extra attempts at most. A guard with calls under way, or whose rate limit is not full again, is not forgotten;
// while no other can go, further hosts share a guard, "(other hosts)".
func PerHost(policy abate.Policy, max int) (func(*http.Request) *abate.Guard, error) {
	policy = policy.ForStrangers()
	shared, err := abate.New("(other hosts)", policy)
	if err != nil {
		return nil, err
	}
	if max <= 0 {
		max = 1024
	}
	later := policy
	if b := shared.Budget(); b != nil {
		later.Budget = b
	}
	h := &hostGuards{policy: policy, later: later, max: max, shared: shared, byHost: make(map[string]*list.Element)}
	return h.guard, nil
}

// looked is how many guards are looked at for one that can go. The others have their turn with the next hosts.
const looked = 8

// hostGuards is a bounded map of guards, the one used last in front.
type hostGuards struct {
	policy abate.Policy // of the first max hosts
	later  abate.Policy // of those after them, with the budget that they share
	max    int
	shared *abate.Guard // of the hosts that find no place

	mu     sync.Mutex
	made   int                      // guards so far
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
	p := h.policy
	if h.made >= h.max {
		p = h.later
	}
	if h.byUse.Len() >= h.max && !h.makeRoom() {
		return h.shared
	}
	g, err := abate.New(host, p)
	if err != nil {
		return nil // cannot be: PerHost has tried the policy
	}
	h.made++
	h.byHost[host] = h.byUse.PushFront(g)
	return g
}

// makeRoom forgets a guard that was not used for long, and reports whether one could go. Those that cannot go to the
// front, so that the next host finds others.
func (h *hostGuards) makeRoom() bool {
	for range min(looked, h.byUse.Len()) {
		e := h.byUse.Back()
		if g := e.Value.(*abate.Guard); g.Idle() {
			h.byUse.Remove(e)
			delete(h.byHost, g.Name())
			return true
		}
		h.byUse.MoveToFront(e)
	}
	return false
}

// endpoint is whom a request goes to, written in one way: lower case, without the dot that ends a full name and without
// the port that the scheme implies.
func endpoint(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	host := strings.ToLower(req.URL.Host)
	switch req.URL.Scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	if name, port, ok := strings.Cut(host, ":"); ok && strings.HasSuffix(name, ".") {
		return strings.TrimSuffix(name, ".") + ":" + port
	}
	return strings.TrimSuffix(host, ".")
}
