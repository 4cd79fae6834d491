package source

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/topology"
)

// Assume is what people tell an audit that no file says.
type Assume struct {
	// Versions of products, by their names in lower case: "istio": "1.27". They decide which defaults hold. That of
	// "spring.profiles" is the profiles that are active: "prod,eu".
	Versions map[string]string
	// Implementation is the product that serves Gateway API routes whose class names none: "istio", "envoy-gateway". It
	// may be empty.
	Implementation string
	// Images are the versions of products that tags of images name, by the same names as in Versions.
	Images map[string]topology.Value[string]
	// NginxInc reports that there are resources of NGINX Inc.'s controller, whose class nginx then is.
	NginxInc bool
	// Built are the versions that files name which say how a program is built.
	Built []Built
	// Given are the names of all files of the audit, those of no known format too: what a file includes may be one that
	// sets nothing.
	Given []string
	// Mentions reports whether a text stands in any file of the audit, those of no known format too. It is nil where
	// nobody can say.
	Mentions func(text string) bool
	// Environments are the variables that workloads set, by their service's name without its namespace. Of one that two
	// workloads of a service set differently, it is the words between commas that both have.
	Environments map[string]map[string]string
	// Defaults are the variables that a Dockerfile sets (ENV), by its folder.
	Defaults map[string]map[string]string
}

// Variable returns what the environment of a program gives a variable: that of the workload of a service, else that of
// the Dockerfile in the nearest folder above a file of it. It is "" for none.
func (a Assume) Variable(service, file, name string) string {
	service, _, _ = strings.Cut(strings.ToLower(service), ".")
	if v := a.Environments[service][name]; v != "" {
		return v
	}
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if set, ok := a.Defaults[dir]; ok {
			return set[name]
		}
		if dir == "." || dir == "/" {
			return ""
		}
	}
}

// Built is the version of a product that a program is built with.
type Built struct {
	Product string
	Folder  string // of the file that says so, or that a container has; what lies below, or is it, is the program's
	Version topology.Value[string]
	// Apart reports that a program's configuration may lie apart from what builds it, as for a config server. The version
	// then holds for files elsewhere too, if no other is named.
	Apart bool
}

// For returns what is assumed for one file: the versions of the build whose folder is nearest above it come before
// those of images. Of a product of which one folder, or an image too, names another version, none counts.
func (a Assume) For(file string) Assume {
	const nowhere = "\x00"
	none := topology.Value[string]{}
	nearest := map[string]Built{}
	for _, b := range a.Built {
		above := b.Folder == "." || file == b.Folder || strings.HasPrefix(file, b.Folder+"/")
		if !above && !b.Apart {
			continue
		}
		if !above {
			b.Folder = nowhere
		}
		was, again := nearest[b.Product]
		switch {
		case !again || was.Folder == nowhere && above || was.Folder == "." && above && b.Folder != ".",
			was.Folder != "." && len(b.Folder) > len(was.Folder):
			nearest[b.Product] = b
		case was.Folder == b.Folder && was.Version.V != b.Version.V:
			b.Version = none
			nearest[b.Product] = b
		}
	}
	images := map[string]topology.Value[string]{}
	maps.Copy(images, a.Images)
	for product, b := range nearest {
		switch image, runs := images[product]; {
		case b.Version.V == "" || runs && b.Folder == "." && image.V != b.Version.V:
			delete(images, product)
		default:
			images[product] = b.Version
		}
	}
	a.Images = images
	return a
}

// Version returns the version of a product: as it was told, else that of the tag of an image, else latest, which is
// assumed.
func (a Assume) Version(product, latest string) topology.Value[string] {
	if v := a.Versions[product]; v != "" {
		return topology.Assume(v, "told on the command line")
	}
	if v, ok := a.Images[product]; ok {
		return v
	}
	return topology.Assume(latest, "no file says the version of "+product)
}

// Before reports whether version v is older than w; both are numbers with dots, and a leading v or trailing words do
// not count. What is no version is not older.
func Before(v, w string) bool {
	a, b := numbers(v), numbers(w)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return len(a) > 0 && len(a) < len(b) && slices.ContainsFunc(b[len(a):], func(n int) bool { return n > 0 })
}

func numbers(v string) []int {
	var out []int
	for part := range strings.SplitSeq(strings.TrimPrefix(v, "v"), ".") {
		end := 0
		for end < len(part) && part[end] >= '0' && part[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(part[:end])
		if err != nil {
			break
		}
		if out = append(out, n); end < len(part) {
			break
		}
	}
	return out
}
