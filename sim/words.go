package sim

import (
	"math"
	"strconv"
	"strings"
)

// number writes a number for people: 10,000 or 65.2.
func number(v float64) string {
	if math.Abs(v) < 100 {
		return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
	}
	digits := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// short writes a factor with three digits at most.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
