package discovery

import (
	"time"

	"github.com/abate-go/abate/policy/retry"
)

// pace decides when a source is asked again.
type pace struct {
	shortest time.Duration // the least time between two looks
	failures int           // in a row
	previous time.Duration // the last wait
}

// patience is how long to wait after a look in vain: a second, then longer, up to half a minute, each drawn from the
// upper half. A second is what a TTL can say at least. Half a minute is how long name servers as a rule remember that
// there is no such name (the cache of CoreDNS in a cluster): to ask more often brings the same answer.
var patience = retry.New(retry.Config{
	InitialDelay: time.Second, MaxDelay: 30 * time.Second, Multiplier: 2, Jitter: retry.EqualJitter,
})

// shortest is the least time between two looks, whatever the TTL: that is 0 where nobody should keep an answer, and to
// ask for each request is not what it means.
const shortest = time.Second

// unsaid is how long an answer is good that came without a TTL, of a hosts file: as long as Go's resolver keeps that.
const unsaid = 5 * time.Second

// after says how long to wait after an answer that is good for ttl. It is a little less at random, so that the proxies
// of a fleet that began together do not go on together, and never more: then the answer is too old.
func (p *pace) after(ttl time.Duration, rnd uint64) time.Duration {
	p.failures, p.previous = 0, 0
	ttl = max(ttl, p.shortest)
	return ttl - time.Duration(float64(ttl/10)*(float64(rnd>>11)/(1<<53)))
}

// afterFailure says how long to wait after no answer.
func (p *pace) afterFailure(rnd uint64) time.Duration {
	p.failures++
	p.previous = patience.Delay(p.failures, p.previous, rnd)
	return p.previous
}
