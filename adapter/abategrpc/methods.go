package abategrpc

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
)

// method is what a Client knows about one method.
type method struct {
	name       string
	guard      *abate.Guard // unless the Client has a Select
	waits      bool         // for a connection
	idempotent bool         // declared so in its service's description
	consent    atomic.Pointer[consent]
	told       toldCache
}

// consent is whether a policy lets a method be repeated. It is remembered, since looking through a policy's lists is
// slow.
type consent struct {
	policy *abate.Policy
	again  bool
}

// repeatable reports whether the method may be called twice for one intent, under a guard's policy.
func (m *method) repeatable(p *abate.Policy, keyed bool) bool {
	if keyed || m.idempotent {
		return true
	}
	c := m.consent.Load()
	if c == nil || c.policy != p {
		c = &consent{p, hops.RepeatableCall(p, m.name, false)}
		m.consent.Store(c)
	}
	return c.again
}

// maxMethods bounds the memory of a Client that is given names from outside, as in a proxy. Who calls more different
// methods pays for finding out about them anew.
const maxMethods = 2048

// methodCache finds methods by name without an allocation. It is copied when it grows: methods are few, and all called
// early.
type methodCache struct {
	known atomic.Pointer[map[string]*method]
	mu    sync.Mutex // held by who adds one
}

func (c *Client) method(name string) *method {
	if known := c.methods.known.Load(); known != nil {
		if m, ok := (*known)[name]; ok {
			return m
		}
	}
	return c.addMethod(name)
}

func (c *Client) addMethod(name string) *method {
	c.methods.mu.Lock()
	defer c.methods.mu.Unlock()
	next := make(map[string]*method)
	if known := c.methods.known.Load(); known != nil {
		if m, ok := (*known)[name]; ok {
			return m
		}
		if len(*known) >= maxMethods {
			return c.newMethod(name)
		}
		next = maps.Clone(*known)
	}
	m := c.newMethod(name)
	next[strings.Clone(name)] = m
	c.methods.known.Store(&next)
	return m
}

func (c *Client) newMethod(name string) *method {
	m := &method{name: name, guard: c.Guard, waits: c.waits, idempotent: declaredIdempotent(name)}
	for _, o := range c.Methods {
		for _, pattern := range o.Methods {
			if pattern == name {
				m.guard, m.waits = o.Guard, o.WaitForReady
				return m
			}
			if hops.Covers(pattern, name) {
				m.guard, m.waits = o.Guard, o.WaitForReady
			}
		}
	}
	return m
}

// declaredIdempotent reports whether the description of a method that is linked into this program says
// idempotency_level = IDEMPOTENT or NO_SIDE_EFFECTS.
func declaredIdempotent(name string) bool {
	full := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", "."))
	if !full.IsValid() {
		return false
	}
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(full)
	if err != nil {
		return false
	}
	return idempotent(d)
}

func idempotent(d protoreflect.Descriptor) bool {
	m, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		return false
	}
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	if !ok {
		return false
	}
	level := options.GetIdempotencyLevel() // a nil one says unknown
	return level == descriptorpb.MethodOptions_IDEMPOTENT || level == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}
