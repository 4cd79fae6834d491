package consul

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// entry is a config entry, wherever it stands.
type entry struct {
	kind   string
	name   source.Node
	spec   source.Node
	broken []topology.Remark // about a text that was to be the entry
	// reference is how other resources of Terraform name it: "consul_config_entry.orders".
	reference string
}

// kinds are the entries that are read.
var kinds = []string{"service-router", "service-resolver", "service-splitter", "service-defaults", "proxy-defaults",
	"http-route"}

// resources are the kinds that Kubernetes has as resources of Consul; its http-route is an object of the Gateway API.
var resources = map[string]string{"ServiceRouter": "service-router", "ServiceResolver": "service-resolver",
	"ServiceSplitter": "service-splitter", "ServiceDefaults": "service-defaults",
	"ProxyDefaults": "proxy-defaults"}

// terraform is the resource of Terraform that is an entry of any kind; those for one kind have its name at their end.
const terraform = "consul_config_entry"

// entriesOf returns the entries of a document that are read.
func entriesOf(root source.Node) []entry {
	if strings.HasPrefix(root.Get("apiVersion").Text(), "consul.hashicorp.com/") {
		if kind := resources[root.Get("kind").Text()]; kind != "" {
			return []entry{{kind: kind, name: root.Get("metadata", "name"), spec: root.Get("spec")}}
		}
		return nil
	}
	if own := entryOf(root, get(root, "Kind"), root); own != nil {
		return own
	}
	var all []entry
	for _, n := range root.Get("config_entries", "bootstrap").List() { // of an agent
		all = append(all, entryOf(n, get(n, "Kind"), n)...)
	}
	for _, block := range root.Get("resource").List() {
		for _, typ := range block.Pairs() {
			if !strings.HasPrefix(typ.Key, terraform) {
				continue
			}
			for _, n := range typ.Value.Pairs() {
				all = append(all, ofTerraform(typ.Key, n)...)
			}
		}
	}
	return all
}

func ofTerraform(typ string, n source.Pair) []entry {
	kind, spec, broken := n.Value.Get("kind").Text(), n.Value, []topology.Remark(nil)
	if typ == terraform {
		spec, broken = source.Inside(n.Value.Get("config_json"))
	} else {
		kind = strings.ReplaceAll(strings.TrimPrefix(typ, terraform+"_"), "_", "-")
	}
	if !slices.Contains(kinds, kind) || !n.Value.Get("name").Exists() {
		return nil
	}
	return []entry{{kind: kind, name: n.Value.Get("name"), spec: spec, broken: broken, reference: typ + "." + n.Key}}
}

func entryOf(root, kind, spec source.Node) []entry {
	name := get(root, "Name")
	if !slices.Contains(kinds, kind.Text()) || !name.Exists() {
		return nil
	}
	if root.Get("spec").Exists() {
		spec = root.Get("spec")
	}
	return []entry{{kind: kind.Text(), name: name, spec: spec}}
}

// namesOf returns the names of Terraform's entries by how others refer to them.
func namesOf(all []entry) map[string]string {
	names := map[string]string{}
	for _, e := range all {
		if e.reference != "" && source.Template(e.name.Text()) == "" {
			names["${"+e.reference+".name}"] = e.name.Text()
		}
	}
	return names
}

// name returns what a name says. A reference of Terraform that no entry answers is a remark.
func (r *reader) name(n source.Node) (string, bool) {
	text := n.Text()
	if named, found := r.names[text]; found {
		return named, true
	}
	if source.Template(text) == "" {
		return text, true
	}
	r.remark("F702", n.At(), "name "+text, "which service this entry is for is not known: its name is "+text,
		"give the audit the files that say it, or the entry as Consul has it: consul config read")
	return "", false
}
