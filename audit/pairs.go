package audit

import "go.yaml.in/yaml/v3"

// pairs is a mapping whose order is kept: keys and values in turn.
type pairs []any

func ordered(p pairs) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(p); i += 2 {
		key, value := &yaml.Node{}, &yaml.Node{}
		key.SetString(p[i].(string))
		switch v := p[i+1].(type) {
		case *yaml.Node:
			value = v
		case pairs:
			value = ordered(v)
		default:
			if err := value.Encode(v); err != nil {
				panic("audit: " + err.Error()) // numbers, texts and lists of them
			}
		}
		n.Content = append(n.Content, key, value)
	}
	return n
}
