package httpdrill

import (
	"context"
	"net/http"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/engine"
)

// newGate makes what stands in front of a server. As in the simulation, the clients are on its own network and
// believed, nobody has to say a password, and a repeat is a request like any other. A limit for a fleet is that of its
// one replica.
func newGate(s *Server, p inbound.Protection, watch Watchers) (*inbound.Gate, *abatehttp.Handler, error) {
	p.TrustedPeers = []string{"127.0.0.0/8"}
	p.Authentication, p.Idempotency, p.Store, p.Fleet = inbound.Authentication{}, idempotency.Config{}, nil, nil
	p.RateLimit.Fleet = false
	p.Observer = gateRecorder{s}
	watch.adjustGate(s.spec.Name, &p)
	if p.Caller == "mtls" || p.Caller == "token" {
		p.Caller = "" // who it is, senderOf tells
	}
	g, err := inbound.NewGate(s.spec.Name, p)
	if err != nil {
		return nil, nil, err
	}
	watch.addGate(g)
	h := &abatehttp.Handler{Gate: g, Next: http.HandlerFunc(s.handle), Caller: senderOf}
	if p.RateLimit.Key != "" {
		h.Key = senderOf
	}
	return g, h, nil
}

// newOpenGate lets everything pass to a server, which then knows what an allowance is, as every service with Abate in
// it does. As in the simulation, without a gate of its own it does not know how long its callers wait.
func newOpenGate(s *Server) (http.Handler, error) {
	g, err := inbound.NewGate(s.spec.Name, inbound.Protection{TrustedPeers: []string{"127.0.0.0/8"}})
	if err != nil {
		return nil, err
	}
	h := &abatehttp.Handler{Gate: g, Next: http.HandlerFunc(s.handle)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del(timeLeft)
		h.ServeHTTP(w, r)
	}), nil
}

// senderOf is which of the clients sent a request. All have the same address; the idempotency key begins with their
// number.
func senderOf(r *http.Request) string {
	client, _, _ := strings.Cut(r.Header.Get("Idempotency-Key"), "-")
	return client
}

// gateRecorder notes what the gate of a server does.
type gateRecorder struct{ server *Server }

// ObserveGate is told by the gate.
func (r gateRecorder) ObserveGate(e inbound.GateEvent) {
	s := r.server
	switch {
	case e.Kind == inbound.RequestAdmitted:
		s.record.Admitted(s.index, s.since(), e.Delay)
	case e.Kind == inbound.RequestRefused && !e.Shadow && e.Reason != context.Canceled:
		_, code := abatehttp.RefusalStatus(&inbound.Refusal{Reason: e.Reason, Shed: e.Shed})
		s.record.TurnedAway(s.index, s.since(), endOfRefusal[code], e.Shed)
	}
}

// endOfRefusal is how a request ended that a gate refused with a code.
var endOfRefusal = map[string]engine.EndKind{"rate-limited": engine.RateLimited, "deadline": engine.Expired,
	"overloaded": engine.Overloaded}

// Admitted notes how long a gate let a request wait that it lets in now.
func (r *Recorder) Admitted(service int, now, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, w, _ := r.bin(now)
	r.record.Services[service].GateWait[w].Add(int64(wait))
}

// TurnedAway notes what a gate refused, and why.
func (r *Recorder) TurnedAway(service int, now time.Duration, end engine.EndKind, why shed.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, _, ok := r.bin(now)
	if !ok {
		return
	}
	s := &r.record.Services[service]
	s.Rejected[b]++
	if end == engine.RateLimited {
		s.Limited[b]++
		return
	}
	s.Shed[b]++
	s.Reasons[why]++
}

// sample looks at the gate and at the memory in use, once in every bin, until stop is closed.
func (a *act) sample(stop <-chan struct{}) {
	memory := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	gate, bin := a.servers[a.front][0].gate, a.record.record.Bin
	for going := true; going; {
		going = drill.Sleep(bin-a.since()%bin, stop) // and one last look, at the end
		limit := 0
		if gate != nil {
			limit = gate.State().Shed.Limit
		}
		metrics.Read(memory)
		a.record.Sample(a.front, a.since(), limit, memory[0].Value.Uint64()+memory[1].Value.Uint64())
	}
}

// Sample notes how many requests a gate lets in at once, and how much memory the program has in use. A bin in which
// nobody came to look, because the machine stood still, has the limit that was found next: no limit at all it never
// had.
func (r *Recorder) Sample(service int, now time.Duration, limit int, memory uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	limits := r.record.Services[service].Limit
	for ; r.sampled < len(limits) && time.Duration(r.sampled)*r.record.Bin <= now; r.sampled++ {
		limits[r.sampled] = uint32(limit)
	}
	if _, w, ok := r.bin(now); ok {
		r.memory[w] = max(r.memory[w], memory)
	}
}

// Responded notes how long a request took that was done with success, from its arrival.
func (r *Recorder) Responded(service int, now, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, w, _ := r.bin(now)
	r.record.Services[service].Response[w].Add(int64(took))
}
