package export

import "strings"

// label is a name as internal/metrics makes it a label.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// literal is text for a place where Prometheus expects a template.
func literal(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }
