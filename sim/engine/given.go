package engine

import "github.com/abate-go/abate/core"

// givenUp are requests in line that nobody waits for any more. In a storm they are most of what there is, by the
// million, and all that is left of one is that it stands in line, costs work when its turn comes, and since when. So
// its task goes to the next request, and 8 bytes stay.
type givenUp struct {
	chunks []*[chunkSize]int64 // since when it waits; of a free place: the next free one, + 1
	free   uint32              // + 1: the first free place
	fresh  uint32              // the first place that has never been used
}

// What stands in a line instead of the number of a task.
const (
	givenUpBit = 1 << 31 // the rest is a place in givenUp,
	expiredBit = 1 << 30 // of a request whose deadline is over
	goneFor    = ^uint32(0)
)

// crowd is how many requests there had to be at once before those in line are given up that nobody waits for: fewer fit
// into 4 MiB.
const crowd = 1 << 16

// put keeps a moment and returns its place.
func (g *givenUp) put(since int64) uint32 {
	i := g.free - 1
	if g.free > 0 {
		g.free = uint32(*g.at(i))
	} else {
		i = g.fresh
		if i>>chunkBits == uint32(len(g.chunks)) {
			g.chunks = append(g.chunks, new([chunkSize]int64))
		}
		g.fresh++
	}
	*g.at(i) = since
	return i
}

// take returns what is kept at a place, which is free then.
func (g *givenUp) take(i uint32) (since int64) {
	at := g.at(i)
	since, *at = *at, int64(g.free)
	g.free = i + 1
	return since
}

func (g *givenUp) at(i uint32) *int64 { return &g.chunks[i>>chunkBits][i&(chunkSize-1)] }

// emptied is givenUp with nobody in it, keeping its memory.
func (g *givenUp) emptied() givenUp { return givenUp{chunks: g.chunks} }

// giveUp is told that the caller of an attempt has left, and that its request goes on for nobody.
func (s *servers) giveUp(ti, ai uint32) {
	if s.traffic.tasks.fresh < s.crowd {
		return
	}
	t := s.traffic.tasks.at(ti)
	if t.stage != queued || t.attempt != ai || !t.plain() {
		return
	}
	stands := givenUpBit | s.given.put(t.since)
	if s.world.now >= t.deadline {
		stands |= expiredBit
	}
	*s.replicas[t.inst].line.at(t.mark) = stands
	s.traffic.tasks.put(ti)
}

// plain reports whether a request that waits in line is one like all others, with nothing to remember of it.
func (t *task) plain() bool {
	return t.drawn == 0 && t.user == 0 && t.trace == 0 && !t.ranked && !t.tree && !t.connect
}

// taken makes a request again of what stood in the line of a replica, if it was given up; false if it has gone since.
func (s *servers) taken(i int32, stood uint32) (ti uint32, ok bool) {
	switch {
	case stood&givenUpBit == 0:
		return stood, true
	case stood == goneFor:
		return 0, false
	}
	ti, t := s.traffic.tasks.get()
	*t = task{inst: i, stage: queued, since: s.given.take(stood &^ (givenUpBit | expiredBit))}
	if stood&expiredBit == 0 {
		t.deadline = int64(core.NoDeadline)
	}
	return ti, true
}

// loseGivenUp ends the requests in a replica's line that nobody waits for.
func (s *servers) loseGivenUp(i int32) {
	r := &s.replicas[i]
	for n := range r.line.count {
		at := r.line.at(r.line.oldest + n)
		if *at&givenUpBit == 0 || *at == goneFor {
			continue
		}
		s.given.take(*at &^ (givenUpBit | expiredBit))
		*at = goneFor
		r.waiting--
	}
}
