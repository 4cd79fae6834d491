// Package figures writes numbers for people, the same in a terminal and on a page.
package figures

import (
	"math"
	"strconv"
	"strings"
)

// Nothing stands for a number that is not there.
const Nothing = "–"

// Finite tells of a number that can be shown.
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
