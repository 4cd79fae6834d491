package distribution

import (
	"strconv"
	"strings"
	"time"
)

// String returns the form in words: what Parse reads, and reads back as the same.
func (d Distribution) String() string {
	switch d.kind {
	case exponential:
		return "exponential " + duration(d.a)
	case lognormalMedian:
		return "lognormal median " + duration(d.a) + " p99 " + duration(d.b)
	case lognormalMean:
		return "lognormal mean " + duration(d.a) + " cv " + number(d.cv)
	case uniform:
		return "uniform " + duration(d.a) + ".." + duration(d.b)
	case normal:
		return "normal " + duration(d.a) + " sd " + duration(d.b)
	case quantiles:
		var b strings.Builder
		b.WriteString("quantiles")
		for _, p := range d.points {
			b.WriteString(" p" + number(p.percent) + " " + duration(p.value))
		}
		return b.String()
	case mixture:
		parts := make([]string, len(d.parts))
		for i, p := range d.parts {
			parts[i] = number(p.percent) + "% " + p.d.String()
		}
		return strings.Join(parts, ", ")
	}
	return duration(d.a)
}

// MarshalText is String.
func (d Distribution) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// duration is Duration.String in letters every keyboard has, without parts that are 0.
func duration(d time.Duration) string {
	s := strings.Replace(d.String(), "µs", "us", 1)
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
