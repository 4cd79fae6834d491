package awssdk

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

// assignment is a line of a file of variables: .env, the env_file of a compose file, EnvironmentFile of systemd.
var assignment = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$`)

var variable = regexp.MustCompile(`(?m)^\s*(?:export\s+)?(?:` + attemptsVariable + `|` + modeVariable + `)\s*=`)

// isEnvironment reports whether a text has nothing but variables, and one of those that are read.
func isEnvironment(data []byte) bool {
	if !variable.Match(data) {
		return false
	}
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !assignment.Match(line) {
			return false
		}
	}
	return true
}

// variables reads a file of variables. Of several lines with one variable the last counts.
func (r *reader) variables(d *source.Document) {
	c := client{service: d.Service("aws-client")}
	for i, line := range strings.Split(string(d.Data), "\n") {
		at := assignment.FindStringSubmatchIndex(line)
		if at == nil {
			continue
		}
		name, value, column := line[at[2]:at[3]], line[at[4]:at[5]], at[4]+1
		if quote := value[:min(1, len(value))]; quote == `"` || quote == "'" {
			value, _, _ = strings.Cut(value[1:], quote)
			column++
		} else if end := strings.Index(value, " #"); end >= 0 {
			value = strings.TrimSpace(value[:end])
		}
		c.set(name, source.Part{Text: value, At: d.At(i+1, column)})
	}
	r.add(c.service, "variables of "+c.service, c)
}
