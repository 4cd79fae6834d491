package stale

import (
	"math"
	"time"

	"github.com/abate-go/abate/internal/fieldname"
	"github.com/abate-go/abate/proxy/h1"
)

const (
	maxVaryNames  = 16  // a response that depends on more than that is not worth keeping
	maxConnection = 256 // bytes of a Connection field; it is searched once for each field
	unlimited     = time.Duration(math.MaxInt64)
)

// terms are what a response's fields say about keeping it.
type terms struct {
	cc        directives
	age       time.Duration
	length    int64 // of the body, -1 when it is not known
	varyNames int
}

// Keeps reports whether a response may be kept. length is that of the body in bytes, negative when it is not known yet:
// it is then collected until it grows too large.
//
// Only 200 is kept. The other statuses that caches may keep (RFC 9110 section 15.1) are a part of something (206), or
// say where it went or that it is gone: none of them is a good answer to give while the service is away. An event
// stream is not kept, because its end is a break and not its completion. What the fields forbid stands in the package
// comment.
func (s *Store) Keeps(status int, fields []h1.Field, length int64) bool {
	_, ok := examine(status, fields)
	return ok && length <= s.entryMax
}

// examine reads the fields of a response once. ok is false when it may not be kept.
func examine(status int, fields []h1.Field) (t terms, ok bool) {
	if status != 200 {
		return t, false
	}
	t.length = -1
	for i := range fields {
		if !t.read(&fields[i]) {
			return t, false
		}
	}
	cc := &t.cc
	return t, !cc.noStore && !cc.noCache && !cc.private && t.usable() > 0
}

// read takes in one field, and reports whether the response may still be kept.
func (t *terms) read(f *h1.Field) bool {
	switch len(f.Name) {
	case len("age"):
		if f.Is("age") {
			t.age = max(t.age, time.Duration(number(f.Value))*time.Second)
		}
	case len("vary"):
		return !f.Is("vary") || t.readVary(f.Value)
	case len("set-cookie"):
		return !f.Is("set-cookie") && (len(f.Value) <= maxConnection || !f.Is("connection"))
	case len("content-type"):
		const events = "text/event-stream"
		return !f.Is("content-type") || len(f.Value) < len(events) || !equalFold(f.Value[:len(events)], events)
	case len("cache-control"):
		if f.Is("cache-control") {
			t.cc.read(f.Value)
		}
		return !f.Is("content-range")
	case len("content-length"):
		if f.Is("content-length") {
			n := number(f.Value) // of what is no number the body turns out to have another length
			if t.length >= 0 && t.length != n {
				return false
			}
			t.length = n
		}
	case len("www-authenticate"):
		return !f.Is("www-authenticate")
	case len("proxy-authenticate"):
		return !f.Is("proxy-authenticate")
	case len("authentication-info"):
		return !f.Is("authentication-info")
	case len("proxy-authentication-info"):
		return !f.Is("proxy-authentication-info")
	}
	return true
}

// readVary counts the names of a Vary field. It is false for "*", for what is not the name of a field, and for fields
// that the proxy itself writes: what it tells the service is not among the fields that requests are told apart by.
func (t *terms) readVary(list []byte) bool {
	for {
		var name []byte
		name, list = member(list)
		if len(name) == 0 {
			return t.varyNames <= maxVaryNames
		}
		if _, junk := token(name); len(junk) > 0 || name[0] == '*' || equalFold(name, "via") ||
			fieldname.Begins(name, "x-forwarded-for") || fieldname.Begins(name, "x-envoy-") || fieldname.Begins(name, "abate-") {
			return false
		}
		t.varyNames++
	}
}

// usable is how long after it was received a response may be used.
func (t *terms) usable() time.Duration {
	cc := &t.cc
	fresh := cc.maxAge.value
	if cc.sharedMaxAge.given {
		fresh = cc.sharedMaxAge.value
	}
	switch {
	case cc.revalidate, cc.sharedMaxAge.given && !cc.staleIfError.given:
		return fresh - t.age
	case cc.staleIfError.given:
		return fresh + cc.staleIfError.value - t.age
	}
	return unlimited
}

// transient reports whether a field is about one connection or one message and not about the response (RFC 9110 section
// 7.6.1, RFC 9111 section 3.1). Who gives the response from the store writes Content-Length and Age anew.
func transient(f *h1.Field) bool {
	switch len(f.Name) {
	case len("te"):
		return f.Is("te")
	case len("age"):
		return f.Is("age")
	case len("upgrade"):
		return f.Is("upgrade") || f.Is("trailer")
	case len("keep-alive"):
		return f.Is("keep-alive") || f.Is("connection")
	case len("content-length"):
		return f.Is("content-length")
	case len("proxy-connection"):
		return f.Is("proxy-connection")
	case len("transfer-encoding"):
		return f.Is("transfer-encoding")
	}
	return false
}
