package h2

// tableSize is the most that the dynamic table of either direction holds, as RFC 7541 §4.1 measures it. Peers begin
// with it.
const tableSize = 4096

// entryOverhead is what a field counts in a table, and in the size of a head, in addition to its bytes.
const entryOverhead = 32

// table is a dynamic table of HPACK. Its bytes lie in buf, the oldest first: adding a field costs a copy, evicting one
// costs nothing.
type table struct {
	buf     []byte
	entries []entry // the newest at the end; those before first have been evicted
	first   int
	size    int // as RFC 7541 §4.1 measures it
	max     int
}

type entry struct {
	at          uint32 // in buf
	name, value uint16 // lengths
	hash        uint32 // of both; only the encoder has one
}

// count returns how many fields there are.
func (t *table) count() int { return len(t.entries) - t.first }

// get returns the i-th field; the newest is the first. It is valid until the next add.
func (t *table) get(i int) (name, value []byte) {
	e := &t.entries[len(t.entries)-i]
	b := t.buf[e.at:]
	return b[:e.name:e.name], b[e.name : int(e.name)+int(e.value)]
}

// add adds a field, which must not lie in the table itself. One that is larger than the table empties it.
func (t *table) add(name, value []byte, hash uint32) {
	size := len(name) + len(value) + entryOverhead
	t.evict(t.max - size)
	if size > t.max {
		return
	}
	t.makeRoom(len(name) + len(value))
	t.entries = append(t.entries, entry{uint32(len(t.buf)), uint16(len(name)), uint16(len(value)), hash})
	t.buf = append(append(t.buf, name...), value...)
	t.size += size
}

// evict removes the oldest fields until no more than size is left.
func (t *table) evict(size int) {
	for t.size > size && t.count() > 0 {
		e := &t.entries[t.first]
		t.size -= int(e.name) + int(e.value) + entryOverhead
		t.first++
	}
	if t.count() == 0 {
		t.entries, t.first, t.buf = t.entries[:0], 0, t.buf[:0]
	}
}

// makeRoom makes room for n bytes: it drops those of evicted fields, and lets the memory grow up to twice the size of
// the table, so that most fields are added without moving others.
func (t *table) makeRoom(n int) {
	if t.first > 64 {
		t.entries = t.entries[:copy(t.entries, t.entries[t.first:])]
		t.first = 0
	}
	if len(t.buf)+n <= cap(t.buf) {
		return
	}
	from := len(t.buf)
	if t.count() > 0 {
		from = int(t.entries[t.first].at)
	}
	live := t.buf[from:]
	if room := 2 * (len(live) + n); room > cap(t.buf) {
		t.buf = make([]byte, 0, min(max(room, 512), 2*tableSize))
	}
	t.buf = t.buf[:len(live)]
	copy(t.buf, live)
	for i := range t.entries[t.first:] {
		t.entries[t.first+i].at -= uint32(from)
	}
}

// pair is a field of the static table.
type pair struct{ name, value string }

// static is the table of RFC 7541, appendix A. Its first field has the index 1.
var static = [...]pair{
	{":authority", ""}, {":method", "GET"}, {":method", "POST"}, {":path", "/"}, {":path", "/index.html"},
	{":scheme", "http"}, {":scheme", "https"}, {":status", "200"}, {":status", "204"}, {":status", "206"},
	{":status", "304"}, {":status", "400"}, {":status", "404"}, {":status", "500"}, {"accept-charset", ""},
	{"accept-encoding", "gzip, deflate"}, {"accept-language", ""}, {"accept-ranges", ""}, {"accept", ""},
	{"access-control-allow-origin", ""}, {"age", ""}, {"allow", ""}, {"authorization", ""}, {"cache-control", ""},
	{"content-disposition", ""}, {"content-encoding", ""}, {"content-language", ""}, {"content-length", ""},
	{"content-location", ""}, {"content-range", ""}, {"content-type", ""}, {"cookie", ""}, {"date", ""}, {"etag", ""},
	{"expect", ""}, {"expires", ""}, {"from", ""}, {"host", ""}, {"if-match", ""}, {"if-modified-since", ""},
	{"if-none-match", ""}, {"if-range", ""}, {"if-unmodified-since", ""}, {"last-modified", ""}, {"link", ""},
	{"location", ""}, {"max-forwards", ""}, {"proxy-authenticate", ""}, {"proxy-authorization", ""}, {"range", ""},
	{"referer", ""}, {"refresh", ""}, {"retry-after", ""}, {"server", ""}, {"set-cookie", ""},
	{"strict-transport-security", ""}, {"transfer-encoding", ""}, {"user-agent", ""}, {"vary", ""}, {"via", ""},
	{"www-authenticate", ""},
}

// staticFields is static as fields. staticNames finds the first index of a name in it.
var staticFields, staticNames = staticIndex()

func staticIndex() (list [len(static) + 1]Field, names map[string]uint8) {
	names = make(map[string]uint8, len(static))
	for i, p := range static {
		list[i+1] = Field{Name: []byte(p.name), Value: []byte(p.value)}
		if names[p.name] == 0 {
			names[p.name] = uint8(i + 1)
		}
	}
	return list, names
}
