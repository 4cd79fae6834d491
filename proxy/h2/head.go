package h2

import (
	"bytes"

	"github.com/abate-go/abate/proxy/h1"
)

// Field is one field of a head or trailer, as over HTTP/1.1. Names are received, and always written, in lower case.
type Field = h1.Field

// Head is the head of a request or an answer. A received one has been checked as RFC 9113 §8 demands. It lies in memory
// of its stream, and is valid until that is closed or its handler returns.
type Head struct {
	// Method, Scheme, Authority and Path are those of a request. Authority is taken from the Host field if there is no
	// :authority; Host is then among the Fields too. Path and Scheme are empty for the method CONNECT.
	Method, Scheme, Authority, Path []byte
	// Protocol is what an extended CONNECT asks for (RFC 8441), such as websocket; it has Scheme and Path too. nil for all
	// other requests.
	Protocol []byte
	// Status is that of an answer: from 100 to 599, never 101.
	Status int
	// Fields are all fields but the pseudo-header fields, in their order, content-length among them. What is written must
	// hold none that belong to a connection of HTTP/1.1 (connection, transfer-encoding, upgrade and the like), and no
	// content-length if Length is given.
	Fields []Field
	// Length is how long the content will be, -1 if the head does not say so.
	Length int64

	counted bool // there was a content-length
}

// The pseudo-header fields, as bits.
const (
	methodField = 1 << iota
	schemeField
	authorityField
	pathField
	statusField
	protocolField
)

const (
	misplaced = "a pseudo field that does not belong there, or a second of its kind"
	required  = "not all the pseudo fields that a head needs"
)

// parseRequest moves the pseudo-header fields out of h.Fields and checks the rest; extended allows an extended CONNECT.
// It returns what is wrong.
func (h *Head) parseRequest(arena *[]byte, extended bool) (problem string) {
	got := 0
	for ; len(h.Fields) > 0 && isPseudo(&h.Fields[0]); h.Fields = h.Fields[1:] {
		var bit int
		switch f := &h.Fields[0]; string(f.Name) {
		case ":method":
			bit, h.Method = methodField, f.Value
		case ":scheme":
			bit, h.Scheme = schemeField, f.Value
		case ":authority":
			bit, h.Authority = authorityField, f.Value
		case ":path":
			bit, h.Path = pathField, f.Value
		case ":protocol":
			if extended {
				bit, h.Protocol = protocolField, f.Value
			}
		}
		if bit == 0 || got&bit != 0 {
			return misplaced
		}
		got |= bit
	}
	if problem = h.checkTarget(got); problem != "" {
		return problem
	}
	cookies, hosts := 0, 0
	for i := range h.Fields {
		f := &h.Fields[i]
		if problem = h.check(f); problem != "" {
			return problem
		}
		switch string(f.Name) {
		case "host":
			if hosts++; got&authorityField == 0 {
				h.Authority = f.Value
			} else if string(f.Value) != string(h.Authority) {
				return "Host and :authority differ"
			}
		case "cookie":
			cookies++
		}
	}
	if hosts > 1 {
		return "two Host fields"
	}
	if !goodAuthority(h.Authority) {
		return badAuthority
	}
	if cookies > 1 {
		h.joinCookies(arena)
	}
	return ""
}

const badAuthority = ":authority or Host holds a space, a control character, a byte outside ASCII or an @"

func goodAuthority(b []byte) bool { return allOf(b, visible) && !contains(b, '@') }

// checkTarget checks the pseudo-header fields of a request together: RFC 9113 §8.3.1.
func (h *Head) checkTarget(got int) string {
	switch {
	case got&methodField == 0:
		return required
	case len(h.Method) == 0 || !allOf(h.Method, tokenChar):
		return ":method is not a token"
	case !goodAuthority(h.Authority):
		return badAuthority
	case got&protocolField != 0 && (string(h.Method) != "CONNECT" || len(h.Protocol) == 0 ||
		!allOf(h.Protocol, tokenChar)):
		return ":protocol is not a token, or without CONNECT"
	case string(h.Method) == "CONNECT" && got&protocolField == 0:
		if got&^methodField != authorityField || len(h.Authority) == 0 {
			return "CONNECT with :scheme or :path, or without :authority"
		}
		return ""
	case got&schemeField == 0 || got&pathField == 0:
		return required
	case len(h.Scheme) == 0 || !allOf(h.Scheme, tokenChar):
		return ":scheme is not one"
	case len(h.Path) == 0 || h.Path[0] != '/' && !(string(h.Path) == "*" && string(h.Method) == "OPTIONS"):
		return ":path does not begin with /"
	case !allOf(h.Path, visible):
		return ":path holds a space, a control character or a byte outside ASCII"
	}
	return ""
}

