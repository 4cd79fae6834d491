package hops

import (
	"strconv"
	"strings"

	"github.com/abate-go/abate/core"
)

// AppendAllowance appends the value of Abate-Retry-Allowance, as in `2;owner="payment-service"`: an RFC 9651 Item, an
// Integer with the parameter owner, a String. An owner is cut after 128 bytes, and what a String cannot hold becomes
// "?". It allocates nothing if dst has room.
func AppendAllowance(dst []byte, a core.Allowance) []byte {
	dst = strconv.AppendInt(dst, int64(min(max(a.Left, 0), core.MaxAllowance)), 10)
	if a.Owner == "" {
		return dst
	}
	dst = append(dst, `;owner="`...)
	for i := 0; i < len(a.Owner) && i < maxOwner; i++ {
		switch c := a.Owner[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c > '~':
			dst = append(dst, '?')
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// ParseAllowance reads such a value. Parameters that it does not know are skipped. False if it is no such Item, or
// negative: then it is as if the header were not there. More than core.MaxAllowance is that. It allocates only for an
// owner with escapes.
func ParseAllowance(value string) (core.Allowance, bool) {
	it, ok := parseItem(value)
	if !ok || it.n < 0 {
		return core.Allowance{}, false
	}
	return core.Allowance{Left: int(min(it.n, core.MaxAllowance)), Owner: it.owner}, true
}

// LeastAllowance is ParseAllowance for all values of the header together, on several lines or joined by commas on the
// way: the least counts. False if none can be read.
func LeastAllowance(values []string) (least core.Allowance, ok bool) {
	for _, v := range values {
		for more := true; more; {
			var one string
			one, v, more = cutMember(v)
			if a, good := ParseAllowance(one); good && (!ok || a.Left < least.Left) {
				least, ok = a, true
			}
		}
	}
	return least, ok
}

// cutMember cuts s around the first comma that is not inside a String.
func cutMember(s string) (member, rest string, more bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ',' && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// AppendMade appends the value of Abate-Retries-Made, as in `2;final`. It allocates nothing if dst has room.
func AppendMade(dst []byte, b core.Below) []byte {
	dst = strconv.AppendInt(dst, int64(min(max(b.Made, 0), core.MaxAllowance)), 10)
	if b.Final {
		dst = append(dst, ";final"...)
	}
	return dst
}

// ParseMade reads such a value. False if it is none. It allocates nothing.
func ParseMade(value string) (core.Below, bool) {
	it, ok := parseItem(value)
	if !ok || it.n < 0 {
		return core.Below{}, false
	}
	return core.Below{Said: true, Made: int(min(it.n, core.MaxAllowance)), Final: it.final}, true
}

// MostMade is ParseMade for all values of the header together, on several lines or joined by commas on the way: the
// highest number counts, and one that is final makes all so. What cannot be read says nothing.
func MostMade(values []string) (most core.Below) {
	for _, v := range values {
		for more := true; more; {
			var one string
			one, v, more = cutMember(v)
			if b, ok := ParseMade(one); ok {
				most = core.Below{Said: true, Made: max(most.Made, b.Made), Final: most.Final || b.Final}
			}
		}
	}
	return most
}

// item is an RFC 9651 Item: an Integer, with the parameters that matter here.
type item struct {
	n     int64
	owner string
	final bool
}

func parseItem(s string) (it item, ok bool) {
	s = strings.Trim(s, " \t") // RFC 9651 has spaces only, but around a line and a comma RFC 9110 has tabs as well
	digits := 0
	for digits < len(s) && (s[digits] >= '0' && s[digits] <= '9' || digits == 0 && s[0] == '-') {
		digits++
	}
	if digits == 0 || s[:digits] == "-" || len(strings.TrimPrefix(s[:digits], "-")) > 15 { // RFC 9651 §3.3.1
		return it, false
	}
	it.n, _ = strconv.ParseInt(s[:digits], 10, 64)
	for s = s[digits:]; s != ""; {
		if s[0] != ';' {
			return it, false
		}
		var key, value string
		if key, value, s, ok = parseParameter(strings.TrimLeft(s[1:], " ")); !ok {
			return it, false
		}
		switch key {
		case "owner":
			it.owner = value
		case "final":
			it.final = value != "?0"
		}
	}
	return it, true
}

// parseParameter reads key or key=value. A String comes without its quotes, everything else, with a Display String in
// its own notation, as it stands.
func parseParameter(s string) (key, value, rest string, ok bool) {
	n := 0
	for n < len(s) && keyChar(s[n], n == 0) {
		n++
	}
	if key, s = s[:n], s[n:]; n == 0 {
		return "", "", "", false
	}
	if s == "" || s[0] != '=' {
		return key, "", s, true
	}
	if s = s[1:]; s != "" && s[0] == '"' {
		value, rest, ok = parseString(s[1:])
		return key, value, rest, ok
	}
	if strings.HasPrefix(s, `%"`) {
		value, rest, ok = strings.Cut(s[2:], `"`)
		return key, value, rest, ok
	}
	n = 0
	for n < len(s) && s[n] != ';' && s[n] > ' ' && s[n] <= '~' && s[n] != '"' && s[n] != ',' {
		n++
	}
	return key, s[:n], s[n:], n > 0
}

func keyChar(c byte, first bool) bool {
	return c >= 'a' && c <= 'z' || c == '*' || !first && (c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.')
}

// parseString reads a String behind its first quote.
func parseString(s string) (value, rest string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[:i], s[i+1:], true
		case c == '\\':
			return parseEscaped(s, i)
		case c < ' ' || c > '~':
			return "", "", false
		}
	}
	return "", "", false
}

// parseEscaped is parseString for one whose first escape is at i.
func parseEscaped(s string, i int) (value, rest string, ok bool) {
	b := append(make([]byte, 0, len(s)), s[:i]...)
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return string(b), s[i+1:], true
		case c == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", "", false
			}
			b = append(b, s[i])
		case c < ' ' || c > '~':
			return "", "", false
		default:
			b = append(b, c)
		}
	}
	return "", "", false
}
