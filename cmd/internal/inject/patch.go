// Package inject is the command "abate inject": a webhook that puts Abate beside the containers of new pods. What it
// changes in a pod is a pure function of the pod and a template; the rest is the wire of Kubernetes' admission reviews.
package inject

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Template is what is put into a pod: a file in JSON, which the Helm chart writes.
type Template struct {
	// Policy is the name of the ConfigMap with the policy file, in the pod's namespace, for pods that name none.
	Policy string `json:"policy"`
	// Container is the sidecar: an init container with restartPolicy Always, which mounts the volume "abate-policy".
	Container json.RawMessage `json:"container"`
	// Env is added to the pod's containers, where they have no variable of that name, in upper or in lower case.
	Env []Variable `json:"env"`
	// Annotations are added to the pod, where it has none of that name.
	Annotations map[string]string `json:"annotations"`

	name string // of the container
}

// Variable is one of the environment.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// The words of a pod, and the volume that the template's container mounts.
const (
	PolicyAnnotation = "abate/policy" // names another ConfigMap
	policyVolume     = "abate-policy"
)

// ParseTemplate reads a template. The error has all that is wrong.
func ParseTemplate(text []byte) (*Template, error) {
	t := new(Template)
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(t); err != nil {
		return nil, fmt.Errorf("is no template in JSON: %w", err)
	}
	var c struct {
		Name          string `json:"name"`
		RestartPolicy string `json:"restartPolicy"`
	}
	if len(t.Container) == 0 || json.Unmarshal(t.Container, &c) != nil {
		return nil, fmt.Errorf("has no container: write the sidecar there, as in initContainers of a pod")
	}
	var wrong []string
	if c.Name == "" {
		wrong = append(wrong, "container has no name: write for example name: abate")
	}
	if c.RestartPolicy != "Always" {
		wrong = append(wrong, fmt.Sprintf("container has restartPolicy %q: write Always, or the pod would wait for its end",
			c.RestartPolicy))
	}
	if t.Policy == "" {
		wrong = append(wrong, "has no policy: write the name of the ConfigMap for pods that name none")
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	t.name = c.Name
	return t, nil
}

// Operation is one step of a JSON Patch, RFC 6902.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// pod is what the patch has to know of one.
type pod struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		HostNetwork    bool        `json:"hostNetwork"`
		InitContainers []container `json:"initContainers"`
		Containers     []container `json:"containers"`
		Volumes        []struct {
			Name string `json:"name"`
		} `json:"volumes"`
	} `json:"spec"`
}

type container struct {
	Name string     `json:"name"`
	Env  []Variable `json:"env"`
}

// Patch returns what to change in a pod, nothing for one that has Abate already. Where Abate cannot be put in, warning
// says why, and the pod is to start without: a pod that does not start is worse than one that is not guarded.
func (t *Template) Patch(text []byte) (operations []Operation, warning string) {
	var p pod
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Sprintf("Abate was not put in: the pod cannot be read: %v", err)
	}
	named := func(c container) bool { return c.Name == t.name }
	switch {
	case slices.ContainsFunc(p.Spec.InitContainers, named):
		return nil, ""
	case slices.ContainsFunc(p.Spec.Containers, named):
		return nil, fmt.Sprintf("Abate was not put in: the pod has a container called %s; give it another name", t.name)
	case len(p.Spec.Containers) == 0:
		return nil, "Abate was not put in: the pod has no containers"
	case p.Spec.HostNetwork:
		return nil, "Abate was not put in: the pod uses the node's network, where the sidecars of two pods would want the " +
			"same ports; write hostNetwork: false"
	}
	for _, v := range p.Spec.Volumes {
		if v.Name == policyVolume {
			return nil, fmt.Sprintf("Abate was not put in: the pod has a volume called %s; give it another name", policyVolume)
		}
	}
	policy := t.Policy
	if named := p.Metadata.Annotations[PolicyAnnotation]; named != "" {
		policy = named
	}
	volume := map[string]any{"name": policyVolume, "configMap": map[string]any{"name": policy}}
	operations = append(operations, into("/spec/initContainers", len(p.Spec.InitContainers), "/0", t.Container),
		into("/spec/volumes", len(p.Spec.Volumes), "/-", volume))
	for i, c := range p.Spec.Containers {
		path, have := fmt.Sprintf("/spec/containers/%d/env", i), len(c.Env)
		for _, v := range t.Env {
			if !slices.ContainsFunc(c.Env, func(there Variable) bool { return strings.EqualFold(there.Name, v.Name) }) {
				operations = append(operations, into(path, have, "/-", v))
				have++
			}
		}
	}
	return append(operations, t.annotate(p.Metadata.Annotations)...), ""
}

// into adds a value to a list that has so many, at a place; to none, it adds a list of one.
func into(list string, have int, at string, value any) Operation {
	if have == 0 {
		return Operation{"add", list, []any{value}}
	}
	return Operation{"add", list + at, value}
}

// annotate adds the annotations that are not there.
func (t *Template) annotate(there map[string]string) (operations []Operation) {
	if len(t.Annotations) == 0 {
		return nil
	}
	if len(there) == 0 {
		return []Operation{{"add", "/metadata/annotations", t.Annotations}}
	}
	names := make([]string, 0, len(t.Annotations))
	for name := range t.Annotations {
		if _, ok := there[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, name := range names {
		path := "/metadata/annotations/" + escape.Replace(name)
		operations = append(operations, Operation{"add", path, t.Annotations[name]})
	}
	return operations
}
