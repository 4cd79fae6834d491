package source

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/abate-go/abate/topology"
	"go.yaml.in/yaml/v3"
)

// onlyTemplate is a text that an expression gives as a whole.
var onlyTemplate = regexp.MustCompile(`^\$\{[^\n]*\}$`)

// A text of Terraform has templates (${…}) wherever a value may stand, with braces and quotes in them, so it is no JSON
// and no YAML. Each is masked before the text is parsed: by one character for which one it is, and others that fill the
// place it has, so that what is behind it stays in its column.
const (
	firstMask  = '\uE000'
	filler     = '\uF8FF'
	mostMasked = filler - firstMask
)

// parsed returns the root of a document that is YAML or JSON.
func (d *Document) parsed() (*yaml.Node, error) {
	if !d.hcl {
		return parse(plainJSON(d.Data))
	}
	masked, templates := mask(string(d.Data))
	root, err := parse(plainJSON([]byte(masked)))
	if root != nil && len(templates) > 0 {
		unmask(root, templates)
	}
	return root, err
}

// mask returns a text with its templates masked, and these.
func mask(text string) (string, []string) {
	var out strings.Builder
	var templates []string
	for len(text) > 0 {
		at := strings.Index(text, "${")
		if at < 0 || len(templates) == mostMasked {
			break
		}
		length := templateLength(text[at:])
		if length == 0 || at > 0 && text[at-1] == '$' { // $${ is no template
			out.WriteString(text[:at+2])
			text = text[at+2:]
			continue
		}
		template := text[at : at+length]
		out.WriteString(text[:at])
		out.WriteRune(firstMask + rune(len(templates)))
		for _, c := range template[1:] {
			if c != '\n' {
				c = filler
			}
			out.WriteRune(c)
		}
		if strings.Contains(template, "\n") {
			template = strings.Join(strings.Fields(template), " ")
		} // else it stays as it is, so that what is behind it stays in its column in a text in the text, too
		templates = append(templates, template)
		text = text[at+length:]
	}
	return out.String() + text, templates
}

// templateLength returns how long the template is with which a text begins, 0 if it does not end.
func templateLength(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// unmask puts the templates back into the texts of a tree.
func unmask(n *yaml.Node, templates []string) {
	if n.Kind == yaml.ScalarNode && strings.ContainsFunc(n.Value, masks) {
		var out strings.Builder
		for _, c := range n.Value {
			switch {
			case c == filler:
			case masks(c) && int(c-firstMask) < len(templates):
				out.WriteString(templates[c-firstMask])
			default:
				out.WriteRune(c)
			}
		}
		n.Value, n.Tag = out.String(), "!!str"
	}
	for _, c := range n.Content {
		unmask(c, templates)
	}
}

func masks(c rune) bool { return c >= firstMask && c <= filler }

// opening begins a directive. %%{ is no such thing.
var opening = regexp.MustCompile(`(?:^|[^%])%\{`)

// directive returns a remark about a text of Terraform that only a run of it makes a document: %{ if … }.
func (d *Document) directive() *topology.Remark {
	if !d.hcl {
		return nil
	}
	found := opening.FindIndex(d.Data)
	if found == nil {
		return nil
	}
	at := found[1] - len("%{")
	line := 1 + bytes.Count(d.Data[:at], []byte("\n"))
	column := 1 + len([]rune(string(d.Data[bytes.LastIndexByte(d.Data[:at], '\n')+1:at])))
	word, _, _ := bytes.Cut(d.Data[at:], []byte("\n"))
	return &topology.Remark{Rule: "F702", At: d.At(line, column), Subject: "template " + string(word),
		Text: "this text is a template with directives of Terraform, so what it says is not known",
		Fix:  "give the audit the text as Terraform makes it: terraform show -json, or the objects as they are applied"}
}
