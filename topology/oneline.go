package topology

import (
	"strings"
	"unicode"
)

// OneLine returns a text with a space in place of each character that ends a line or is not to be seen.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
