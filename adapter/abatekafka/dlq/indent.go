package dlq

import (
	"bytes"
	"encoding/json"
)

// mostGrowth is how many times larger JSON may get when it is laid out. What is nested deeper than anybody writes it
// would grow ten thousandfold.
const mostGrowth = 16

// Indent lays JSON out for people, two spaces for each level; numbers, the order of keys and what stands twice stay as
// they are. It is false, and b is returned, if b is not an object or a list, or would get more than 16 times as large.
// Cost: it reads b twice.
func Indent(b []byte) (laid []byte, ok bool) {
	text := bytes.TrimSpace(b)
	if len(text) == 0 || text[0] != '{' && text[0] != '[' || indented(text) > mostGrowth*len(text) {
		return b, false
	}
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return b, false
	}
	return out.Bytes(), true
}

// indented is about how many bytes text has when it is laid out.
func indented(text []byte) int {
	depth, size, quoted := 0, len(text), false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			size += 1 + 2*depth
		case c == '}' || c == ']':
			depth--
			size += 1 + 2*max(depth, 0)
		case c == ',':
			size += 1 + 2*max(depth, 0)
		}
	}
	return size
}
