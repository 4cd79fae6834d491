package h1

import "net/http"

// Response is the head of a response. Its slices point into the bytes it was parsed from.
type Response struct {
	Status int    // 100 to 599
	Minor  int    // of HTTP/1.Minor: 0 or 1
	Reason []byte // nil if there is none

	// Fields are the end-to-end fields in their order, as many of one name as there are.
	// Not among them: Content-Length, Transfer-Encoding, Connection and what it names,
	// Keep-Alive, Proxy-Connection, TE and Upgrade.
	Fields []Field

	Length    int64  // bytes of the body; -1 when it is Chunked or ends with the connection
	Announced int64  // the Content-Length field, -1 without one; differs from Length where there is no body (HEAD, 304)
	Chunked   bool   // the body is in the chunked transfer coding
	KeepAlive bool   // the connection can be used again after the body
	Upgrade   []byte // the Upgrade field if Connection names it and h2c is not in it, else nil

	framing framing
}

var (
	errStatusLine = bad("status line is not HTTP/1.1 or HTTP/1.0, a space and a status of three digits")
	errStatus     = bad("status is not between 100 and 599")
	errReason     = bad("control character in the reason phrase")
	errInterim    = bad("1xx response announces a body: it has none")
)

// Parse reads the head of a response, which must end with its empty line, as [HeadEnd]
// returned it. toHead says that it answers a HEAD request, so that it has no body
// whatever it announces, as have 1xx, 204 and 304. Like [Request.Parse] it keeps
// r.Fields' memory, and what that refuses about lines, fields and framing is refused
// here; always with 502. After an error r holds nothing of use.
func (r *Response) Parse(head []byte, toHead bool) *Error {
	if err := r.parse(head, toHead); err != nil {
		return &Error{http.StatusBadGateway, err.Problem}
	}
	return nil
}

func (r *Response) parse(head []byte, toHead bool) *Error {
	fields, named := r.Fields[:0], r.framing.named[:0]
	*r = Response{Fields: fields}
	r.framing.length, r.framing.named = -1, named
	b, err := lines(head)
	if err != nil {
		return err
	}
	line, i, err := startLine(b)
	if err != nil {
		return err
	}
	if err := r.statusLine(line); err != nil {
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
		switch k := kindOf(name); k {
		case contentLength, transferEncoding, connectionField:
			err = r.framing.field(k, value, b[i:i+n])
		case hopByHop, teField:
		case upgradeField: // servers offer it in responses to anything: of use only after a 101
			if r.framing.upgrade == nil && protocols(value) {
				r.framing.upgrade = value
			}
		default:
			fields = append(fields, Field{name, value})
		}
		if err != nil {
			return err
		}
		i += n
	}
	r.Fields = fields
	return r.settle(toHead)
}

func (r *Response) statusLine(line []byte) *Error {
	const status = "HTTP/1.1 200"
	if len(line) < len(status) || string(line[:7]) != status[:7] || line[8] != ' ' {
		return errStatusLine
	}
	switch line[7] {
	case '1':
		r.Minor = 1
	case '0':
	default:
		return errStatusLine
	}
	for _, c := range line[9:12] {
		if chars[c]&isDigit == 0 {
			return errStatusLine
		}
		r.Status = r.Status*10 + int(c-'0')
	}
	if r.Status < 100 || r.Status > 599 {
		return errStatus
	}
	if rest := line[12:]; len(rest) > 0 {
		if rest[0] != ' ' {
			return errStatusLine
		}
		if textEnd(rest, 0) < len(rest) {
			return errReason
		}
		if len(rest) > 1 {
			r.Reason = rest[1:len(rest):len(rest)]
		}
	}
	return nil
}

// settle draws the conclusions from all fields together (RFC 9112 section 6.3).
func (r *Response) settle(toHead bool) *Error {
	f := &r.framing
	if err := f.settle(r.Minor); err != nil {
		return err
	}
	r.Fields = f.drop(r.Fields)
	r.Announced = f.length
	r.KeepAlive = f.persists(r.Minor)
	r.Upgrade = f.switchesTo(r.Minor)
	announces := f.chunked || f.length > 0
	switch {
	case r.Status < 200 && announces:
		return errInterim
	case r.Status == http.StatusNoContent && announces:
		r.KeepAlive = false // it may send one all the same, which nobody may take for a response
	case r.Status < 200, r.Status == http.StatusNoContent, r.Status == http.StatusNotModified, toHead:
	case f.chunked:
		r.Length, r.Chunked = -1, true
	default:
		r.Length = f.length
		r.KeepAlive = r.KeepAlive && f.length >= 0
	}
	return nil
}
