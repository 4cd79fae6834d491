package policyfile

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// isConfigMap tells a Kubernetes object from a plain policy.
func isConfigMap(entries []entry) bool {
	for _, e := range entries {
		if e.key.Value == "kind" || e.key.Value == "apiVersion" {
			return true
		}
	}
	return false
}

// configMap finds the policy in a ConfigMap and returns the root of its document. From here on positions are shifted
// into the outer file. Keys other than data belong to Kubernetes and are not looked at.
func (d *decoder) configMap(entries []entry, file []byte) *yaml.Node {
	var data *yaml.Node
	kind := ""
	for _, e := range entries {
		switch e.key.Value {
		case "kind":
			if kind = resolve(e.value).Value; kind != "ConfigMap" {
				d.fail(e.value, "", "kind", quote(kind)+" holds no policy", "allowed: ConfigMap, or a plain policy without apiVersion and kind")
				return nil
			}
		case "data":
			data = e.value
		}
	}
	first := entries[0].key
	switch {
	case kind == "":
		d.fail(first, "", "", "apiVersion without kind", "write kind: ConfigMap, or a plain policy without apiVersion")
		return nil
	case data == nil:
		d.fail(first, "", "", "the ConfigMap has no data", `put the policy under data, for example "policy.yaml: |"`)
		return nil
	}
	text := d.policyText(data)
	if text == nil {
		return nil
	}
	d.shift = shiftInto(text, file)
	return d.document([]byte(text.Value))
}

// policyText picks the value under data that is the policy.
func (d *decoder) policyText(data *yaml.Node) *yaml.Node {
	entries, ok := d.entries(data, "", "data", `for example "policy.yaml: |" and the policy below it`)
	if !ok {
		return nil
	}
	named := filter(entries, func(e entry) bool {
		return strings.HasSuffix(e.key.Value, ".yaml") || strings.HasSuffix(e.key.Value, ".yml")
	})
	if len(named) == 0 {
		named = entries
	}
	if len(named) > 1 {
		named = filter(named, func(e entry) bool { return looksLikePolicy(resolve(e.value).Value) })
	}
	switch len(named) {
	case 0:
		d.fail(data, "", "data", "no key holds a policy", `for example "policy.yaml: |" and the policy below it`)
		return nil
	case 1:
	default:
		keys := make([]string, len(named))
		for i, e := range named {
			keys[i] = quote(e.key.Value)
		}
		d.fail(named[1].key, "", "data", "more than one key holds a policy: "+strings.Join(keys, ", "), "keep one of them")
		return nil
	}
	text := resolve(named[0].value)
	if text.Kind != yaml.ScalarNode || text.ShortTag() != "!!str" {
		d.fail(text, "", "data", describe(text)+" is not the text of a policy", `write "|" after the key and the policy below it, indented`)
		return nil
	}
	return text
}

func filter(entries []entry, keep func(entry) bool) []entry {
	var kept []entry
	for _, e := range entries {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
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
