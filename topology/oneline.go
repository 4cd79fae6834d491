package topology

import (
	"strings"
	"unicode"
)

// OneLine returns a text with a space in place of each character that ends a line, is not to be seen, or turns the
// order of those behind it.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}
