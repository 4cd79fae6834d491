package dlq

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// twin is what all records of one dead letter have in common: a hash of who failed at which message, after how many
// replays, and of its key and value. A consumer that is killed between writing a letter and committing writes it again;
// so does one that takes its partition over.
type twin [16]byte

// twinOf names a letter; zero for one that does not say where it came from, which is nobody's twin.
//
// The number of replays is in it, because a message that was replayed and has failed again is another letter; and the
// import, because who imports a line twice wants two. Key and value are in it so that nothing that differs is ever
// hidden.
func twinOf(l *letter.Letter) (t twin) {
	if !l.Identity.Known() {
		return t
	}
	h := sha256.New()
	for _, part := range [...]string{l.Group, l.Identity.String(), strconv.Itoa(l.Replays), l.Imported} {
		writePart(h.Write, []byte(part))
	}
	writePart(h.Write, l.Key)
	h.Write(l.Value)
	copy(t[:], h.Sum(nil))
	return t
}

// writePart writes a length and the bytes, so that no two lists of parts look the same.
func writePart(write func([]byte) (int, error), b []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(b)))
	_, _ = write(size[:]) // a hash takes everything
	_, _ = write(b)
}

// String is what the audit says; empty for a letter that is nobody's twin.
func (t twin) String() string {
	if t == (twin{}) {
		return ""
	}
	return hex.EncodeToString(t[:])
}

// parseTwin reads what String wrote; zero for anything else.
func parseTwin(s string) (t twin) {
	if b, err := hex.DecodeString(s); err == nil && len(b) == len(t) {
		copy(t[:], b)
	}
	return t
}

// twins are the letters that a reading has met.
type twins map[twin]struct{}

// mostTailed is how many letters Tail remembers, some 50 bytes each.
const mostTailed = 100_000

// first reports whether this is the first record of its letter.
func (t twins) first(same twin) bool {
	if same == (twin{}) {
		return true
	}
	if _, met := t[same]; met {
		return false
	}
	t[same] = struct{}{}
	return true
}
