package report

import (
	"math"
	"strings"

	"github.com/abate-go/abate/sim/figures"
)

const (
	nothing = figures.Nothing // stands for a number that is not there
	space   = "\u00a0"        // that does not break a line

	wordJoiner = "\u2060" // keeps what is around it on one line
)

// number writes a number with about three digits that mean something.
func number(v float64) string {
	switch size := math.Abs(v); {
	case !figures.Finite(v):
		return nothing
	case size >= 99.95:
		return figures.Thousands(v)
	case size >= 9.995:
		return figures.Decimals(v, 1)
	case size >= 0.0995 || v == 0:
		return figures.Decimals(v, 2)
	case size >= 0.00995:
		return figures.Decimals(v, 3)
	default:
		return figures.Decimals(v, 5)
	}
}

// percent writes a share, finer towards none and all: what is neither never reads as if it were.
func percent(share float64) string {
	if !figures.Finite(share * 100) {
		return nothing
	}
	tail, places := math.Min(math.Abs(share), math.Abs(1-share)), 0
	switch {
	case tail == 0:
	case tail < 0.0001:
		if share < 0.5 {
			return "<" + space + "0.01" + space + "%"
		}
		return ">" + space + "99.99" + space + "%"
	case tail < 0.00995:
		places = 2
	case tail < 0.0995:
		places = 1
	}
	return figures.Decimals(share*100, places) + space + "%"
}

// seconds writes a length of time: "0.4 ms", "51 ms", "12.3 s", "3 min 20 s", "4 h 5 min".
func seconds(s float64) string {
	size := math.Abs(s)
	switch {
	case !figures.Finite(s):
		return nothing
	case s == 0:
		return "0" + space + "s"
	case size < 0.000995:
		return figures.Decimals(s*1e6, 0) + space + "µs"
	case size < 0.00995:
		return figures.Decimals(s*1e3, 1) + space + "ms"
	case size < 0.9995:
		return figures.Decimals(s*1e3, 0) + space + "ms"
	case size < 9.995:
		return figures.Decimals(s, 2) + space + "s"
	case size < 119.95:
		return figures.Decimals(s, 1) + space + "s"
	}
	return longTime(s)
}

// longTime writes minutes and hours.
func longTime(s float64) string {
	big, small, unit := 60.0, "s", "min"
	if math.Abs(s) >= 7200 {
		big, small, unit, s = 60, "min", "h", s/60
	}
	all := math.Round(s)
	text := figures.Thousands(math.Trunc(all/big)) + space + unit
	if rest := math.Mod(math.Abs(all), big); rest > 0 {
		text += space + figures.Decimals(rest, 0) + space + small
	}
	return text
}

// The units of numbers, as sim.Measure has them.
const (
	unitNone  = ""
	unitTime  = "s"
	unitShare = "share"
	unitRate  = "1/s"
	unitCount = "count"
	unitTimes = "x" // a factor; ours alone
)

// quantity writes a number in its unit.
func quantity(v float64, unit string) string {
	if !figures.Finite(v) {
		return nothing
	}
	switch unit {
	case unitTime:
		return seconds(v)
	case unitShare:
		return percent(v)
	case unitRate:
		return number(v) + "/s"
	case unitCount:
		return figures.Thousands(v)
	case unitTimes:
		return number(v) + space + "×"
	}
	return number(v)
}

// maybe writes a number that may never have been reached.
func maybe(v *float64, unit, never string) string {
	if v == nil || !figures.Finite(*v) {
		return never
	}
	return quantity(*v, unit)
}

// plural writes a number of things.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1" + space + one
	}
	return figures.Thousands(float64(n)) + space + many
}

// list joins words as people do: "a", "a and b", "a, b and c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
