package source

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
)

// prose are the ends of names of files for people, and of programs, in which a configuration is an example.
var prose = []string{".md", ".markdown", ".txt", ".rst", ".adoc", ".html", ".htm", ".go", ".java", ".kt", ".py",
	".js", ".ts",
	".rb", ".c", ".h", ".cc", ".cpp", ".rs", ".php", ".lua", ".sh"}

// Prose reports whether a document is for people or is a program, by the name of its file. A configuration in it is an
// example, and the format of such files is not that of what they quote.
func (d *Document) Prose() bool {
	name := d.File
	for _, extension := range []string{".tmpl", ".tpl", ".template", ".j2"} { // of one that somebody fills in
		name = strings.TrimSuffix(name, extension)
	}
	return d.Name == "" &&
		(slices.Contains(prose, strings.ToLower(path.Ext(name))) || bytes.HasPrefix(d.Data, []byte("#!")))
}

var templateComment = regexp.MustCompile(`(?s)\{\{-?\s*/\*.*?\*/\s*-?\}\}|\{#.*?#\}`)

// WithoutComments returns a text without the comments of templates ("{{/* … */}}"). What remains stands where it stood.
func WithoutComments(data []byte) []byte {
	return templateComment.ReplaceAllFunc(data, func(comment []byte) []byte {
		blank := bytes.Repeat([]byte(" "), len(comment))
		for i, c := range comment {
			if c == '\n' {
				blank[i] = c
			}
		}
		return blank
	})
}
