package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/abate-go/abate/topology"
	"go.yaml.in/yaml/v3"
)

// Document is one document of a file, or the whole file where its format has only one.
type Document struct {
	File string // with slashes, as positions name it
	Data []byte // as it stands in the file; of a stream, the part that is this document
	Line int    // the line of the file before the first line of Data: 0 for a file's first document
	Root Node   // of YAML and JSON; does not exist for other formats
	// Name is what the file calls the text when it is embedded: the key of a ConfigMap. It is empty otherwise.
	Name string
	// Owner is the service that the text configures, when the document around it says so; it may be empty.
	Owner string

	indent int
	at     topology.Position // of all that the document says, where its text does not stand in the file as it is
	quoted *quoted           // where it is, if it stands in quotes on one line
	hcl    bool              // whether Terraform puts values into it: ${…}
}

// At returns the place of a line, from 1, and a column, from 1, of Data.
func (d *Document) At(line, column int) topology.Position {
	switch {
	case d.quoted != nil:
		return d.quoted.at(d.File, d.Line+line, column)
	case !d.at.IsZero():
		return d.at
	}
	if column > 0 {
		column += d.indent
	}
	return topology.Position{File: d.File, Line: d.Line + line, Column: column}
}

var separator = regexp.MustCompile(`(?m)^---(?:[ \t\r].*)?$`)

// YAML splits a stream of YAML or JSON documents and parses each. A document that is not YAML is left out, and is a
// remark; the documents around it are read.
func YAML(file string, data []byte) ([]Document, []topology.Remark) {
	return yamlOf(Document{File: file, Data: data})
}

func yamlOf(whole Document) (documents []Document, remarks []topology.Remark) {
	if root := jsonRoot(whole.Data); root != nil {
		whole.Root = Node{where: whole.place(), branch: root}
		return []Document{whole}, nil
	}
	whole.Data = plainBreaks(whole.Data)
	if d := whole.directive(); d != nil {
		return nil, []topology.Remark{*d}
	}
	read := 0
	for _, d := range parts(whole) {
		if read += len(d.Data); read > maxYAML && read > len(d.Data) {
			d.Data = nil // it is not looked at
			return documents, append(remarks, broken(&d, fmt.Errorf("what is before it is %d MiB of YAML already; this "+
				"and what is behind it is left out", maxYAML>>20)))
		}
		root, err := d.parsed()
		switch {
		case err != nil:
			remarks = append(remarks, broken(&d, err))
		case root != nil:
			d.Root = Node{y: root, where: d.place()}
			documents = append(documents, d)
		}
	}
	return documents, remarks
}

// parts cuts a stream at its separators.
func parts(whole Document) []Document {
	var out []Document
	add := func(data []byte, line int) {
		if len(bytes.TrimSpace(data)) > 0 {
			d := whole
			d.Data, d.Line = data, whole.Line+line
			out = append(out, d)
		}
	}
	start, line := 0, 0
	for _, at := range separator.FindAllIndex(whole.Data, -1) {
		add(whole.Data[start:at[0]], line)
		line += bytes.Count(whole.Data[start:at[1]], []byte("\n"))
		start = at[1]
	}
	add(whole.Data[start:], line)
	return out
}

// parse returns the node of the one document in data, or nil when it is empty.
func parse(data []byte) (node *yaml.Node, err error) {
	if len(data) > maxYAML {
		return nil, fmt.Errorf("%d MiB of YAML; more than %d MiB are read of JSON only", len(data)>>20, maxYAML>>20)
	}
	defer func() {
		if r := recover(); r != nil { // the YAML library panics on some broken input
			node, err = nil, fmt.Errorf("yaml: %v", r)
		}
	}()
	var document yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	if err := fits(document.Content[0]); err != nil {
		return nil, err
	}
	return document.Content[0], nil
}

// plainBreaks returns a text with a space in place of each character that only YAML 1.1 takes for the end of a line.
// Everybody else counts lines without them, so that what is behind would be looked for in a wrong one.
func plainBreaks(data []byte) []byte {
	for _, c := range []string{"\u0085", "\u2028", "\u2029"} {
		if bytes.Contains(data, []byte(c)) {
			data = bytes.ReplaceAll(data, []byte(c), []byte(" "))
		}
	}
	return data
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

func broken(d *Document, err error) topology.Remark {
	line, text := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = strings.Replace(text, m[0], "", 1)
	}
	r := topology.Remark{Rule: "F606", At: d.At(line, 0), Subject: "document",
		Text: "this document could not be read: " + text, Fix: "correct it; the other documents of the file were read"}
	if Template(string(d.Data)) != "" {
		r.Fix = "it is a template; pass it as it is rendered (helm template … | abate audit -, " +
			"kustomize build … | abate audit -)"
	}
	return r
}

// Parsed returns the documents of an embedded text as YAML parses it.
func (d Document) Parsed() ([]Document, []topology.Remark) { return yamlOf(d) }

var template = regexp.MustCompile(`\{\{[^\n]*?\}\}|\$\{[^}\n]*\}|\{%[^\n]*?%\}|<%[^\n]*?%>`)

// Template returns the first template expression in s, or nothing.
func Template(s string) string { return template.FindString(s) }
