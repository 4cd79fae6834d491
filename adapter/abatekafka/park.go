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
