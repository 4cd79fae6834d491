package abatekafka

import (
	"hash/maphash"
	"sync"

	"github.com/abate-go/abate/policy/redelivery"
)

// parked is which keys of one partition number of one main topic have a message in its retry topics: those that come later wait behind it. The
// partitions of the main topic and of its retry topics with that number share it, which is why one member must have them all.
type parked struct {
	mu    sync.Mutex
	keys  *redelivery.Parking
	built bool // what stood in the retry topics when the partitions were assigned is in it
}

var keySeed = maphash.MakeSeed()

func (k *parked) enter(tier int, key uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys.Enter(tier, key)
}

func (k *parked) leave(tier int, key uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys.Leave(tier, key)
}

func (k *parked) ahead(tier int, key uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys.Ahead(tier, key)
}

// parkedKeys is how many keys wait in the session's retry topics.
func (s *session) parkedKeys() (n int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, k := range s.parking {
		k.mu.Lock()
		n += k.keys.Len()
		k.mu.Unlock()
	}
	return n
}

// behind parks a message undelivered in the next retry topic if one with its key is in a later one. over tells so.
func (p *partition) behind(d *delivery) (end ending, over bool) {
	next := p.tier + 1
	if p.parking == nil || !d.slot.keyed || next >= len(p.way.chain.Hops) || !p.parking.ahead(p.tier, d.slot.key) {
		return ending{}, false
	}
	rec := p.way.forward.parked(d.message, next)
	e := withReason(d.event(redelivery.Parked), "key-ahead")
	e.To = rec.Topic
	return ending{action: send, out: &outgoing{p: p, rec: rec, event: e, tier: next}}, true
}

// entered notes that a message is on its way to a retry topic, before the record there can be read: who leaves must have entered. The lock is held.
func (p *partition) entered(o *outgoing) {
	if s := p.ring.at(o.seq); p.parking != nil && s.keyed && o.letter == nil {
		p.parking.enter(o.tier, s.key)
	}
}

// leaves notes that a message is not in this retry topic any more. The lock is held.
func (p *partition) leaves(s *slot) {
	if p.parking != nil && s.keyed {
		p.parking.leave(p.tier, s.key)
	}
}

// stays keeps a message that would go to the end of the same retry topic where it is: those with its key that came after it must stay behind it.
// What the copy would have said counts on. A crash forgets that, and the message gets a delivery more.
func (p *partition) stays(d *delivery, v redelivery.Verdict, e redelivery.Event, err error) ending {
	rec := p.way.forward.hop(d.message, v, err)
	rec.Topic, rec.Partition, rec.Offset, rec.Timestamp = p.at.topic, p.at.partition, d.slot.rec.Offset, d.slot.rec.Timestamp
	e.Kind = redelivery.Held
	p.observe(e)
	return ending{action: hold, delay: v.Delay, instead: p.read(rec)}
}
