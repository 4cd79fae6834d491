package strictyaml

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Root reads the one YAML document in data and returns its root, or reports why it cannot and returns nil.
func (d *Document) Root(data []byte) *yaml.Node {
	if !utf8.Valid(data) {
		line, col := positionAt(data, firstInvalid(data))
		d.FailAt(line, col, "not valid YAML: the file is not UTF-8 text", "save it as UTF-8")
		return nil
	}
	reader := yaml.NewDecoder(bytes.NewReader(data))
	root, err := next(reader)
	if err == io.EOF || err == nil && (root.Kind == 0 || root.ShortTag() == "!!null") {
		d.FailAt(1, 1, "the file is empty", d.Form.Least)
		return nil
	}
	if err == nil {
		var second *yaml.Node
		if second, err = next(reader); err == nil {
			line, col := second.Line, second.Column
			if last, _ := positionAt(data, len(data)); line > last { // nothing follows the ---
				line, col = last, 1
			}
			d.FailAt(line, col, "a second YAML document begins here",
				"one file holds one "+d.Form.Noun+": remove what follows the ---")
			return nil
		}
	}
	if err != io.EOF {
		d.syntax(data, err)
		return nil
	}
	return root
}

// next reads one document. A panic of the YAML library is one more way for it to say no.
func next(reader *yaml.Decoder) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	var n yaml.Node
	if err := reader.Decode(&n); err != nil {
		return nil, err
	}
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		return n.Content[0], nil
	}
	return &n, nil
}

var yamlPrefix = regexp.MustCompile(`^yaml: (line \d+: )?`)

// syntax reports what the YAML library said, at a better place than its own: that has no column, and its line is often
// the one before or where the surrounding block began.
func (d *Document) syntax(data []byte, err error) {
	problem := "not valid YAML: " + yamlPrefix.ReplaceAllString(err.Error(), "")
	fix := mendSyntax(problem, d.Form.Noun)
	noticed, atEnd := whereNoticed(data)
	begun := whereBegun(data, noticed)
	line := noticed
	if atEnd {
		line = begun
	}
	text := lineAt(data, line)
	indent := len(text) - len(strings.TrimLeft(text, " "))
	lookAt, wrong := "", "a bracket, a quote or an indentation may be wrong"
	if begun < line {
		outer, _ := d.place(begun, 1)
		lookAt = fmt.Sprintf("look at what begins on line %d: ", outer)
	}
	if missesColon(problem) { // only the next line, an innocent one, makes that a mistake
		wrong = "a colon, the space after it, or the indentation is wrong"
		if begun >= line-1 {
			lookAt = "look at this line and the one before it: "
		}
	}
	switch {
	case strings.HasPrefix(text[indent:], "\t"):
		fix = "a tab cannot indent: use spaces"
	case lookAt != "":
		fix = lookAt + wrong
	}
	d.FailAt(line, indent+1, problem, fix)
}

func missesColon(problem string) bool {
	return strings.Contains(problem, "mapping values are not allowed") ||
		strings.Contains(problem, "could not find expected ':'")
}

func mendSyntax(problem, noun string) string {
	switch {
	case strings.Contains(problem, "unknown anchor"):
		return "an anchor must stand above its first alias, for example &common"
	case strings.Contains(problem, "max depth"):
		return "nothing in a " + noun + " is nested that deep"
	case strings.Contains(problem, "control characters"):
		return "remove them"
	}
	return "check indentation, quotes and brackets"
}

// whereNoticed is the line that the YAML library was reading when it gave up, and whether it had read everything. It is
// found by handing the text out byte by byte.
func whereNoticed(data []byte) (line int, atEnd bool) {
	r := &dripReader{data: data}
	reader := yaml.NewDecoder(r)
	for {
		if _, err := next(reader); err != nil {
			break
		}
	}
	read := bytes.TrimRight(data[:r.at], " \r\n")
	line, _ = positionAt(data, max(len(read)-1, 0))
	return line, r.at == len(data)
}

type dripReader struct {
	data []byte
	at   int
}

func (r *dripReader) Read(p []byte) (int, error) {
	if r.at == len(r.data) || len(p) == 0 {
		return 0, io.EOF
	}
	p[0] = r.data[r.at]
	r.at++
	return 1, nil
}

// whereBegun is the first line of what the mistake is part of: the lines before it are fine YAML on their own, with it
// they are not. It gives up after some work and answers noticed.
func whereBegun(data []byte, noticed int) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	noticed = min(noticed, len(lines))
	size := 0
	for _, l := range lines[:noticed] {
		size += len(l)
	}
	const work = 4 << 20 // bytes to parse at most
	for line, done := noticed, 0; line > 0 && done < work; line-- {
		size -= len(lines[line-1])
		done += size + 1
		if parses(data[:size]) {
			return line
		}
	}
	return noticed
}

func parses(data []byte) bool {
	reader := yaml.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := next(reader); err != nil {
			return err == io.EOF
		}
	}
}

// positionAt is line and column of a byte.
func positionAt(data []byte, offset int) (line, col int) {
	before := data[:offset]
	line = bytes.Count(before, []byte("\n")) + 1
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

func firstInvalid(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

func lineAt(data []byte, line int) string {
	lines := bytes.SplitN(data, []byte("\n"), line+1)
	if line > len(lines) {
		return ""
	}
	return string(lines[line-1])
}
