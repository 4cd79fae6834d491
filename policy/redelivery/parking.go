package redelivery

// Parking knows which keys have a message in the retry topics of one partition number, so that those that come later
// wait behind it: a message whose key is Ahead goes to the next retry topic undelivered. It is used by one goroutine at
// a time.
//
// It costs about 50 ns a call. It takes some 50 bytes and 4 for each retry topic a key, for as many keys as have been
// in the retry topics at the same time; when none is left it forgets all of it. What is in the retry topics is the
// bound: it has none of its own, because a key that it forgot would lose its order.
type Parking struct {
	tiers  int
	keys   map[uint64]int // where the counts of a key begin
	counts []int32
	free   []int
}

// NewParking makes one for so many retry topics.
func NewParking(tiers int) *Parking {
	return &Parking{tiers: max(tiers, 0), keys: map[uint64]int{}}
}

// Enter notes that a message with this key is in a retry topic; Leave that it is not any more.
func (p *Parking) Enter(tier int, key uint64) {
	if tier < 0 || tier >= p.tiers {
		return
	}
	at, ok := p.keys[key]
	if !ok {
		at = p.place()
		p.keys[key] = at
	}
	p.counts[at+tier]++
}

// Leave is the opposite of Enter. One that was not entered changes nothing.
func (p *Parking) Leave(tier int, key uint64) {
	at, ok := p.keys[key]
	if !ok || tier < 0 || tier >= p.tiers || p.counts[at+tier] == 0 {
		return
	}
	p.counts[at+tier]--
	for _, n := range p.counts[at : at+p.tiers] {
		if n > 0 {
			return
		}
	}
	delete(p.keys, key)
	p.free = append(p.free, at)
	if len(p.keys) == 0 && len(p.free) > 1000 {
		*p = *NewParking(p.tiers)
	}
}

// Ahead reports whether a retry topic behind tier holds a message with this key. tier may be Main.
func (p *Parking) Ahead(tier int, key uint64) bool {
	at, ok := p.keys[key]
	if !ok {
		return false
	}
	for i := max(tier, Main) + 1; i < p.tiers; i++ {
		if p.counts[at+i] > 0 {
			return true
		}
	}
	return false
}

// Len is how many keys are parked.
func (p *Parking) Len() int { return len(p.keys) }

// place finds room for the counts of one key, all zero.
func (p *Parking) place() int {
	if n := len(p.free); n > 0 {
		at := p.free[n-1]
		p.free = p.free[:n-1]
		return at
	}
	at := len(p.counts)
	for range p.tiers {
		p.counts = append(p.counts, 0)
	}
	return at
}
