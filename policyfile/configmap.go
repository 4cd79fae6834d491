package policyfile

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/strictyaml"
)

// isConfigMap reports whether a document is a Kubernetes object, not a plain policy.
func isConfigMap(entries []strictyaml.Entry) bool {
	return slices.ContainsFunc(entries, func(e strictyaml.Entry) bool {
		return e.Key.Value == "kind" || e.Key.Value == "apiVersion"
	})
}

// configMap finds the policy in a ConfigMap and returns the root of its document. From here on positions are shifted
// into the outer file. Keys other than data belong to Kubernetes and are not looked at.
func (d *decoder) configMap(entries []strictyaml.Entry, file []byte) *yaml.Node {
	var data *yaml.Node
	kind := ""
	for _, e := range entries {
		switch e.Key.Value {
		case "kind":
			if kind = strictyaml.Resolve(e.Value).Value; kind != "ConfigMap" {
				d.Fail(e.Value, "", "kind", strictyaml.Quote(kind)+" holds no policy",
					"allowed: ConfigMap, or a plain policy without apiVersion and kind")
				return nil
			}
		case "data":
			data = e.Value
		}
	}
	first := entries[0].Key
	switch {
	case kind == "":
		d.Fail(first, "", "", "apiVersion without kind", "write kind: ConfigMap, or a plain policy without apiVersion")
		return nil
	case data == nil:
		d.Fail(first, "", "", "the ConfigMap has no data", `put the policy under data, for example "policy.yaml: |"`)
		return nil
	}
	text := d.policyText(data)
	if text == nil {
		return nil
	}
	d.Shift = shiftInto(text, file)
	return d.Root([]byte(text.Value))
}

// policyText picks the value under data that is the policy.
func (d *decoder) policyText(data *yaml.Node) *yaml.Node {
	entries, ok := d.Entries(data, "", "data", `for example "policy.yaml: |" and the policy below it`)
	if !ok {
		return nil
	}
	named := slices.DeleteFunc(slices.Clone(entries), func(e strictyaml.Entry) bool {
		return !strings.HasSuffix(e.Key.Value, ".yaml") && !strings.HasSuffix(e.Key.Value, ".yml")
	})
	if len(named) == 0 {
		named = entries
	}
	if len(named) > 1 {
		named = slices.DeleteFunc(named, func(e strictyaml.Entry) bool {
			return !looksLikePolicy(strictyaml.Resolve(e.Value).Value)
		})
	}
	switch len(named) {
	case 0:
		d.Fail(data, "", "data", "no key holds a policy", `for example "policy.yaml: |" and the policy below it`)
		return nil
	case 1:
	default:
		keys := make([]string, len(named))
		for i, e := range named {
			keys[i] = strictyaml.Quote(e.Key.Value)
		}
		d.Fail(named[1].Key, "", "data", "more than one key holds a policy: "+strings.Join(keys, ", "), "keep one of them")
		return nil
	}
	text := strictyaml.Resolve(named[0].Value)
	if text.Kind != yaml.ScalarNode || text.ShortTag() != "!!str" {
		d.Fail(text, "", "data", strictyaml.Describe(text)+" is not the text of a policy",
			`write "|" after the key and the policy below it, indented`)
		return nil
	}
	return text
}

func looksLikePolicy(text string) bool {
	for line := range strings.Lines(text) {
		for _, key := range topKeys {
			if strings.HasPrefix(line, key+":") {
				return true
			}
		}
	}
	return false
}

// shiftInto maps positions in a text to the file around it. The lines of a literal block (|) stand there one by one,
// indented; of any other style only the beginning is known.
func shiftInto(text *yaml.Node, file []byte) func(line, col int) (int, int) {
	if text.Style&yaml.LiteralStyle == 0 {
		return func(int, int) (int, int) { return text.Line, text.Column }
	}
	indent := 0
	outer := bytes.Split(file, []byte("\n"))
	for i, line := range strings.Split(text.Value, "\n") {
		if at := text.Line + i; line != "" && at < len(outer) {
			indent = utf8.RuneCount(bytes.TrimSuffix(outer[at], []byte("\r"))) - utf8.RuneCountInString(line)
			break
		}
	}
	return func(line, col int) (int, int) { return text.Line + line, col + max(indent, 0) }
}