// parseAnswer moves :status out of h.Fields and checks the rest. It returns what is wrong.
func (h *Head) parseAnswer() (problem string) {
	if len(h.Fields) == 0 || string(h.Fields[0].Name) != ":status" {
		return required
	}
	status := h.Fields[0].Value
	h.Fields = h.Fields[1:]
	if len(status) != 3 || status[0] == '0' || !digits(status) {
		return ":status does not have three digits"
	}
	h.Status = int(status[0]-'0')*100 + int(status[1]-'0')*10 + int(status[2]-'0')
	if h.Status > 599 {
		return ":status is not from 100 to 599"
	}
	if h.Status == 101 {
		return ":status 101, which HTTP/2 does not have"
	}
	for i := range h.Fields {
		if problem = h.check(&h.Fields[i]); problem != "" {
			return problem
		}
	}
	return ""
}

// checkTrailer checks a trailer. It returns what is wrong.
func checkTrailer(list []Field) (problem string) {
	var h Head
	for i := range list {
		if problem = h.check(&list[i]); problem != "" {
			return problem
		}
	}
	return ""
}

func isPseudo(f *Field) bool { return len(f.Name) > 0 && f.Name[0] == ':' }

// check checks a field that must not be a pseudo-header field: RFC 9113 §8.2. It returns what is wrong.
func (h *Head) check(f *Field) (problem string) {
	if isPseudo(f) {
		return misplaced
	}
	if len(f.Name) == 0 || !allOf(f.Name, nameChar) {
		return "the name of a field is empty, or holds something else than small letters, digits and a few signs"
	}
	if v := f.Value; len(v) > 0 {
		if blank(v[0]) || blank(v[len(v)-1]) || !allOf(v, valueChar) {
			return "the value of a field holds a control character, or begins or ends with white space"
		}
	}
	switch string(f.Name) {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return "a field that concerns a connection of HTTP/1.1"
	case "te":
		if string(f.Value) != "trailers" {
			return "a TE field that is not trailers"
		}
	case "content-length":
		if h.counted {
			return "two Content-Length fields"
		}
		n, ok := number(f.Value)
		if !ok {
			return "a Content-Length that is not a number"
		}
		h.Length, h.counted = n, true
	}
	return ""
}

// joinCookies joins all Cookie fields into one; HTTP/2 may send them in pieces: RFC 9113 §8.2.3.
func (h *Head) joinCookies(arena *[]byte) {
	begin := len(*arena)
	first := -1
	rest := h.Fields[:0]
	for _, f := range h.Fields {
		if string(f.Name) != "cookie" {
			rest = append(rest, f)
			continue
		}
		if first < 0 {
			first = len(rest)
			rest = append(rest, f)
		} else {
			*arena = append(*arena, "; "...)
		}
		*arena = append(*arena, f.Value...)
	}
	rest[first].Value = (*arena)[begin:len(*arena):len(*arena)]
	h.Fields = rest[:len(rest):len(rest)]
}

const (
	nameChar  = 1 << iota // of a field, RFC 9110 §5.1, in lower case
	tokenChar             // of a token
	visible               // ASCII without spaces
	valueChar             // of a field: no control characters but tab
)

var charKinds = func() (kinds [256]uint8) {
	for i := range kinds {
		c := byte(i)
		letter := 'a' <= c && c <= 'z'
		capital := 'A' <= c && c <= 'Z'
		other := '0' <= c && c <= '9' || contains([]byte("!#$%&'*+-.^_`|~"), c)
		if letter || other {
			kinds[c] |= nameChar
		}
		if letter || capital || other {
			kinds[c] |= tokenChar
		}
		if '!' <= c && c <= '~' {
			kinds[c] |= visible
		}
		if c >= ' ' && c != 0x7f || c == '\t' {
			kinds[c] |= valueChar
		}
	}
	return kinds
}()

func allOf(b []byte, kind uint8) bool {
	for _, c := range b {
		if charKinds[c]&kind == 0 {
			return false
		}
	}
	return true
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

func contains(b []byte, c byte) bool { return bytes.IndexByte(b, c) >= 0 }

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// number parses a length.
func number(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 || !digits(b) {
		return 0, false
	}
	for _, c := range b {
		n = n*10 + int64(c-'0')
	}
	return n, true
}
