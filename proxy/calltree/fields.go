// Package calltree finds the call tree that a request belongs to: the calls that are made for one request of a user,
// and may use one allowance for retries. A Table joins the requests that come in at a proxy with the calls that go
// out for them. fields.go reads and writes what hops tell each other, trace.go the names by which requests belong
// together.
package calltree

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unsafe"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/fieldname"
	"github.com/abate-go/abate/proxy/h1"
)

// IsAllowance reports whether a field is Abate-Retry-Allowance.
func IsAllowance(f h1.Field) bool {
	return len(f.Name) == len(hops.Allowance) && f.Name[0]|0x20 == 'a' && fieldname.Begins(f.Name, "abate-retry-allowance")
}

// IsMade reports whether a field is Abate-Retries-Made.
func IsMade(f h1.Field) bool {
	return len(f.Name) == len(hops.Made) && f.Name[0]|0x20 == 'a' && fieldname.Begins(f.Name, "abate-retries-made")
}

// AllowanceIn reads the allowance of a request: of several the least counts, and what cannot be read counts as if it
// were not there. id is that of the request that is being handled, as handled requests have it; 0 for none. The owner
// lies in the request.
func AllowanceIn(fields []h1.Field) (least core.Allowance, id uint64, ok bool) {
	for _, f := range fields {
		if !IsAllowance(f) {
			continue
		}
		a, good := hops.ParseAllowance(text(f.Value))
		if !good {
			continue
		}
		if !ok || a.Left < least.Left {
			least = a
		}
		if ok = true; id == 0 {
			id = idIn(f.Value)
		}
	}
	return least, id, ok
}

// The parameter of Abate-Retry-Allowance that names a request under way.
const (
	callBegin = `;call="`
	callDigit = 16
)

// idIn finds it in a value that has been read: there it stands outside of strings. 0 is none.
func idIn(value []byte) uint64 {
	i := strings.Index(text(value), callBegin) + len(callBegin)
	if i < len(callBegin) || i+callDigit >= len(value) || value[i+callDigit] != '"' {
		return 0
	}
	id, err := strconv.ParseUint(text(value[i:i+callDigit]), 16, 64)
	if err != nil {
		return 0
	}
	return id
}

// AppendID writes an id behind an allowance, as AllowanceIn reads it.
func AppendID(dst []byte, id uint64) []byte {
	var b [callDigit / 2]byte
	for i := range b {
		b[i] = byte(id >> (8 * (len(b) - 1 - i)))
	}
	dst = hex.AppendEncode(append(dst, callBegin...), b[:])
	return append(dst, '"')
}

// MadeIn reads what an answer says about extra attempts behind it, in its head or its trailer.
func MadeIn(fields []h1.Field) (most core.Below) {
	for _, f := range fields {
		if !IsMade(f) {
			continue
		}
		if b, ok := hops.ParseMade(text(f.Value)); ok {
			most = Merge(most, b)
		}
	}
	return most
}

// Merge joins what is known of attempts from two sides.
func Merge(a, b core.Below) core.Below {
	return core.Below{Said: a.Said || b.Said, Made: max(a.Made, b.Made), Final: a.Final || b.Final}
}

// WithoutMade takes the report of extra attempts off, in place: it was for the one who asked.
func WithoutMade(fields []h1.Field) []h1.Field {
	kept := fields[:0]
	for _, f := range fields {
		if !IsMade(f) {
			kept = append(kept, f)
		}
	}
	return kept
}

// AppendMade writes the field that reports extra attempts, as a line.
func AppendMade(dst []byte, b core.Below) []byte {
	dst = append(dst, "Abate-Retries-Made: "...)
	return append(hops.AppendMade(dst, b), "\r\n"...)
}

// text is b as a string without a copy. It is good as long as b does not change.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
