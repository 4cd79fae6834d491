package remedy

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim/scenario"
)

// write writes a piece of a policy file over the policy of a variant, and reads the whole again.
func write(piece string, v *scenario.Variant) error {
	var over yaml.Node
	if err := yaml.Unmarshal([]byte(piece), &over); err != nil {
		return fmt.Errorf("a piece of a policy cannot be read: %w", err)
	}
	base, err := policyNode(v)
	if err != nil {
		return err
	}
	const names = 2 // lists and names are kept beside what is written, below them keys are replaced
	v.Policy = *overlay(base, over.Content[0], names)
	v.PolicyFile = ""
	v.Guards, err = policyfile.ParseNode("policy", &v.Policy)
	return err
}

// policyNode is the policy of a variant as YAML.
func policyNode(v *scenario.Variant) (*yaml.Node, error) {
	switch {
	case !v.Policy.IsZero():
		return strictyaml.Resolve(&v.Policy), nil
	case v.Guards == nil:
		return nil, nil
	}
	var file yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(v.Guards.Format())).Decode(&file); err != nil {
		return nil, fmt.Errorf("the policy of variant %q cannot be written: %w", v.Name, err)
	}
	return file.Content[0], nil
}

// overlay returns a mapping with the keys of over in place of those of base, down to so many levels of mappings that
// are kept. Aliases and merged keys of base stay what they were.
func overlay(base, over *yaml.Node, levels int) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if base != nil && strictyaml.Resolve(base).Kind == yaml.MappingNode {
		base = strictyaml.Resolve(base)
		*n = *base
		n.Anchor, n.Style = "", 0
		n.Content = append([]*yaml.Node(nil), base.Content...)
	}
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		if levels > 0 && value.Kind == yaml.MappingNode {
			value = overlay(lookUp(base, key.Value, maxDepth), value, levels-1)
		}
		put(n, key, value)
	}
	return n
}

// put sets a key of a mapping of its own.
func put(n, key, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Value == key.Value && k.Tag != "!!merge" {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, key, value)
}

const maxDepth = 20 // of merges, as in a policy file

// lookUp returns the value of a key of a mapping, its own or a merged one; nil if it has none.
func lookUp(n *yaml.Node, key string, depth int) *yaml.Node {
	if n == nil || depth == 0 {
		return nil
	}
	n = strictyaml.Resolve(n)
	var merged *yaml.Node
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		k, value := n.Content[i], strictyaml.Resolve(n.Content[i+1])
		switch {
		case k.Tag != "!!merge" && k.Value == key:
			return value
		case k.Tag != "!!merge" || merged != nil:
		case value.Kind == yaml.SequenceNode:
			for _, item := range value.Content {
				if merged == nil {
					merged = lookUp(item, key, depth-1)
				}
			}
		default:
			merged = lookUp(value, key, depth-1)
		}
	}
	return merged
}
