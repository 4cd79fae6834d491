package balance

import "unsafe"

// EndpointSize is how many bytes attempts on one endpoint write to.
const EndpointSize = unsafe.Sizeof(hot{})

// WithLock runs f while the lock is taken: what takes it, too, never returns.
func (b *Balancer) WithLock(f func()) {
	b.line.mu.Lock()
	defer b.line.mu.Unlock()
	f()
}

// In is how many endpoints are in the choice, as one Pick sees them.
func (b *Balancer) In() int { return len(b.choice.Load().in) }
