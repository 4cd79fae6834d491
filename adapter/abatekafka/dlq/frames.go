package dlq

import "strings"

// tracePattern is the top of a trace, the innermost frames first, without arguments, files and lines: "Shop.charge <
// Shop.handle". It is empty if the text has no frames.
func tracePattern(trace string) string {
	if at := strings.LastIndex(trace, "\nCaused by: "); at >= 0 {
		trace = trace[at:] // Java puts the root cause last
	}
	var found []string
	var before string
	for line := range strings.Lines(trace) {
		if f := frame(line, before); f != "" {
			if found = append(found, pattern(f)); len(found) == frames {
				break
			}
		}
		before = line
	}
	return cut(strings.Join(found, " < "), longestPattern)
}

// frame is the function of a frame, or empty if line shows none. Java and .NET write "at function(file:line)". Go
// writes the function in one line and its file, after a tab, in the next.
func frame(line, before string) string {
	text := strings.TrimSpace(line)
	if f, ok := strings.CutPrefix(text, "at "); ok {
		f, _, _ = strings.Cut(f, "(")
		return f
	}
	if !strings.HasPrefix(line, "\t") || !strings.Contains(text, ":") || strings.HasPrefix(before, "\t") {
		return ""
	}
	f := strings.TrimSpace(before)
	if at := strings.LastIndexByte(f, '('); at > 0 {
		f = f[:at]
	}
	if f == "" || f == "panic" || strings.HasPrefix(f, "runtime.") || strings.HasPrefix(f, "runtime/") ||
		strings.HasPrefix(f, "goroutine ") {
		return "" // how it panicked, not where
	}
	return f
}
