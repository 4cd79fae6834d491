package h1

import (
	"bytes"
	"net/http"
)

// Request is the head of a request. Its slices point into the bytes it was parsed from.
type Request struct {
	Method []byte // a token; methods are case-sensitive
	Target []byte // as on the wire
	Minor  int    // of HTTP/1.Minor: 0 or 1

	Scheme []byte // "http" or "https" of an absolute-form target, else nil; do not write to it
	// whom the request is for: of an absolute-form target (RFC 9112 section 3.2.2) and of CONNECT, where it has a port,
	// else the Host field; empty only in HTTP/1.0
	Host []byte
	Path []byte // path and query: begins with '/', or is "*" and the method OPTIONS; nil with CONNECT

	// Fields are the end-to-end fields in their order, as many of one name as there are.
	// Not among them: Host, Content-Length, Transfer-Encoding, Connection and what it
	// names, Keep-Alive, Proxy-Connection, Proxy-Authorization, TE, Upgrade, Expect and
	// HTTP2-Settings.
	Fields []Field

	Length    int64  // bytes of the body; 0 when there is none; -1 when Chunked
	Chunked   bool   // the body is in the chunked transfer coding
	KeepAlive bool   // the client will use the connection again
	Expect    bool   // the client waits for 100 (Continue) before it sends the body
	Upgrade   []byte // the Upgrade field if Connection names it and h2c is not in it, else nil
	Trailers  bool   // TE: trailers: the client reads trailer fields
	Keyed     bool   // has an Idempotency-Key or X-Idempotency-Key that is not empty

	framing   framing
	lines     []byte // the head without its empty line, for AppendFields
	hostSeen  bool
	namedHost []byte // by the Host field
}

var (
	errRequestLine = bad("request line is not a method, a space, a target, a space and HTTP/1.1")
	errMethod      = bad("method is not a token: methods are letters, digits and !#$%&'*+-.^_`|~")
	errVersion     = &Error{http.StatusHTTPVersionNotSupported, "HTTP version is neither HTTP/1.1 nor HTTP/1.0"}
	errTwoHosts    = bad("more than one Host field: send one")
	errNoHost      = bad("no host: HTTP/1.1 needs one Host field that is not empty")
	errExpect      = &Error{http.StatusExpectationFailed, "Expect holds something else than 100-continue"}
)

// maxQuoted bounds what an error quotes of a field name.
const maxQuoted = 64

// Parse reads the head of a request, which must end with its empty line, as [HeadEnd]
// returned it. It keeps r.Fields' memory: it allocates when there are more fields than
// ever before in r (so never, if r.Fields begins with room for all), for an IPv6 address
// as host, and for an absolute target with a query but no path.
//
// Refused with 400, besides what breaks the grammar: Content-Length or
// Transfer-Encoding twice or together, Transfer-Encoding in HTTP/1.0, folded lines, bare
// CR or LF, white space around names, a Host that is missing, doubled or not a host with
// an optional port, user information or a fragment in the target, more than 16
// connection options, and a connection option that names a field the request's meaning
// depends on. With 417: an Expect that is not 100-continue. 431: more than
// 256 fields. 501: a transfer coding that is not chunked. 505: not HTTP/1.0 or 1.1.
//
// After an error r holds nothing of use.
func (r *Request) Parse(head []byte) *Error {
	fields, named := r.Fields[:0], r.framing.named[:0]
	*r = Request{Fields: fields}
	r.framing.length, r.framing.named = -1, named
	b, err := lines(head)
	if err != nil {
		return err
	}
	r.lines = b
	line, i, err := startLine(b)
	if err != nil {
		return err
	}
	if err := r.requestLine(line); err != nil {
		return err
	}
	for count := 0; i < len(b); count++ {
		name, value, n, err := fieldLine(b[i:])
		if err != nil {
			return err
		}
		if count == maxFields {
			return errFields
		}
		if k := kindOf(name); k <= keyField {
			r.Keyed = r.Keyed || k == keyField && len(value) > 0
			fields = append(fields, Field{name, value})
		} else if err := r.special(k, value, b[i:i+n]); err != nil {
			return err
		}
		i += n
	}
	r.Fields = fields
	return r.settle()
}

func (r *Request) requestLine(line []byte) *Error {
	const version = "HTTP/1.1"
	i := bytes.IndexByte(line, ' ')
	if i < 0 {
		return errRequestLine
	}
	if !token(line[:i]) {
		return errMethod
	}
	r.Method = line[:i:i]
	j := i + 1 + bytes.IndexByte(line[i+1:], ' ')
	if j <= i+1 {
		return errRequestLine // no second space, or nothing before it
	}
	r.Target = line[i+1 : j : j]
	switch v := line[j+1:]; {
	case string(v) == version:
		r.Minor = 1
	case string(v) == "HTTP/1.0":
	case len(v) == len(version) && string(v[:5]) == version[:5] && v[6] == '.' && chars[v[5]]&chars[v[7]]&isDigit != 0:
		return errVersion
	default:
		return errRequestLine
	}
	return r.target()
}

// special reads a field that is more than passed on.
func (r *Request) special(k kind, value, line []byte) *Error {
	switch k {
	case hostField:
		if r.hostSeen {
			return errTwoHosts
		}
		r.hostSeen, r.namedHost = true, value
	case expectField:
		if !fold(value, "100-continue") {
			return errExpect
		}
		r.Expect = true
	case teField:
		for rest := value; len(rest) > 0; {
			var coding []byte
			coding, rest = element(rest)
			r.Trailers = r.Trailers || fold(coding, "trailers")
		}
	case upgradeField:
		if r.framing.upgrade != nil {
			return errTwoUpgrade
		}
		if !protocols(value) {
			return errUpgrade
		}
		r.framing.upgrade = value
	default:
		return r.framing.field(k, value, line)
	}
	return nil
}

// settle draws the conclusions from all fields together.
func (r *Request) settle() *Error {
	if err := r.framing.settle(r.Minor); err != nil {
		return err
	}
	for _, name := range r.framing.named {
		if guarded(name) {
			return bad("Connection names " + string(name[:min(len(name), maxQuoted)]) +
				", which is not for this connection alone: name only hop-by-hop fields")
		}
	}
	if len(r.namedHost) > 0 {
		if err := checkHost(r.namedHost); err != nil {
			return err
		}
	}
	if r.Host == nil {
		r.Host = r.namedHost
	}
	if r.Minor == 1 && (!r.hostSeen || len(r.Host) == 0) {
		return errNoHost
	}
	r.Fields = r.framing.drop(r.Fields)
	r.Length, r.Chunked = max(r.framing.length, 0), r.framing.chunked
	if r.Chunked {
		r.Length = -1
	}
	r.KeepAlive = r.framing.persists(r.Minor)
	r.Upgrade = r.framing.switchesTo(r.Minor)
	// HTTP/1.0 does not know 100, and without a body nobody waits (RFC 9110 section 10.1.1).
	r.Expect = r.Expect && r.Minor == 1 && r.Length != 0
	return nil
}
