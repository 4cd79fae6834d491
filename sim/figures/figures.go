// Package figures writes numbers for people, the same in a terminal and on a page.
package figures

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Nothing stands for a number that is not there.
const Nothing = "–"

// Finite reports a number that can be shown.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Decimals writes a number with at most n decimals and without zeros at their end.
func Decimals(v float64, n int) string {
	if !Finite(v) {
		return Nothing
	}
	text := strconv.FormatFloat(v, 'f', n, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}

// Thousands writes a number without decimals, in groups of three: 10,000.
func Thousands(v float64) string {
	if !Finite(v) {
		return Nothing
	}
	digits, sign := Decimals(v, 0), ""
	if strings.HasPrefix(digits, "-") {
		digits, sign = digits[1:], "-"
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Pad fills text up with spaces to a width in characters.
func Pad(text string, width int) string { return text + spaces(text, width) }

// PadLeft does so in front of it.
func PadLeft(text string, width int) string { return spaces(text, width) + text }

func spaces(text string, width int) string {
	return strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
}

// Words splits text where a line may end: not between a number and its unit.
func Words(text string) []string {
	var list []string
	for _, word := range strings.Fields(text) {
		switch strings.TrimRight(word, ".,;:)") {
		case "s", "ms", "µs", "%":
			if last := len(list) - 1; last >= 0 {
				list[last] += " " + word
				continue
			}
		}
		list = append(list, word)
	}
	return list
}

// Wrap puts words into lines of at most width characters, unless a word alone is longer. The first begins with prefix,
// the others with as much space.
func Wrap(prefix string, words []string, width int) string {
	var out strings.Builder
	out.WriteString(prefix)
	indent := utf8.RuneCountInString(prefix)
	column := indent
	for i, word := range words {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += n
	}
	return out.String()
}
