package workloads

import (
	"maps"
	"path"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

// Mounted maps files and folders, as positions name them, to the service of a compose file whose container has them.
type Mounted map[string]string

// Files returns which service of a compose file mounts which files. What several mount is nobody's, nor is the folder
// of the compose file, which developers mount as a whole.
func Files(docs []source.Document) Mounted {
	m, twice := Mounted{}, map[string]bool{}
	for _, d := range docs {
		if !isCompose(d.Root) {
			continue
		}
		folder := path.Dir(d.File)
		add := func(service, from string) {
			from = strings.TrimPrefix(strings.TrimPrefix(from, "${PWD}/"), "$PWD/")
			if name := path.Join(folder, from); from != "" && !path.IsAbs(from) && !strings.ContainsAny(from, "${}~") &&
				name != folder && !strings.HasPrefix(folder, name+"/") && name != "." && !strings.HasPrefix(name, "..") {
				twice[name] = twice[name] || m[name] != "" && m[name] != service
				m[name] = service
			}
		}
		files := map[string]string{}
		for _, p := range d.Root.Get("configs").Pairs() {
			files[p.Key] = p.Value.Get("file").Text()
		}
		for _, p := range d.Root.Get("services").Pairs() {
			for _, v := range p.Value.Get("volumes").Items() {
				from, _, short := strings.Cut(v.Text(), ":")
				if !short {
					from = v.Get("source").Text()
				}
				if strings.Contains(from, "/") || v.Get("type").Text() == "bind" { // else it is a volume's name
					add(p.Key, from)
				}
			}
			for _, c := range p.Value.Get("configs").Items() {
				if name := c.Text() + c.Get("source").Text(); name != "" {
					add(p.Key, files[name])
				}
			}
		}
	}
	maps.DeleteFunc(m, func(name, _ string) bool { return twice[name] })
	return m
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
