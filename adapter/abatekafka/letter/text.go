package letter

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// How large what is written about a failure may get, in bytes.
const (
	MaxClass   = 256
	MaxMessage = 1 << 10
	MaxTrace   = 64 << 10 // at most; the policy's maxTrace is 4 KiB by default
	MaxHistory = 2 << 10
)

const ellipsis = "…"

// Cut makes s valid UTF-8 of at most limit bytes, ending in an ellipsis if something is missing and there is room to
// say so.
func Cut(s string, limit int) string {
	limit = max(limit, 0)
	if len(s) > limit { // before it is made valid, which copies: s may be megabytes
		s = strings.ToValidUTF8(s[:runeStart(s, limit)], "�")
		return s[:runeStart(s, max(limit-len(ellipsis), 0))] + ellipsis[:len(ellipsis)*min(limit/len(ellipsis), 1)]
	}
	if s = strings.ToValidUTF8(s, "�"); len(s) > limit {
		return Cut(s, limit)
	}
	return s
}

// runeStart is the last start of a rune at or before at.
func runeStart(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	for i := at; i > max(at-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(s[i]) {
			return i
		}
	}
	return max(at-utf8.UTFMax, 0)
}

func quote(s string) string { return strconv.Quote(Cut(s, 80)) }

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// formatTime writes to the millisecond, which is what Spring's headers and Kafka's timestamps have.
func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

func parseTime(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, s) // takes fractions, too
	return t.UTC(), err == nil && plausible(t)
}

// plausible keeps out times that cannot be written again: RFC 3339 has years of four digits, and Kafka no time before
// 1970.
func plausible(t time.Time) bool { return t.Year() >= 1970 && t.Year() <= 9999 && !t.IsZero() }

// earliest is before any message that anybody waits for: Kafka is younger.
var earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Credible reports whether a time that somebody wrote into a record can be when it was written: after 1999, and at most
// a day ahead of now. Producers whose clock is not set write 0 or a time near it, and those that count in microseconds
// one that is far ahead.
func Credible(t, now time.Time) bool { return t.After(earliest) && !t.After(now.Add(24*time.Hour)) }
