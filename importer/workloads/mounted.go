package workloads

import (
	"maps"
	"path"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// Mounted maps files and folders, as positions name them, to the service of a compose file whose container has them.
type Mounted map[string]string

// Files returns which service of a compose file mounts which files, or is built from which folder, and the versions of
// the products that these services run, for the files. What several mount is nobody's, nor is the folder of the compose
// file, which developers mount as a whole.
func Files(docs []source.Document) (Mounted, []source.Built) {
	m, twice := Mounted{}, map[string]bool{}
	var run []source.Built
	for _, d := range docs {
		if !isCompose(d.Root) {
			continue
		}
		folder := path.Dir(d.File)
		add := func(p source.Pair, from string) {
			service := p.Key
			from = strings.TrimPrefix(strings.TrimPrefix(from, "${PWD}/"), "$PWD/")
			if name := path.Join(folder, from); from != "" && !path.IsAbs(from) && !strings.ContainsAny(from, "${}~") &&
				name != folder && !strings.HasPrefix(folder, name+"/") && name != "." && !strings.HasPrefix(name, "..") {
				twice[name] = twice[name] || m[name] != "" && m[name] != service
				m[name] = service
				if product, version, ok := Tagged(p.Value.Get("image").Text()); ok {
					run = append(run, source.Built{Product: product, Folder: name,
						Version: topology.Write(version, p.Value.Get("image").At())})
				}
			}
		}
		files := map[string]string{}
		for _, p := range d.Root.Get("configs").Pairs() {
			files[p.Key] = p.Value.Get("file").Text()
		}
		for _, p := range d.Root.Get("services").Pairs() {
			if build := p.Value.Get("build"); build.Text()+build.Get("context").Text() != "" {
				add(p, build.Text()+build.Get("context").Text())
			}
			for _, v := range p.Value.Get("volumes").Items() {
				from, _, short := strings.Cut(v.Text(), ":")
				if !short {
					from = v.Get("source").Text()
				}
				if strings.Contains(from, "/") || v.Get("type").Text() == "bind" { // else it is a volume's name
					add(p, from)
				}
			}
			for _, c := range p.Value.Get("configs").Items() {
				if name := c.Text() + c.Get("source").Text(); name != "" {
					add(p, files[name])
				}
			}
		}
	}
	maps.DeleteFunc(m, func(name, _ string) bool { return twice[name] })
	return m, run
}

// Of returns the service that has a file, by the mount nearest to it; "" for none.
func (m Mounted) Of(file string) string {
	for name := file; name != "." && name != "/" && name != ""; name = path.Dir(name) {
		if service := m[name]; service != "" {
			return service
		}
	}
	return ""
}
