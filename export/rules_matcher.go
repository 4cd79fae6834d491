package export

import (
	"strconv"
	"strings"
)

// matcher matches the series of a service: its name is that of the file, in which anything printable may stand.
func matcher(service string) string { return "service=" + strconv.Quote(label(service)) }

// label is a name as adapter/abateprom makes it a label.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// literal is text for a place where Prometheus expects a template.
func literal(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }
