package awssdk

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

// assignment is a line of a file of variables: .env, the env_file of a compose file, EnvironmentFile of systemd.
var assignment = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*[=:]\s*(.*?)\s*$`)

var (
	variable = regexp.MustCompile(`(?m)^(?:\x{FEFF})?\s*(?:export\s+)?(?:` + attemptsVariable + `|` + modeVariable +
		`)\s*[=:]`)
	note  = regexp.MustCompile(`[ \t]+#.*$`)
	shell = regexp.MustCompile(`\$(\w+)`)
)

// examples are names of files that somebody is to copy, and nobody reads unless a compose file names them.
var examples = regexp.MustCompile(`(?i)[._-](example|sample|template|dist|tmpl|tpl)$|^(example|sample)\.env$`)

// isVariables reports whether a file is one of variables by its name, so that it is read whatever else is in it.
func isVariables(file string) bool {
	base := strings.ToLower(path.Base(file))
	return base == ".env" || strings.HasPrefix(base, ".env.") || strings.HasSuffix(base, ".env")
}

// isEnvironment reports whether a text is a file of variables with one of those that are read: by its name, or because
// it has nothing else.
func isEnvironment(d *source.Document) bool {
	if !bytes.Contains(d.Data, []byte("AWS_")) || !variable.Match(d.Data) {
		return false
	}
	if isVariables(nameOf(d)) {
		return true
	}
	in := lines{}
	for line := range bytes.Lines(d.Data) {
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\uFEFF")))
		if inside := in.quote != 0; in.passes(string(line)) || inside {
			continue
		}
		if len(line) > 0 && line[0] != '#' && (!assignment.Match(line) || colon.Match(line)) {
			return false
		}
	}
	return true
}

// nameOf is the name of a file of variables, which may be in another file.
func nameOf(d *source.Document) string { return cmp.Or(d.Name, d.File) }

// colon is a line of YAML, which only files with a name of variables may have.
var colon = regexp.MustCompile(`^[^=]*:\s`)

// lines knows which lines belong to a value in quotes that began above them.
type lines struct{ quote byte }

// passes reports whether a line is the first of a value that goes on below it, and takes note of it. A line that ends
// such a value changes that.
func (l *lines) passes(line string) bool {
	rest := line
	if strings.IndexByte(line, '"') < 0 && strings.IndexByte(line, '\'') < 0 {
		return l.quote != 0
	}
	if l.quote == 0 {
		m := assignment.FindStringSubmatch(line)
		if m == nil || m[2] == "" || m[2][0] != '"' && m[2][0] != '\'' {
			return false
		}
		l.quote, rest = m[2][0], m[2][1:]
	}
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && l.quote == '"':
			i++
		case rest[i] == l.quote:
			l.quote = 0
			return false
		}
	}
	return true
}

// settings reads a file of variables. Of several lines with one variable the last counts.
func settings(d *source.Document) client {
	var c client
	in, text := lines{}, strings.Split(string(d.Data), "\n")
	for i, line := range text {
		bom := 0
		if i == 0 && strings.HasPrefix(line, "\uFEFF") {
			line, bom = strings.TrimPrefix(line, "\uFEFF"), 1
		}
		inside := in.quote != 0
		if opens := in.passes(line); opens && !inside && !closes(text[i+1:], in.quote) {
			in.quote = 0 // a quote that nothing closes is of this line
		}
		if inside || !strings.Contains(line, "AWS_") {
			continue
		}
		at := assignment.FindStringSubmatchIndex(line)
		if at == nil {
			continue
		}
		name, value := line[at[2]:at[3]], line[at[4]:at[5]]
		column := len([]rune(line[:at[4]])) + 1 + bom
		if quote := value[:min(1, len(value))]; quote == `"` || quote == "'" {
			value, _, _ = strings.Cut(value[1:], quote)
			column++
		} else {
			value = note.ReplaceAllString(" "+value, "")
			value = strings.TrimSpace(value)
		}
		c.set(name, source.Part{Text: shell.ReplaceAllString(value, "$${$1}"), At: d.At(i+1, column)})
	}
	return c
}

func closes(lines []string, quote byte) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return strings.IndexByte(l, quote) >= 0 })
}

// program is what files of variables of one folder say.
type program struct {
	service string
	base    client
	stages  []client
}

// programs sorts files of variables by the program that reads them. Those of one folder whose names begin with .env are
// one program's.
func programs(files []*source.Document) []*program {
	known := map[string]*program{}
	var all []*program
	for _, d := range files {
		base, key := strings.ToLower(path.Base(d.File)), d.File+"\n"+d.Name
		family := d.Name == "" && (base == ".env" || strings.HasPrefix(base, ".env."))
		if family {
			key = path.Dir(d.File)
		}
		p := known[key]
		if p == nil {
			p = &program{service: d.Service("aws-client")}
			known[key] = p
			all = append(all, p)
		}
		if c := settings(d); family && base != ".env" {
			p.stages = append(p.stages, c)
		} else {
			p.base = c
		}
	}
	return all
}

// variables reads the files of variables that no compose file gives to a service. What .env.local or .env.production
// leave out is that of .env, and which of them is read no file says: a call is one or the other.
func (r *reader) variables(files []*source.Document) {
	for _, p := range programs(files) {
		ways := []client{p.base}
		for _, c := range p.stages {
			c.fill(p.base)
			ways = append(ways, c)
		}
		r.add(p.service, "variables of "+p.service, ways...)
	}
}

// given returns the files of variables that compose files name, by path, and those that none does and that are no
// examples.
func given(docs, files []*source.Document) (byPath map[string]client, others []*source.Document) {
	named := map[string]bool{}
	for _, d := range docs {
		for _, service := range d.Root.Get("services").Pairs() {
			for _, name := range envFiles(d, service.Value) {
				named[name] = true
			}
		}
	}
	byPath = map[string]client{}
	for _, d := range files {
		if name := path.Clean(d.File); d.Name == "" && named[name] {
			byPath[name] = settings(d)
			continue
		}
		if !examples.MatchString(path.Base(nameOf(d))) {
			others = append(others, d)
		}
	}
	return byPath, others
}

// envFiles returns the files of variables of a service of a compose file, the last first: it counts before the others.
func envFiles(d *source.Document, service source.Node) []string {
	var names []string
	for _, n := range service.Get("env_file").List() {
		name := n.Text()
		if n.IsMap() {
			name = n.Get("path").Text()
		}
		names = append(names, path.Join(path.Dir(d.File), name))
	}
	slices.Reverse(names)
	return names
}
