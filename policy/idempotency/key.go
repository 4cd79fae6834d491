package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// MaxKey is the length of the longest accepted key, in bytes.
const MaxKey = 255

// ErrKey is what errors about a key match with errors.Is: it is empty, longer than MaxKey, or not written as the header
// field has to be.
var ErrKey = errors.New("idempotency: bad key")

// CheckKey returns an error that matches ErrKey unless key has 1 to MaxKey bytes, which may be any. A Store begins each
// of its methods with it.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty; it needs 1 to %d bytes", ErrKey, MaxKey)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: it has %d bytes, at most %d are taken", ErrKey, len(key), MaxKey)
	}
	return nil
}

// ParseKey reads the value of the field Idempotency-Key. The draft wants a string in quotes (RFC 9651 section 3.3.3),
// most clients send the bare text; both are accepted, and "a" is the same key as a. Bare text is visible ASCII without
// quotes, backslashes, commas and semicolons. Fields that came several times must be joined with ", " before, so that
// they are noticed. Errors match ErrKey, say what is wrong and where, and never repeat the value.
func ParseKey(headerValue string) (string, error) {
	value := strings.Trim(headerValue, " \t")
	if len(value) > 2*MaxKey+2 { // longer than any key with every character escaped
		return "", fmt.Errorf("%w: the field Idempotency-Key has %d bytes, the key may have %d", ErrKey, len(value), MaxKey)
	}
	key := value
	if strings.HasPrefix(value, `"`) {
		var err error
		if key, err = unquote(value); err != nil {
			return "", err
		}
	} else if i := strings.IndexFunc(value, notBare); i >= 0 {
		return "", wrongByte(value, i)
	}
	if err := CheckKey(key); err != nil {
		return "", err
	}
	return key, nil
}

// ParseKeys reads the key of a request that may carry it in Idempotency-Key, in the older X-Idempotency-Key, or in
// both, which must say the same then. Without any it returns "".
func ParseKeys(standard, older string) (string, error) {
	if standard == "" {
		standard, older = older, ""
	}
	if standard == "" {
		return "", nil
	}
	key, err := ParseKey(standard)
	if err != nil || older == "" {
		return key, err
	}
	if other, err := ParseKey(older); err != nil {
		return "", err
	} else if other != key {
		return "", fmt.Errorf("%w: Idempotency-Key and X-Idempotency-Key say different keys; send one of them", ErrKey)
	}
	return key, nil
}

// notBare reports whether bare text cannot have the character.
func notBare(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"\,;`, c) }

// unquote reads a string of RFC 9651, which is all of s.
func unquote(s string) (string, error) {
	var key strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' && i == len(s)-1:
			return key.String(), nil
		case c == '"':
			return "", fmt.Errorf("%w: more follows after the closing quote, at byte %d; send one key and nothing else",
				ErrKey, i+2)
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", fmt.Errorf(`%w: the backslash at byte %d; inside quotes only \" and \\ are escapes`, ErrKey, i)
			}
			key.WriteByte(s[i])
		case c < ' ' || c > '~':
			return "", wrongByte(s, i)
		default:
			key.WriteByte(c)
		}
	}
	return "", fmt.Errorf("%w: the closing quote is missing", ErrKey)
}

// wrongByte returns an error that says what is wrong with s[i].
func wrongByte(s string, i int) error {
	what := "is for text in quotes only"
	switch c := s[i]; {
	case c == ',' || c == ';':
		what = `is a separator; send one key, in quotes if it has separators: "a,b"`
	case c == ' ':
		what = `is a space; put the key in quotes: "a b"`
	case c < ' ' || c == 0x7f:
		what = "is a control character"
	case c > '~':
		what = "is not ASCII"
	}
	return fmt.Errorf("%w: byte %d of it (%#02x) %s", ErrKey, i+1, s[i], what)
}

// StoreKey returns the key for a Store: 64 characters that are the same only for the same gate, caller and key, so that
// two callers that chose the same key never get the same entry. caller is an identity that the caller cannot choose.
func StoreKey(gate, caller, key string) string {
	return fmt.Sprintf("%x", digest([]byte(key), gate, caller))
}

// Fingerprint returns a SHA-256 of what makes two requests with the same key the same request.
type Fingerprint [sha256.Size]byte

// FingerprintOf returns the fingerprint of a request: its method, its target with the query, and its body, or as much
// of the body as is compared. Header fields do not count: repeats differ in dates, traces and attempt numbers.
func FingerprintOf(method, target string, body []byte) Fingerprint {
	return digest(body, method, target)
}

// digest hashes the names, each behind its length so that no two lists look alike, and then the rest.
func digest(rest []byte, names ...string) [sha256.Size]byte {
	h := sha256.New()
	var room [128]byte
	for _, name := range names {
		h.Write(append(binary.AppendUvarint(room[:0], uint64(len(name))), name...))
	}
	h.Write(rest)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}
