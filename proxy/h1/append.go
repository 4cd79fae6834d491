package h1

import (
	"net/http"
	"strconv"
)

// AppendRequest appends the request line of r, with path as target, and the Host field:
// "GET /path HTTP/1.1", "Host: host". The caller appends the other fields and the empty
// line. Nothing is checked: what [Request.Parse] returned is good.
func AppendRequest(dst []byte, r *Request, host, path []byte) []byte {
	dst = append(dst, r.Method...)
	dst = append(dst, ' ')
	dst = append(dst, path...)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	dst = append(dst, host...)
	return append(dst, "\r\n"...)
}

// AppendStatus appends the status line "HTTP/1.1 200 OK". A nil reason stands for the
// usual one of the status.
func AppendStatus(dst []byte, status int, reason []byte) []byte {
	if status == http.StatusOK && (reason == nil || string(reason) == "OK") {
		return append(dst, "HTTP/1.1 200 OK\r\n"...)
	}
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	if reason == nil {
		dst = append(dst, http.StatusText(status)...)
	}
	dst = append(dst, reason...)
	return append(dst, "\r\n"...)
}

// AppendFields appends field lines, unchecked.
func AppendFields(dst []byte, fields []Field) []byte {
	for i := range fields {
		f := &fields[i]
		dst = append(dst, f.Name...)
		dst = append(dst, ": "...)
		dst = append(dst, f.Value...)
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// AppendField appends one field line, unchecked.
func AppendField(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// AppendChunk appends data as one chunk. Without data it appends nothing: an empty chunk
// would end the content.
func AppendChunk(dst, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	dst = AppendChunkSize(dst, len(data))
	dst = append(dst, data...)
	return append(dst, "\r\n"...)
}

// AppendChunkSize appends the size line of a chunk of n > 0 bytes. The caller sends the
// data and CR LF after it.
func AppendChunkSize(dst []byte, n int) []byte {
	dst = strconv.AppendInt(dst, int64(n), 16)
	return append(dst, "\r\n"...)
}

// AppendLastChunk ends a chunked body: the last chunk, the trailer fields, unchecked,
// and the empty line.
func AppendLastChunk(dst []byte, trailer []Field) []byte {
	dst = append(dst, "0\r\n"...)
	dst = AppendFields(dst, trailer)
	return append(dst, "\r\n"...)
}
