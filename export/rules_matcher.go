package export

import (
	"regexp"
	"strconv"
	"strings"
)

// matcher matches the series of a service: its name is that of the file, in which anything printable may stand.
func matcher(service string) string { return "service=" + strconv.Quote(label(service)) }

// othersThan matches the series of all services but these. Prometheus anchors the pattern by itself.
func othersThan(services []string) string {
	if len(services) == 0 {
		return `service!=""`
	}
	quoted := make([]string, len(services))
	for i, name := range services {
		quoted[i] = regexp.QuoteMeta(label(name))
	}
	return "service!~" + strconv.Quote(strings.Join(quoted, "|"))
}

// label is a name as adapter/abateprom makes it a label.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// literal is text for a place where Prometheus expects a template.
func literal(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }
