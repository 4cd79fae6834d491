package proxy

import (
	"bytes"
	"net/http"
	"slices"
	"time"
	"unsafe"

	"github.com/abate-go/abate/internal/fieldname"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// text is b as a string without a copy. It is good as long as b does not change: for look-ups and comparisons.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func contains(b []byte, s string) bool {
	for i := 0; i+len(s) <= len(b); i++ {
		if string(b[i:i+len(s)]) == s {
			return true
		}
	}
	return false
}

// named reports whether a field has a name, as many servers see it.
func named(name []byte, want string) bool { return fieldname.Named(name, want) }

// begins reports whether a field's name begins with a prefix, which is in lower case, as many servers see it.
func begins(name []byte, prefix string) bool { return fieldname.Begins(name, prefix) }

// header makes a map of fields, for those who read one. Only failures are looked at so closely.
func header(fields []h1.Field) http.Header {
	h := make(http.Header, len(fields))
	for _, f := range fields {
		h.Add(string(f.Name), string(f.Value))
	}
	return h
}

// appendLines makes fields of lines, which they point into.
func appendLines(fields []h2.Field, lines []byte) []h2.Field {
	for len(lines) > 0 {
		end, colon := bytes.IndexByte(lines, '\n'), bytes.IndexByte(lines, ':')
		fields = append(fields, h2.Field{Name: lines[:colon], Value: lines[colon+2 : end-1]})
		lines = lines[end+1:]
	}
	return fields
}

// inTrailer leaves out the fields that may not be in a trailer.
func inTrailer(fields []h1.Field) []h1.Field {
	stray := func(f h1.Field) bool { return !h1.InTrailer(f.Name) }
	if !slices.ContainsFunc(fields, stray) {
		return fields
	}
	return slices.DeleteFunc(slices.Clone(fields), stray)
}

// bodiless reports whether an answer of that status has no content: RFC 9110 §6.4.1.
func bodiless(status int) bool { return status < 200 || status == 204 || status == 304 }

var crlf = []byte("\r\n")

// appendDate writes when an answer of the proxy's own was made.
func appendDate(dst []byte) []byte {
	dst = time.Now().UTC().AppendFormat(append(dst, "Date: "...), http.TimeFormat)
	return append(dst, "\r\n"...)
}

// The fields of an answer that tell a caller what happened.
const (
	// reasonField says why the proxy and not the service decided the answer.
	reasonField = "Abate-Reason"
	// noRetryField is how API providers tell clients not to try again at once: the proxy has done what could be done.
	noRetryField = "X-Should-Retry"
)
