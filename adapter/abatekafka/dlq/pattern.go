package dlq

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	longestPattern = 300 // bytes
	frames         = 3   // of a trace that count
)

// pattern leaves out of a message what differs from one letter to the next of the same mistake: numbers, hexadecimal,
// UUIDs, times and quoted text. It is one line of UTF-8 of at most 300 bytes, without any digit.
func pattern(text string) string {
	p := patterner{rest: text}
	for p.rest != "" && p.out.Len() < longestPattern {
		p.step()
	}
	return cut(strings.TrimSpace(p.out.String()), longestPattern)
}

// patterner rewrites a text from left to right.
type patterner struct {
	rest string
	out  strings.Builder
	last rune // of the text, before rest
}

func (p *patterner) step() {
	r, size := utf8.DecodeRuneInString(p.rest)
	switch {
	case isAlnum(r) && p.token():
		return
	case r == '"' || r == '`' || r == '\'' && !unicode.IsLetter(p.last) && !unicode.IsDigit(p.last):
		if p.quoted(byte(r)) {
			return
		}
		p.out.WriteRune(r)
	case unicode.IsSpace(r):
		if !unicode.IsSpace(p.last) {
			p.out.WriteByte(' ')
		}
	case unicode.IsDigit(r): // of other scripts
		p.out.WriteString("<n>")
	case r != utf8.RuneError && unicode.IsPrint(r):
		p.out.WriteRune(r)
	}
	p.last, p.rest = r, p.rest[size:]
}

// quoted leaves out what stands in quotes.
func (p *patterner) quoted(quote byte) bool {
	end := strings.IndexByte(p.rest[1:], quote)
	if end <= 0 {
		return false
	}
	p.out.WriteByte(quote)
	p.out.WriteString("…")
	p.out.WriteByte(quote)
	p.last, p.rest = rune(quote), p.rest[end+2:]
	return true
}

// token rewrites a word of ASCII letters and digits, or a number, a UUID or a time that begins here.
func (p *patterner) token() bool {
	if isAlnum(p.last) {
		return false
	}
	if n := timeLength(p.rest); n > 0 {
		return p.replace(n, "<time>")
	}
	if n := uuidLength(p.rest); n > 0 {
		return p.replace(n, "<id>")
	}
	n := 0
	for n < len(p.rest) && isAlnum(rune(p.rest[n])) {
		n++
	}
	word := p.rest[:n]
	switch digits, turns := shape(word); {
	case digits == 0:
		return p.replace(n, word)
	case digits == n:
		return p.replace(numberLength(p.rest), "<n>")
	case isHex(word):
		return p.replace(n, "<hex>")
	case n >= 10 && turns >= 3: // letters and digits by turns: an id
		return p.replace(n, "<id>")
	}
	return p.replace(n, withoutDigits(word))
}

func (p *patterner) replace(n int, by string) bool {
	p.out.WriteString(by)
	p.last, _ = utf8.DecodeLastRuneInString(p.rest[:n])
	p.rest = p.rest[n:]
	return true
}

// shape counts the digits of a word, and how often digits follow letters.
func shape(word string) (digits, turns int) {
	for i := range len(word) {
		if isDigit(word[i]) {
			digits++
			if i > 0 && !isDigit(word[i-1]) {
				turns++
			}
		}
	}
	return digits, turns
}

// isHex reports a word with digits in it: 0x... or 8 or more hexadecimal digits.
func isHex(word string) bool {
	digits := strings.TrimPrefix(strings.TrimPrefix(word, "0x"), "0X")
	return (len(digits) < len(word) && digits != "" || len(word) >= 8) && strings.Trim(digits, hexDigits) == ""
}

func withoutDigits(word string) string {
	var b strings.Builder
	for i := range len(word) {
		switch {
		case !isDigit(word[i]):
			b.WriteByte(word[i])
		case i == 0 || !isDigit(word[i-1]):
			b.WriteString("<n>")
		}
	}
	return b.String()
}

// numberLength is that of digits with points, commas and underscores between them: 1,024.5 or 10.0.0.17.
func numberLength(s string) int {
	n := 0
	for n < len(s) && (isDigit(s[n]) || n+1 < len(s) && strings.IndexByte(".,_", s[n]) >= 0 && isDigit(s[n+1])) {
		n++
	}
	return n
}

const (
	uuidForm  = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	hexDigits = "0123456789abcdefABCDEF"
)

func uuidLength(s string) int {
	if len(s) < len(uuidForm) || len(s) > len(uuidForm) && isAlnum(rune(s[len(uuidForm)])) {
		return 0
	}
	for i := range len(uuidForm) {
		if dash := uuidForm[i] == '-'; dash != (s[i] == '-') || !dash && strings.IndexByte(hexDigits, s[i]) < 0 {
			return 0
		}
	}
	return len(uuidForm)
}

// timeLength is that of a date, 2026-01-31, and of the time of day that may follow: T10:20:30.123+01:00.
func timeLength(s string) int {
	const date, clock = "dddd-dd-dd", "dd:dd"
	if !formed(s, date) {
		return 0
	}
	n := len(date)
	if len(s) == n || s[n] != 'T' && s[n] != ' ' || !formed(s[n+1:], clock) {
		return n
	}
	n += 1 + len(clock)
	for n < len(s) && (isDigit(s[n]) || n+1 < len(s) && strings.IndexByte(":.,+-", s[n]) >= 0 && isDigit(s[n+1])) {
		n++
	}
	if n < len(s) && s[n] == 'Z' {
		n++
	}
	return n
}

// formed reports whether s begins like form, in which d is a digit.
func formed(s, form string) bool {
	if len(s) < len(form) {
		return false
	}
	for i := range len(form) {
		if digit := form[i] == 'd'; digit && !isDigit(s[i]) || !digit && s[i] != form[i] {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// cut shortens a text to n bytes of valid UTF-8, with an ellipsis.
func cut(s string, n int) string {
	if len(s) <= n {
		return strings.ToValidUTF8(s, "")
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}
