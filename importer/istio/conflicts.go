package istio

import (
	slashed "path"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

// conflicts remarks hosts that several VirtualServices have in the mesh: only the oldest one holds there.
func (r *reader) conflicts() {
	first := map[string]resource{}
	elsewhere := map[string]int{} // of a host, the remark about other files
	hosts := r.hostsOfFiles()
	for _, v := range r.virtual {
		if !v.inMesh() || slices.Equal(v.Spec.Get("exportTo").Texts(), []string{"."}) {
			continue
		}
		for _, h := range v.Spec.Get("hosts").Items() {
			host := resolve(h.Text(), v.Namespace)
			if strings.Contains(host, "*") || source.Template(host) != "" {
				continue
			}
			other, seen := first[host]
			if !seen {
				first[host] = v
				continue
			}
			if (other.Name != v.Name || other.Namespace != v.Namespace) && !alternatives(v, other, hosts) {
				r.conflict(v, other, h, elsewhere)
			}
		}
	}
}

// hostsOfFiles returns for which hosts in the mesh each file has VirtualServices.
func (r *reader) hostsOfFiles() map[string]map[string]bool {
	hosts := map[string]map[string]bool{}
	for _, v := range r.virtual {
		if !v.inMesh() {
			continue
		}
		if hosts[v.At.File] == nil {
			hosts[v.At.File] = map[string]bool{}
		}
		for _, h := range v.Spec.Get("hosts").Texts() {
			hosts[v.At.File][resolve(h, v.Namespace)] = true
		}
	}
	return hosts
}

// alternatives reports whether two VirtualServices stand in files of one folder of which somebody applies one, as those
// of a tutorial do: all hosts of one file are those of the other too. What is rendered stands in one file.
func alternatives(v, other resource, hosts map[string]map[string]bool) bool {
	one, two := v.At.File, other.At.File
	if one == two || slashed.Dir(one) != slashed.Dir(two) {
		return false
	}
	within := func(a, b map[string]bool) bool {
		for h := range a {
			if !b[h] {
				return false
			}
		}
		return true
	}
	return within(hosts[one], hosts[two]) || within(hosts[two], hosts[one])
}

// conflict remarks a host that an earlier VirtualService has too. Of several files it is not known whether all
// are applied, so they are one remark.
func (r *reader) conflict(v, other resource, h source.Node, elsewhere map[string]int) {
	host := resolve(h.Text(), v.Namespace)
	i, again := elsewhere[host]
	files := other.At.File != h.At().File
	if files && again {
		was := &r.form.Remarks[i]
		was.Text = strings.TrimSuffix(was.Text, ", and of others") + ", and of others"
		return
	}
	r.remark("F603", h.At(), v.String()+" host "+h.Text(), "for sidecars only the oldest VirtualService of a host holds, "+
		"and "+h.Text()+" is that of "+other.String()+" ("+other.At.String()+") too", "put the routes of both into one")
	if files {
		i = len(r.form.Remarks) - 1
		elsewhere[host], r.form.Remarks[i].Assumed = i, "both files are applied to one cluster"
	}
}
