package engine

import (
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// caches know what services hold that are caches. What a call asks for, and whether it is there, is decided when the
// answer reaches the caller; what it fetches from elsewhere is there at once.
type caches struct {
	world   *world
	rec     *recorder
	traffic *traffic
	of      []cache // of nodes, by index
	wants   map[place]want
	parked  slab[parkedCall]
}

// cache is a service that is one.
type cache struct {
	spec    *scenario.Cache // nil for a service that is none
	popular zipf
	stream  kernel.Stream
	shelves []shelf              // of its replicas
	fetched map[uint32][]waiting // of keys, over all replicas, that somebody fetches: who waits for them
}

// place is which of the calls of a request it is: those before it are over.
type place struct {
	task  uint32
	which uint8
}

// want is what a call has missed, and its request is to fetch.
type want struct {
	generation uint32 // of the request
	node       int32
	replica    int32 // of the node, from 0
	key        uint32
}

// parkedCall is a call that waits for what another one fetches.
type parkedCall struct {
	task, generation uint32
	edge             int32
	which            uint8
	key              uint32
	filled           bool // it is there now
	turn             bool // this one has to fetch it
}

// waiting is a parked call.
type waiting struct{ index, generation uint32 }

// build sorts the keys of all caches by how often they are asked for, once and for all.
func (cs *caches) build() {
	cs.of = make([]cache, len(cs.world.nodes))
	for n := range cs.of {
		if s := cs.world.nodes[n].service; s != nil && s.IsCache() {
			cs.of[n] = cache{spec: &s.Cache, popular: newZipf(s.Cache.Keys, s.Cache.Skew),
				shelves: make([]shelf, cs.world.nodes[n].count)}
			cs.wants = make(map[place]want)
		}
	}
}

// reset fills the caches that do not begin empty.
func (cs *caches) reset() {
	clear(cs.wants)
	cs.parked = cs.parked.emptied()
	for n := range cs.of {
		c := &cs.of[n]
		if c.spec == nil {
			continue
		}
		c.stream, c.fetched = cs.world.stream(cs.world.nodes[n].name, "keys"), make(map[uint32][]waiting)
		for i := range c.shelves {
			s := &c.shelves[i]
			cs.clear(int32(n), int32(i))
			for key := min(s.most, len(s.places)) - 1; key >= 0 && !c.spec.Cold; key-- {
				expires := int64(never)
				if !c.spec.TTL.IsZero() { // it has been there for a while
					expires = int64(float64(c.spec.TTL.Sample(&c.stream)) * c.stream.Float64())
				}
				s.put(uint32(key), expires)
			}
		}
	}
}

// clear empties a replica.
func (cs *caches) clear(n, i int32) {
	c, count := &cs.of[n], int(cs.world.nodes[n].count)
	keys := (c.spec.Keys - int(i) + count - 1) / count
	most := c.spec.Capacity
	if most == 0 {
		most = keys
	}
	c.shelves[i].reset(keys, most)
}

// empty takes everything from an instance, if it is a replica of a cache.
func (cs *caches) empty(i int32) {
	n := cs.world.instances[i].node
	if cs.of[n].spec != nil {
		cs.clear(n, i-cs.world.nodes[n].first)
	}
}

// has reports whether a replica holds what a call asks it for. If not, it remembers what the call wants.
func (cs *caches) has(c *call, replica int32) bool {
	n := cs.world.instances[replica].node
	x, node, t := &cs.of[n], &cs.world.nodes[n], cs.traffic.tasks.at(c.task)
	what := ofKey + (chance(t.step)<<16|chance(c.which))<<8
	rank := x.popular.draw(cs.traffic.chanceOf(t, what, &x.stream))
	i := replica - node.first
	key := rank / uint32(node.count)
	key = min(key, uint32(len(x.shelves[i].places)-1))
	record := cs.rec.service(n).world
	if x.shelves[i].take(key, cs.world.now) {
		record.Hits[cs.rec.bin]++
		return true
	}
	record.Misses[cs.rec.bin]++
	cs.wants[place{c.task, c.which}] = want{cs.traffic.tasks.generation(c.task), n, i, key}
	return false
}

// wanted is what a call wants that is made instead of one that missed; false if that failed in another way.
func (cs *caches) wanted(at place) (want, bool) {
	w, ok := cs.wants[at]
	return w, ok && w.generation == cs.traffic.tasks.generation(at.task)
}

// number is a key among those of all replicas.
func (cs *caches) number(w want) uint32 {
	return w.key*uint32(cs.world.nodes[w.node].count) + uint32(w.replica)
}

// fetched puts what somebody wanted into the cache, or forgets it.
func (cs *caches) fetched(at place, w want, got bool) {
	delete(cs.wants, at)
	c := &cs.of[w.node]
	s := &c.shelves[w.replica]
	switch {
	case got:
		expires := int64(never)
		if !c.spec.TTL.IsZero() {
			expires = cs.world.now + c.spec.TTL.Sample(&c.stream)
		}
		s.put(w.key, expires)
	case c.spec.ForgetsOnError:
		s.drop(w.key)
	}
}

// sample records how much caches hold at the end of a bin.
func (cs *caches) sample() {
	for n := range cs.of {
		if cs.of[n].spec == nil {
			continue
		}
		held := 0
		for i := range cs.of[n].shelves {
			held += cs.of[n].shelves[i].held()
		}
		cs.rec.service(int32(n)).world.Held[cs.rec.bin] = uint32(held)
	}
}
