package balance

import "unsafe"

// EndpointSize is how many bytes attempts on one endpoint write to.
const EndpointSize = unsafe.Sizeof(endpoint{})

// In is how many endpoints are in the choice, as one Pick sees them.
func (b *Balancer) In() int { return len(b.choice.Load().in) }
