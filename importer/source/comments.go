package source

import (
	"bytes"
	"encoding/json"
)

// plainJSON returns JSON without the comments and the commas before a closing bracket that .NET and others allow in it,
// with spaces in their place, so that everything stays where it is. It is data itself where that is not such JSON.
func plainJSON(data []byte) []byte {
	text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if len(text) == 0 || text[0] != '{' && text[0] != '[' && text[0] != '/' || json.Valid(text) {
		return data
	}
	out := bytes.Clone(data)
	comma := -1 // of the last member, while nothing has come behind it
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			comma = -1
		case c == '/' && bytes.HasPrefix(out[i:], []byte("//")):
			i = blank(out, i, bytes.IndexByte(out[i:], '\n'))
		case c == '/' && bytes.HasPrefix(out[i:], []byte("/*")):
			end := bytes.Index(out[i+2:], []byte("*/"))
			if end >= 0 {
				end += 4
			}
			i = blank(out, i, end)
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	if !json.Valid(bytes.TrimSpace(bytes.TrimPrefix(out, []byte("\xef\xbb\xbf")))) {
		return data
	}
	return out
}

// blank writes spaces over n bytes from a place on, to the end if n is below 0, and returns the place of the last one.
func blank(data []byte, from, n int) int {
	if n < 0 {
		n = len(data) - from
	}
	for i := from; i < from+n; i++ {
		if data[i] != '\n' && data[i] != '\r' {
			data[i] = ' '
		}
	}
	return from + n - 1
}
