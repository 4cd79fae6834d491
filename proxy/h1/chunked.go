package h1

import (
	"bytes"
	"math"
	"net/http"
)

const (
	maxSizeDigits    = 16
	maxExtension     = 256      // bytes in one size line
	maxExtensions    = 16 << 10 // bytes in all size lines, beyond one for each byte of content
	maxTrailer       = 8 << 10
	maxTrailerFields = 64
)

var (
	errChunkSize = bad("chunk size is not a hexadecimal number of at most 16 digits below 2^63")
	errChunkLine = bad(
		"chunk size is followed by something else than CR LF or an extension that begins with a semicolon")
	errExtension     = bad("control character in a chunk extension")
	errLongExtension = bad("chunk extension of more than 256 bytes")
	errExtensions    = bad("chunk extensions are longer than the content")
	errChunkEnd      = bad("chunk is not followed by CR LF: it is longer or shorter than its size says")
	errTrailerEnd    = bad("CR without LF at the end of the trailer section")
	errTrailer       = &Error{http.StatusRequestHeaderFieldsTooLarge, "trailer section of more than 8 KiB"}
	errTrailerFields = &Error{http.StatusRequestHeaderFieldsTooLarge, "trailer section of more than 64 fields"}
)

// part is what the decoder expects next.
type part uint8

const (
	sizeStart  part = iota // the first digit of a chunk's size
	size                   // its other digits
	extension              // from the semicolon to the CR
	sizeEnd                // the LF that ends the size line
	content                // the chunk's data
	chunkCR                // CR and LF behind it
	chunkLF                //
	trailerRow             // the start of a trailer field or of the empty line
	trailer                // the rest of a trailer field
	lastLF                 // the LF of the empty line
	finished               //
)

// Chunked decodes the chunked transfer coding (RFC 9112 section 7.1) as the bytes come
// in, in pieces of any length. The zero value is ready. It allocates only for trailer
// fields, and keeps that memory over Reset.
type Chunked struct {
	at     part
	digits int   // of the size so far, then bytes of the extension
	left   int64 // of the chunk
	paid   int64 // extension bytes that no content has made up for
	rows   []byte
	fields []Field
	err    *Error
}

// Reset makes c ready for another message. What Trailer returned is no longer valid.
func (c *Chunked) Reset() {
	*c = Chunked{rows: c.rows[:0], fields: c.fields[:0]}
}

// Trailer returns the trailer fields after Next was done, valid until Reset. Fields that
// may not be in a trailer section (RFC 9110 section 6.5.1) are left out: what frames,
// routes or authenticates a message, what says how to handle it, what describes its
// content except Content-Digest.
func (c *Chunked) Trailer() []Field { return c.fields }

// Next takes bytes from in: n of them are used up, and data, which points into them, is
// the next piece of the content, if any. done says that the message ends after these n
// bytes. Without done or an error n is 0 only if in is empty, and Next wants to be called
// again with what follows. An error stays until Reset; its Status is 400, or 431 for too
// much of a trailer.
func (c *Chunked) Next(in []byte) (data []byte, n int, done bool, err *Error) {
	for n < len(in) && c.err == nil && c.at != finished {
		if c.at == content {
			if data != nil { // one piece a call
				return data, n, false, nil
			}
			data = in[n:]
			if int64(len(data)) >= c.left {
				data, c.at = data[:c.left:c.left], chunkCR
			}
			n += len(data)
			c.left -= int64(len(data))
			continue
		}
		if c.at == trailer {
			n += c.row(in[n:])
			continue
		}
		c.byte(in[n])
		n++
	}
	if c.err != nil {
		return nil, 0, false, c.err
	}
	return data, n, c.at == finished, nil
}

// byte takes one byte outside the content and the trailer's rows.
func (c *Chunked) byte(b byte) {
	switch c.at {
	case sizeStart, size:
		c.size(b)
	case extension:
		c.extension(b)
	case sizeEnd:
		c.sizeEnd(b)
	case chunkCR:
		c.expect(b, '\r', chunkLF, errChunkEnd)
	case chunkLF:
		c.expect(b, '\n', sizeStart, errChunkEnd)
	case trailerRow:
		switch {
		case b == '\r':
			c.at = lastLF
		case chars[b]&isToken == 0:
			c.err = nameProblem([]byte{b}, 0)
		default:
			c.at = trailer
			c.rows = append(c.rows, b)
		}
	case lastLF:
		c.expect(b, '\n', finished, errTrailerEnd)
		if c.err == nil {
			c.err = c.parseTrailer()
		}
	}
}

func (c *Chunked) expect(b, want byte, then part, otherwise *Error) {
	if b != want {
		c.err = otherwise
	}
	c.at = then
}

func (c *Chunked) size(b byte) {
	switch {
	case chars[b]&isHex != 0:
		if c.at == sizeStart {
			c.digits, c.left, c.at = 0, 0, size
		}
		digit := int64(b - '0')
		if b >= 'A' {
			digit = int64(lower[b]-'a') + 10
		}
		if c.digits++; c.digits > maxSizeDigits || c.left > (math.MaxInt64-digit)/16 {
			c.err = errChunkSize
			return
		}
		c.left = c.left*16 + digit
	case c.at == sizeStart:
		c.err = errChunkSize
	case b == '\r':
		c.digits, c.at = 0, sizeEnd
	case b == ';':
		c.digits, c.at = 1, extension
	default:
		c.err = errChunkLine
	}
}

// extension skips a byte between the size and the line's end.
func (c *Chunked) extension(b byte) {
	if b == '\r' {
		c.at = sizeEnd
	} else if b < ' ' || b == 0x7f {
		c.err = errExtension
	} else if c.digits++; c.digits > maxExtension {
		c.err = errLongExtension
	}
}

// sizeEnd ends the size line. Extensions cost work and carry nothing: all together may
// not be much longer than the content.
func (c *Chunked) sizeEnd(b byte) {
	c.expect(b, '\n', content, errChunkLine)
	if c.paid += int64(c.digits); c.paid > maxExtensions {
		c.err = errExtensions
	}
	c.paid -= min(c.paid, c.left)
	if c.left == 0 {
		c.at = trailerRow
	}
}

// row takes the rest of a trailer field line, or as much of it as is there.
func (c *Chunked) row(in []byte) (n int) {
	if i := bytes.IndexByte(in, '\n'); i >= 0 {
		in, c.at = in[:i+1], trailerRow
	}
	if len(c.rows)+len(in) > maxTrailer {
		c.err = errTrailer
		return 0
	}
	c.rows = append(c.rows, in...)
	if c.at == trailerRow && c.rows[len(c.rows)-2] != '\r' {
		c.err = errBareLF
	}
	return len(in)
}

func (c *Chunked) parseTrailer() *Error {
	for i, count := 0, 0; i < len(c.rows); count++ {
		name, value, n, err := fieldLine(c.rows[i:])
		if err != nil {
			return err
		}
		if count == maxTrailerFields {
			return errTrailerFields
		}
		if InTrailer(name) {
			c.fields = append(c.fields, Field{name, value})
		}
		i += n
	}
	return nil
}
