package workloads

import (
	"slices"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// FromMaps returns the calls that variables of workloads show whose values stand in ConfigMaps. Of a ConfigMap that
// several services take as a whole nobody knows which of them uses an address, so only those that name its key do.
func FromMaps(docs []source.Document, maps []source.Node) topology.Form {
	named := map[string][]source.Node{}
	for _, m := range maps {
		meta := m.Get("metadata")
		key := qualified(meta.Get("name").Text(), meta.Get("namespace").Text())
		named[key] = append(named[key], m.Get("data"))
	}
	r, whole := &reading{owners: Owners(docs)}, Mounts(docs)
	for _, d := range docs {
		if name := r.owners.Of(d.Root); isWorkload(d.Root) && name != "" {
			r.taken(d.Root, name, named, whole)
		}
	}
	return r.form
}

// taken reads the variables of one workload.
func (r *reading) taken(n source.Node, name string, named map[string][]source.Node, whole map[string]string) {
	namespace := n.Get("metadata", "namespace").Text()
	for _, c := range containers(n) {
		for _, e := range c.Get("env").Items() {
			of := e.Get("valueFrom", "configMapKeyRef")
			if v, ok := only(named[qualified(of.Get("name").Text(), namespace)], of.Get("key").Text()); ok {
				r.variable(name, e.Get("name").Text(), v, namespace)
			}
		}
		for _, e := range c.Get("envFrom").Items() {
			key := qualified(e.Get("configMapRef", "name").Text(), namespace)
			if whole[key] != name {
				continue
			}
			var seen []string
			for _, data := range named[key] {
				for _, p := range data.Pairs() {
					if v, ok := only(named[key], p.Key); ok && !slices.Contains(seen, p.Key) {
						seen = append(seen, p.Key)
						r.variable(name, e.Get("prefix").Text()+p.Key, v, namespace)
					}
				}
			}
		}
	}
}

// only returns the value of a key if all ConfigMaps of one name that have it, such as those of several overlays, agree.
func only(maps []source.Node, key string) (value source.Node, ok bool) {
	for _, data := range maps {
		for _, p := range data.Pairs() {
			switch {
			case p.Key != key:
			case !ok:
				value, ok = p.Value, true
			case p.Value.Text() != value.Text():
				return value, false
			}
		}
	}
	return value, ok
}
