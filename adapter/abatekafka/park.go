package abatekafka

import (
	"sync"

	"github.com/abate-go/abate/policy/redelivery"
)

// parked is which keys of one partition number of one main topic have a message in its retry topics: those that come
// later wait behind it. The partitions of the main topic and of its retry topics with that number share it, which is
// why one member must have them all.
type parked struct {
	mu      sync.Mutex
	keys    *redelivery.Parking
	built   bool     // what stood in the retry topics when the partitions were assigned is in it
	waiting []func() // to be called when it is built
}

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

func (k *parked) len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys.Len()
}

// standingKey is one message in a retry topic.
type standingKey struct {
	tier int
	key  uint64
}

// build adds what stood in the retry topics, and calls those who wait for it.
func (k *parked) build(keys []standingKey) {
	k.mu.Lock()
	for _, one := range keys {
		k.keys.Enter(one.tier, one.key)
	}
	k.built = true
	waiting := k.waiting
	k.waiting = nil
	k.mu.Unlock()
	for _, ready := range waiting {
		ready()
	}
}

// whenBuilt has ready called later, once. It returns false if it is built already, and forgets ready.
func (k *parked) whenBuilt(ready func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.built {
		return false
	}
	k.waiting = append(k.waiting, ready)
	return true
}

// behind parks a message undelivered in the next retry topic if one with its key is in a later one. over reports that.
func (l *deliverer) behind(d *delivery) (end ending, over bool) {
	next := l.tier + 1
	hops := l.way.chain.Hops
	if l.parking == nil || !d.record.keyed || next >= len(hops) || !l.parking.ahead(l.tier, d.record.key) {
		return ending{}, false
	}
	rec := l.way.forward.parked(d.message, next)
	e := withReason(d.event(redelivery.Parked), "key-ahead")
	e.To = rec.Topic
	return ending{action: send, out: &forward{rec: rec, event: e, tier: next}}, true
}

// stays keeps a message that would go to the end of the same retry topic where it is: those with its key that came
// after it must stay behind it. What the copy would have said counts on. A crash forgets that, and the message gets a
// delivery more.
func (l *deliverer) stays(d *delivery, v redelivery.Verdict, e redelivery.Event, err error) ending {
	rec := l.way.forward.hop(d.message, v, err)
	rec.Topic, rec.Partition, rec.Offset = l.at.topic, l.at.partition, d.record.rec.Offset
	rec.Timestamp = d.record.rec.Timestamp
	e.Kind = redelivery.Held
	l.observe(e)
	return ending{action: hold, delay: v.Delay, instead: l.read(rec)}
}
