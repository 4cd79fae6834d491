package stale

import (
	"time"
	"unsafe"

	"github.com/abate-go/abate/proxy/h1"
)

// overhead is what a response costs besides its bytes: a variant, a resource with its list, and two slots of each map,
// which is half empty when it has just grown.
const overhead = int64(unsafe.Sizeof(variant{})+unsafe.Sizeof(resource{})) + 2*56 + 56

// variant is one response, under way or kept.
type variant struct {
	prev, next *variant // in the list it is on, nil when on none
	of         *resource
	key, vary  string
	selection  []byte // what the request had in the fields that vary names
	fields     []h1.Field
	body       []byte
	text       int64 // bytes that selection and fields point to
	cost       int64
	received   time.Duration
	age        time.Duration // when received
	usable     time.Duration // since received
	touched    uint64        // Store.touches when its recorder was last at work
}

// newVariant copies all that is kept of a request and its response's head.
func newVariant(key []byte, requestFields []h1.Field, fields []h1.Field, t *terms) *variant {
	v := &variant{key: string(key), vary: varyOf(fields), age: t.age, usable: t.usable()}
	var room [256]byte
	selection := appendSelection(room[:0], v.vary, requestFields)
	var names [128]byte
	connection := appendConnection(names[:0], fields)
	size := len(selection)
	v.fields = append([]h1.Field(nil), make([]h1.Field, len(fields))...)[:0]
	for i := range fields {
		if f := &fields[i]; !transient(f) && !hasMember(connection, f.Name) {
			v.fields = append(v.fields, *f)
			size += len(f.Name) + len(f.Value)
		}
	}
	text := sized(size)
	copied := func(b []byte) []byte {
		at := len(text)
		text = append(text, b...)
		return text[at:len(text):len(text)]
	}
	v.selection = copied(selection)
	for i, f := range v.fields {
		v.fields[i] = h1.Field{Name: copied(f.Name), Value: copied(f.Value)}
	}
	v.text = int64(cap(text))
	v.cost = v.weigh()
	return v
}

// sized returns an empty slice with room for n bytes, whose capacity is all the memory that it takes: what append makes
// is rounded up to a size that the allocator has, and make would hide the rest.
func sized(n int) []byte { return append([]byte(nil), make([]byte, n)...)[:0] }

// fitting is a capacity of at most n that is not rounded up beyond n.
func fitting(n int64) int64 {
	const page = 8 << 10
	if n > 4*page {
		return n - n%page // the allocator gives out whole pages
	}
	return n - n/8 // its sizes are about so far apart
}

// weigh is the memory that v takes. Keys are strings, whose rounding up can only be estimated.
func (v *variant) weigh() int64 {
	names := int64(len(v.key) + len(v.vary))
	fields := int64(cap(v.fields)) * int64(unsafe.Sizeof(h1.Field{}))
	return overhead + names + names/4 + v.text + fields + int64(cap(v.body))
}

// list is a doubly linked ring of variants, and what they cost.
type list struct {
	root  variant
	bytes int64
	len   int
}

func (l *list) init() { l.root.prev, l.root.next = &l.root, &l.root }

func (l *list) push(v *variant) {
	v.prev, v.next = &l.root, l.root.next
	v.prev.next, v.next.prev = v, v
	l.bytes += v.cost
	l.len++
}

// remove takes v out; it must be on this list.
func (l *list) remove(v *variant) {
	v.prev.next, v.next.prev = v.next, v.prev
	v.prev, v.next = nil, nil
	l.bytes -= v.cost
	l.len--
}

// last is the variant at the end, nil on an empty list.
func (l *list) last() *variant {
	if l.len == 0 {
		return nil
	}
	return l.root.prev
}
