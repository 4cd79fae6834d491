package h2

// Decoder is the decoder of header blocks, for tests.
type Decoder struct {
	d decoder
	f fields
}

// NewDecoder begins with an empty table.
func NewDecoder() *Decoder {
	d := new(Decoder)
	d.d.max = tableSize
	return d
}

// Decode decodes a block. over reports that it is longer than max.
func (d *Decoder) Decode(block []byte, max int) (list []Field, over, ok bool) {
	d.f = fields{}
	ok = d.d.decode(block, &d.f, max)
	return d.f.list, d.f.over, ok
}

// Held returns how much memory the table has.
func (d *Decoder) Held() int { return cap(d.d.buf) }

// Encoder is the encoder of header blocks, for tests.
type Encoder struct{ e encoder }

// NewEncoder begins with an empty table.
func NewEncoder() *Encoder {
	e := new(Encoder)
	e.e.max = tableSize
	return e
}

// Resize follows the SETTINGS_HEADER_TABLE_SIZE of the peer.
func (e *Encoder) Resize(n int) { e.e.resize(n) }

// Request and Trailer encode a block.
func (e *Encoder) Request(h *Head) []byte         { return e.e.request(nil, h) }
func (e *Encoder) Trailer(list []Field) []byte    { return e.e.trailer(nil, list) }
func (e *Encoder) Answer(n int, l []Field) []byte { return e.e.answer(nil, n, l, -1) }
