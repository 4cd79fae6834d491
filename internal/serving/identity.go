package serving

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"github.com/abate-go/abate/internal/fieldname"
	"github.com/abate-go/abate/policy/idempotency"
)

// Identity returns what the fields of a request say of whose it is and what it asks for, beside the credentials that
// make its principal: a hash, in which requests agree that have the same values there. It is empty if they say nothing.
func Identity(fields iter.Seq2[string, string]) string {
	var said []string
	for name, value := range fields {
		if !fieldname.Distinguishes(name) || idempotency.IsCredential(name) {
			continue
		}
		said = append(said, strings.ToLower(name)+"\x00"+value)
	}
	if len(said) == 0 {
		return ""
	}
	slices.Sort(said) // some drivers do not know the order
	h := sha256.New()
	for _, s := range said {
		h.Write(append(binary.AppendUvarint(nil, uint64(len(s))), s...))
	}
	return string(h.Sum(nil))
}
