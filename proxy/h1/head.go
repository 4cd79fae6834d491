package h1

import "bytes"

const maxFields = 256

// Field is one field line of a head or trailer section.
type Field struct {
	Name  []byte // as on the wire: a token in any case
	Value []byte // without the white space around it; no control characters but tab
}

// Is reports whether the field has that name, which must be given in lower case.
func (f Field) Is(lower string) bool { return fold(f.Name, lower) }

// HeadEnd finds the end of a message's head, of a request or a response. If n > 0,
// buf[:n] is the head with the empty line that ends it. If n is 0 the head is not
// complete: call again with more bytes behind the same ones, and with the old len(buf)
// as from, so that nothing is looked at twice. One empty line before the head (RFC 9112
// section 2.2) counts as part of it.
//
// An error means that no more bytes can make a good head of it: a line ends without
// CR, or there is a bare CR or a NUL. So a bad client gets its answer at once and not
// after a timeout. Everything else, and everything in a complete head, is for Parse to
// find.
func HeadEnd(buf []byte, from int) (n int, err *Error) {
	from = min(max(from, 0), len(buf))
	lines := 0
	for i := from; ; lines++ {
		lf := bytes.IndexByte(buf[i:], '\n')
		if lf < 0 {
			return 0, hopeless(buf, from, lines)
		}
		i += lf + 1 // behind the LF
		if i < 2 || buf[i-2] != '\r' {
			return 0, errBareLF
		}
		if i > 2 && buf[i-3] == '\n' {
			return i, nil
		}
	}
}

// hopeless looks for a NUL and a bare CR in an incomplete head, of which buf[from:] and
// the lines that end there are new. Each line has one CR; the last byte may be one that
// still gets its LF.
func hopeless(buf []byte, from, lines int) *Error {
	fresh := buf[max(from-1, 0):]
	if bytes.IndexByte(fresh, 0) >= 0 {
		return errNUL
	}
	crs := bytes.Count(fresh, []byte{'\r'})
	if crs > 0 && fresh[len(fresh)-1] == '\r' {
		crs--
	}
	if crs != lines {
		return errBareCR
	}
	return nil
}

// lines checks that head ends with an empty line and returns it without the empty
// lines before and after it, which is not empty.
func lines(head []byte) ([]byte, *Error) {
	head = bytes.TrimPrefix(head, []byte("\r\n"))
	if !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		return nil, errNoEnd
	}
	return head[:len(head)-2], nil
}

// startLine returns the first line of b without its end, and where the next begins.
func startLine(b []byte) (line []byte, next int, err *Error) {
	i := bytes.IndexByte(b, '\n')
	if i < 1 || b[i-1] != '\r' {
		return nil, 0, errBareLF
	}
	return b[:i-1], i + 1, nil
}

// fieldLine reads the field line that b begins with and returns its length. b ends with
// CR LF, so that neither a name nor a value reaches its end. It returns no Field because
// that would not fit in registers.
func fieldLine(b []byte) (name, value []byte, n int, err *Error) {
	colon := 0
	for colon < len(b) && chars[b[colon]]&isToken != 0 {
		colon++
	}
	if colon == 0 || b[colon] != ':' {
		return nil, nil, 0, nameProblem(b, colon)
	}
	start := colon + 1
	for start < len(b) && (b[start] == ' ' || b[start] == '\t') {
		start++
	}
	end := textEnd(b, start)
	if b[end] != '\r' || b[end+1] != '\n' {
		return nil, nil, 0, valueProblem(b[end])
	}
	n = end + 2
	for end > start && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	return b[:colon:colon], b[start:end:end], n, nil
}

// nameProblem says what is wrong with the name that b begins with; b[at] does not belong
// to it and is not a colon, or is the line's first byte.
func nameProblem(b []byte, at int) *Error {
	switch c := b[at]; {
	case c == ':':
		return errEmptyName
	case (c == ' ' || c == '\t') && at == 0:
		return errFold
	case c == ' ' || c == '\t':
		return errSpaceColon
	case c == '\r':
		return errNoColon
	case c == '\n':
		return errBareLF
	case c == 0:
		return errNUL
	default:
		return errName
	}
}

// valueProblem says what is wrong with a control character in a value.
func valueProblem(c byte) *Error {
	switch c {
	case '\r':
		return errBareCR
	case '\n':
		return errBareLF
	case 0:
		return errNUL
	default:
		return errControl
	}
}
