package stale

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/abate-go/abate/internal/fieldname"
	"github.com/abate-go/abate/proxy/h1"
)

// isOf reports whether a name is in a list, in whatever case, and however many servers may see it.
func isOf(names []string, name []byte) bool {
	for _, n := range names {
		if len(n) == len(name) && fieldname.Named(name, strings.ToLower(n)) {
			return true
		}
	}
	return false
}

// AppendRules appends to a key by what rules it was decided that an answer is kept: whether all are for everybody, and
// which names tell whose they are. What was kept by other rules is not found by these.
func AppendRules(dst []byte, shared bool, names []string) []byte {
	if shared {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(len(names)))
	for _, n := range names {
		dst = binary.AppendUvarint(dst, uint64(len(n)))
		dst = append(dst, n...)
	}
	return dst
}

// AppendIdentity appends to a key what tells whose a request is: a hash of the fields with these names, and of those
// that usually say so, such as X-Tenant and X-User-Id. Requests that agree in all of them, in their order, have the
// same; one that has none appends nothing.
func AppendIdentity(dst []byte, fields []h1.Field, names []string) []byte {
	var room [256]byte
	text := room[:0]
	for i := range fields {
		f := &fields[i]
		if !isOf(names, f.Name) && !fieldname.Tells(f.Name) {
			continue
		}
		text = binary.AppendUvarint(text, uint64(len(f.Name)))
		for _, c := range f.Name {
			text = append(text, fieldname.Lower(c))
		}
		text = binary.AppendUvarint(text, uint64(len(f.Value)))
		text = append(text, f.Value...)
	}
	if len(text) == 0 {
		return dst
	}
	sum := sha256.Sum256(text)
	return append(dst, sum[:]...)
}

// Shared reports whether a response says that it is the same for everybody: Cache-Control has public or s-maxage (RFC
// 9111 sections 5.2.2.9 and 5.2.2.10). What says neither may be one client's.
func Shared(fields []h1.Field) bool {
	var cc directives
	for i := range fields {
		if f := &fields[i]; f.Is("cache-control") {
			cc.read(f.Value)
		}
	}
	return (cc.public || cc.sharedMaxAge.given) && !cc.private
}
