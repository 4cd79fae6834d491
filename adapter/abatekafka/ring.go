package abatekafka

import "time"

// slot is what a window keeps of a record beside its place in the lane.
type slot struct {
	pending
	ready   time.Duration // when it could be delivered for the first time, on the guards' clock
	flooded bool          // it is held for as long as a flood of dead letters lasts
	done    bool
	out     *outgoing // on its way to another topic
}

// ring holds the slots of a lane's unfinished records by their numbers.
type ring struct{ slots []slot }

// at is the slot of record number seq.
func (r *ring) at(seq uint64) *slot { return &r.slots[seq&uint64(len(r.slots)-1)] }

// put stores the slot of record seq, where first is the oldest that is still needed.
func (r *ring) put(first, seq uint64, s slot) {
	if need := int(seq-first) + 1; need > len(r.slots) {
		r.grow(first, seq, need)
	}
	*r.at(seq) = s
}

func (r *ring) grow(first, seq uint64, need int) {
	size := max(len(r.slots), 64)
	for size < need {
		size *= 2
	}
	bigger := ring{make([]slot, size)}
	for ; first < seq && len(r.slots) > 0; first++ {
		*bigger.at(first) = *r.at(first)
	}
	*r = bigger
}
