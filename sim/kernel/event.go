package kernel

// Event is one thing that happens at one instant. It is 16 bytes and holds no
// pointer, so that millions of them cost the garbage collector nothing: what
// happens is a kind, to whom is an index, and a model keeps the rest.
type Event struct {
	// At is when, in ns since the start.
	At int64
	// Target is to whom: an index into a table of the model.
	Target uint32
	// Meta is the kind in the low 8 bits and the generation in the upper 24; see Meta.
	Meta uint32
}

// Kind returns what happens, as given to Meta.
func (e Event) Kind() uint8 { return uint8(e.Meta) }

// Generation returns the low 24 bits of the generation given to Meta. A model
// that counts the uses of a record there recognises events for an earlier use
// and drops them, which is how an event is cancelled.
func (e Event) Generation() uint32 { return e.Meta >> 8 }

// Meta packs a kind and the low 24 bits of a generation.
func Meta(kind uint8, generation uint32) uint32 { return generation<<8 | uint32(kind) }
