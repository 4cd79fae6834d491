package stale

import (
	"encoding/binary"

	"github.com/abate-go/abate/internal/fieldname"
	"github.com/abate-go/abate/proxy/h1"
)

// Asks reports whether a request may be answered from the store, and whether its response may fill it. A GET may do
// both, a HEAD only be answered. It may do neither when it says who is asking (see the package comment), has content,
// asks for a part (Range), states conditions that only the service can judge (If-Match, If-Unmodified-Since), or says
// no-store. Fields whose names are in identity are the caller's affair, see AppendIdentity. With no-cache it may fill
// only. If-None-Match and If-Modified-Since change nothing: a full answer is right for them too.
//
// Other methods cost a few nanoseconds. Nothing is allocated. Content that none of the fields announces is the caller's
// to check: h1.Request.Fields has no framing in it, and HTTP/2 needs none.
func Asks(method []byte, fields []h1.Field, identity ...string) (answer, fill bool) {
	get := string(method) == "GET"
	if !get && string(method) != "HEAD" {
		return false, false
	}
	var cc directives
	for i := range fields {
		f := &fields[i]
		switch len(f.Name) {
		case len("range"):
			if f.Is("range") {
				return false, false
			}
		case len("if-match"):
			if f.Is("if-match") {
				return false, false
			}
		case len("cache-control"):
			if f.Is("cache-control") {
				cc.read(f.Value)
			}
		case len("content-length"):
			if f.Is("content-length") && string(f.Value) != "0" {
				return false, false
			}
		case len("transfer-encoding"):
			if f.Is("transfer-encoding") {
				return false, false
			}
		case len("if-unmodified-since"):
			if f.Is("if-unmodified-since") {
				return false, false
			}
		}
		if personal(f.Name) && !isOf(identity, f.Name) {
			return false, false
		}
	}
	return !cc.noStore && !cc.noCache, get && !cc.noStore
}

// personal reports whether a request field of this name says who is asking. Services with keys of their own (X-Api-Key,
// Private-Token, X-Amz-Security-Token and so on) rarely say so in Vary. A field taken for personal by mistake costs a
// fallback; one overlooked gives away data.
func personal(name []byte) bool {
	if len(name) == 0 {
		return false
	}
	switch name[len(name)-1] | 0x20 {
	case 'y':
		return hasSuffix(name, "key")
	case 'e':
		return hasSuffix(name, "cookie")
	case 't':
		return hasSuffix(name, "secret")
	case 'n':
		return hasSuffix(name, "authorization") || hasSuffix(name, "token") ||
			hasSuffix(name, "session") || hasSuffix(name, "assertion")
	}
	return false
}

// AppendKey appends the name of a resource to dst: the service, the host in lower case (it may carry a port, never a
// scheme), and the path with its query as they were sent. Each part has its length in front, so that no two resources
// share a name, and the caller may append what else tells them apart. The method is no part of it: only what GET gets
// is kept.
func AppendKey(dst []byte, service string, host, path []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(service)))
	dst = append(dst, service...)
	dst = binary.AppendUvarint(dst, uint64(len(host)))
	for _, c := range host {
		dst = append(dst, fieldname.Lower(c))
	}
	dst = binary.AppendUvarint(dst, uint64(len(path)))
	return append(dst, path...)
}

// placeOf is how much of a key AppendKey has written: three parts with their lengths in front. What is no such key is
// all of it.
func placeOf(key []byte) int {
	at := 0
	for range 3 {
		n, size := binary.Uvarint(key[at:])
		if size <= 0 || n > uint64(len(key)-at-size) {
			return len(key)
		}
		at += size + int(n)
	}
	return at
}

// equalFold compares b with a string in lower case, as HTTP compares names: ASCII letters without regard to case.
func equalFold(b []byte, lowered string) bool {
	if len(b) != len(lowered) {
		return false
	}
	for i, c := range b {
		if fieldname.Lower(c) != lowered[i] {
			return false
		}
	}
	return true
}

func hasSuffix(b []byte, lowered string) bool {
	return len(b) >= len(lowered) && equalFold(b[len(b)-len(lowered):], lowered)
}
