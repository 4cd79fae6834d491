package source

import "go.yaml.in/yaml/v3"

// fewKeys is how many keys a mapping has at most that is searched from the front.
const fewKeys = 16

// keyed knows where the keys of large mappings stand that are being made. Only put adds to those.
type keyed map[*yaml.Node]map[string]int

// indexOf is where a key stands in a mapping; negative if it is not there.
func (k keyed) indexOf(mapping *yaml.Node, key string) int {
	if len(mapping.Content) <= 2*fewKeys {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if mapping.Content[i].Value == key {
				return i
			}
		}
		return -1
	}
	known := k[mapping]
	if known == nil {
		known = map[string]int{}
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			known[mapping.Content[i].Value] = i
		}
		k[mapping] = known
	}
	if i, ok := known[key]; ok {
		return i
	}
	return -1
}

// put sets a key of a mapping, and returns where it stands. As for Consul, Terraform and Helm, the last one counts.
func (k keyed) put(into, key, value *yaml.Node) int {
	i := k.indexOf(into, key.Value)
	if i >= 0 {
		into.Content[i], into.Content[i+1] = key, value
		return i
	}
	i = len(into.Content)
	into.Content = append(into.Content, key, value)
	if known := k[into]; known != nil {
		known[key.Value] = i
	}
	return i
}
