package letter

import (
	"strings"
	"time"
)

// Past is one failure in a message's history.
type Past struct {
	Topic string
	At    time.Time
	Class string
}

// formatHistory writes one failure a line, as many of the newest as fit into limit.
func formatHistory(past []Past, limit int) string {
	lines := make([]string, len(past))
	first := len(past)
	for size := 0; first > 0; first-- {
		p := past[first-1]
		line := formatTime(p.At) + " " + oneWord(p.Topic) + " " + oneLine(Cut(p.Class, MaxClass))
		if size += len(line) + 1; size > limit+1 { // no newline after the last
			break
		}
		lines[first-1] = line
	}
	return strings.Join(lines[first:], "\n")
}

// parseHistory reads what formatHistory wrote; bad counts the lines it could not read.
func parseHistory(s string) (past []Past, bad int) {
	for line := range strings.SplitSeq(s, "\n") {
		at, rest, ok := strings.Cut(line, " ")
		topic, class, ok2 := strings.Cut(rest, " ")
		t, ok3 := parseTime(at)
		if !ok || !ok2 || !ok3 {
			bad++
			continue
		}
		past = append(past, Past{Topic: unword(topic), At: t, Class: class})
	}
	return past, bad
}

// oneWord keeps a topic that is missing from shifting the class to its place.
func oneWord(s string) string {
	if s = strings.Join(strings.Fields(s), ""); s == "" {
		return "-"
	}
	return s
}

func unword(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

var newlines = strings.NewReplacer("\n", " ", "\r", " ")

func oneLine(s string) string { return newlines.Replace(s) }
