package proxy

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/h1"
)

func isAllowance(f h1.Field) bool {
	return len(f.Name) == len(hops.Allowance) && f.Name[0]|0x20 == 'a' && begins(f.Name, "abate-retry-allowance")
}

func isMade(f h1.Field) bool {
	return len(f.Name) == len(hops.Made) && f.Name[0]|0x20 == 'a' && begins(f.Name, "abate-retries-made")
}

// allowanceIn reads the allowance of a request: of several the least counts, and what cannot be read counts as if it
// were not there. id is that of the request that is being handled, as handled requests have it; 0 for none. The owner
// lies in the request.
func allowanceIn(fields []h1.Field) (least abate.Allowance, id uint64, ok bool) {
	for _, f := range fields {
		if !isAllowance(f) {
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
			id = callID(f.Value)
		}
	}
	return least, id, ok
}

// The parameter of Abate-Retry-Allowance that names a request under way.
const (
	callBegin = `;call="`
	callDigit = 16
)

// callID finds it in a value that has been read: there it stands outside of strings. 0 is none.
func callID(value []byte) uint64 {
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

func appendCallID(dst []byte, id uint64) []byte {
	var b [callDigit / 2]byte
	for i := range b {
		b[i] = byte(id >> (8 * (len(b) - 1 - i)))
	}
	dst = hex.AppendEncode(append(dst, callBegin...), b[:])
	return append(dst, '"')
}

// madeIn reads what an answer says about extra attempts behind it, in its head or its trailer.
func madeIn(fields []h1.Field) (most abate.Below) {
	for _, f := range fields {
		if !isMade(f) {
			continue
		}
		if b, ok := hops.ParseMade(text(f.Value)); ok {
			most = more(most, b)
		}
	}
	return most
}

// more joins what is known of attempts from two sides.
func more(a, b abate.Below) abate.Below {
	return abate.Below{Said: a.Said || b.Said, Made: max(a.Made, b.Made), Final: a.Final || b.Final}
}

// withoutMade takes that off, in place: it was for the one who asked.
func withoutMade(fields []h1.Field) []h1.Field {
	kept := fields[:0]
	for _, f := range fields {
		if !isMade(f) {
			kept = append(kept, f)
		}
	}
	return kept
}

// failing reports whether an answer is a failure that its caller may think of repeating.
func failing(status int) bool {
	return status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

func appendMade(dst []byte, b abate.Below) []byte {
	dst = append(dst, "Abate-Retries-Made: "...)
	return append(hops.AppendMade(dst, b), "\r\n"...)
}
