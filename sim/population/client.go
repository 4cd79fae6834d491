package population

import (
	"math/bits"
	"time"

	"github.com/abate-go/abate/policy/retry"
)

// client is what a client knows between two attempts.
type client struct {
	retries  int           // made so far in this request
	start    time.Duration // of the request, if something asks for it
	previous time.Duration // the last delay, if something asks for it
}

// packing puts a client into the 64 bits that an event has for it, so that a client costs its event and nothing else.
// From the top: fresh (1 bit), retries (7 bits), previous, start. Where only one of the last two is needed it is exact
// to the nanosecond; both together are rounded down to 2^shift ns, a few microseconds in a run of an hour.
type packing struct {
	startBits, startShift int
	previousShift         int
}

const (
	freshBit    = 1 << 63 // the event is the begin of a request, not a retry
	retriesAt   = 56
	retriesMask = 1<<7 - 1
)

func newPacking(c *Config, p retry.Config) packing {
	start := c.Patience > 0 || p.MaxElapsed > 0
	previous := p.Jitter == retry.DecorrelatedJitter
	startLen, previousLen := bits.Len64(uint64(c.Duration)), bits.Len64(uint64(p.MaxDelay))
	switch {
	case !start && !previous:
		return packing{startShift: 63, previousShift: 63}
	case !previous:
		return packing{startBits: retriesAt, previousShift: 63}
	case !start:
		return packing{startShift: 63}
	}
	half := retriesAt / 2
	return packing{startBits: half, startShift: max(startLen-half, 0), previousShift: max(previousLen-half, 0)}
}

func (p *packing) pack(c client) (target, meta uint32) {
	x := uint64(c.retries)<<retriesAt | uint64(c.previous)>>p.previousShift<<p.startBits | uint64(c.start)>>p.startShift
	return uint32(x), uint32(x >> 32)
}

func (p *packing) unpack(target, meta uint32) client {
	x := uint64(meta)<<32 | uint64(target)
	rest := x & (1<<retriesAt - 1)
	return client{
		retries:  int(x >> retriesAt & retriesMask),
		previous: time.Duration(rest >> p.startBits << p.previousShift),
		start:    time.Duration(rest & (1<<p.startBits - 1) << p.startShift),
	}
}
