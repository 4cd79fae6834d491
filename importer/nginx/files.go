package nginx

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// files are the documents of one audit, and what includes what.
type files struct {
	docs     []source.Document
	given    []string                // names of all files of the audit
	parsed   map[string][]*directive // by the document's key
	included map[string]bool
	complete map[string]bool // documents of which a file that they include by a relative path was given
	filledIn map[string]bool // names of files that are templates, which is remarked
	expanded int             // directives so far
	remarks  []topology.Remark
	gaps     gaps
}

// key tells documents apart: several may stand in one file.
func key(d *source.Document) string { return fmt.Sprintf("%s\x00%s\x00%d", d.File, d.Name, d.Line) }

func newFiles(docs []source.Document, given []string) *files {
	f := &files{docs: docs, given: given, parsed: map[string][]*directive{}, included: map[string]bool{},
		complete: map[string]bool{}, filledIn: map[string]bool{}}
	for i := range docs {
		directives, remarks := parse(&docs[i])
		f.parsed[key(&docs[i])] = directives
		f.remarks = append(f.remarks, remarks...)
		if len(remarks) > 0 && remarks[0].Subject == templateSubject {
			f.filledIn[docs[i].File] = true
		}
	}
	for i := range docs {
		f.includes(&docs[i], f.parsed[key(&docs[i])])
	}
	return f
}

// includes notes which documents are included by a document.
func (f *files) includes(d *source.Document, directives []*directive) {
	for _, dir := range directives {
		if pattern, ok := dir.arg(1); ok && dir.name() == "include" {
			for _, other := range f.match(d, pattern.text) {
				f.included[key(other)] = true
				f.complete[key(d)] = f.complete[key(d)] || !path.IsAbs(pattern.text)
			}
		}
		f.includes(d, dir.block)
	}
}

// harmless are files that come with nginx and set nothing that an audit looks at.
var harmless = regexp.MustCompile(`(mime\.types|(fastcgi|uwsgi|scgi|wsgi)_params|fastcgi\.conf|koi-utf|koi-win|` +
	`win-utf|proxy_params|modules-enabled/\*\.conf|modules/\*\.conf|options-ssl-nginx\.conf)$`)

// match returns the documents that an include of d means: by the path as it stands, or, because the folders of a
// repository are not those of the machine it is installed on, by as much of the end of the path as says enough.
func (f *files) match(d *source.Document, pattern string) []*source.Document {
	var out []*source.Document
	parts := strings.Split(strings.TrimPrefix(path.Clean(pattern), "/"), "/")
	if !path.IsAbs(pattern) {
		if out = f.glob(d, path.Join(path.Dir(d.File), pattern)); len(out) > 0 {
			return out
		}
	}
	for i := range parts {
		tail := parts[i:]
		if len(tail) == 1 && strings.ContainsAny(tail[0], "*?[") && len(parts) > 1 {
			break // "*.conf" alone means nothing
		}
		if out = f.glob(d, path.Join(append([]string{path.Dir(d.File)}, tail...)...)); len(out) > 0 {
			return out
		}
	}
	for dir := path.Dir(d.File); len(parts) > 1 && dir != path.Dir(dir); dir = path.Dir(dir) { // the folder of nginx.conf
		if out = f.glob(d, path.Join(append([]string{path.Dir(dir)}, parts...)...)); len(out) > 0 {
			return out
		}
	}
	if last := parts[len(parts)-1]; len(parts) > 1 && strings.ContainsAny(last, "*?[") && d.Name == "" && f.whole(d) {
		// nginx.conf and the parts of its http block in one folder, from which an image copies them to two
		for _, o := range f.glob(d, path.Join(path.Dir(d.File), last)) {
			if !f.whole(o) {
				out = append(out, o)
			}
		}
	}
	for i := range f.docs { // another entry of the same ConfigMap
		o := &f.docs[i]
		if o.Name != "" && o.File == d.File && key(o) != key(d) && o.Owner == d.Owner {
			if ok, err := path.Match(parts[len(parts)-1], o.Name); ok && err == nil {
				out = append(out, o)
			}
		}
	}
	return out
}

func (f *files) glob(d *source.Document, pattern string) []*source.Document {
	var out []*source.Document
	for i := range f.docs {
		o := &f.docs[i]
		as, _ := path.Match(pattern, o.File)
		filledIn, _ := path.Match(pattern, templateOf(o.File))
		if (as || filledIn) && o.Name == "" && key(o) != key(d) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *source.Document) int { return strings.Compare(a.File, b.File) })
	return out
}

// templateOf returns the name of what a file becomes when somebody fills it in: default.conf of default.conf.j2.
func templateOf(file string) string {
	for _, extension := range []string{".j2", ".tmpl", ".tpl", ".template"} {
		if short, is := strings.CutSuffix(file, extension); is {
			return short
		}
	}
	return file
}

// elsewhere reports whether a file of the audit that is not nginx's, because it sets nothing that an audit looks at, is
// the one that an include of d means: by its whole path, or beside d.
func (f *files) elsewhere(d *source.Document, pattern string) bool {
	parts := strings.Split(strings.Trim(path.Clean(pattern), "/"), "/")
	beside := path.Join(path.Dir(d.File), parts[len(parts)-1])
	return slices.ContainsFunc(f.given, func(name string) bool {
		if d.Name == "" && (name == beside || templateOf(name) == beside) {
			return true
		}
		have := strings.Split(name, "/")
		if len(have) < len(parts) {
			return false
		}
		ok, err := path.Match(path.Join(parts...), path.Join(have[len(have)-len(parts):]...))
		return ok && err == nil
	})
}

// passesOn reports whether a directive, or one in a block, passes requests to somebody.
func passesOn(directives []*directive) bool {
	return slices.ContainsFunc(directives, func(d *directive) bool {
		prefix, is := strings.CutSuffix(d.name(), "_pass")
		return is && slices.Contains(passing, prefix) || passesOn(d.block)
	})
}

// maxDirectives bounds what files that include one another come to.
const maxDirectives = 100_000

// expand puts what is included in its place.
func (f *files) expand(directives []*directive, within []string) []*directive {
	var out []*directive
	for _, d := range directives {
		if f.expanded++; f.expanded > maxDirectives {
			return out
		}
		pattern, ok := d.arg(1)
		if d.name() != "include" || !ok || d.opens {
			c := *d
			c.block = f.expand(d.block, within)
			out = append(out, &c)
			continue
		}
		if harmless.MatchString(pattern.text) {
			continue
		}
		found := f.match(d.doc, pattern.text)
		// A pattern may match none. A ConfigMap has all of its files, as has a folder of which others were found, and one
		// that passes requests on itself is no empty frame around others.
		all := d.doc.Name != "" || f.complete[key(d.doc)] && !path.IsAbs(pattern.text) || passesOn(f.parsed[key(d.doc)])
		matched := len(found) > 0 || f.elsewhere(d.doc, pattern.text) || all && strings.ContainsAny(pattern.text, "*?[")
		if !matched && !f.filledIn[d.doc.File] {
			f.gaps.include(pattern)
		}
		for _, o := range found {
			if k := key(o); !slices.Contains(within, k) && len(within) < 20 {
				out = append(out, f.expand(f.parsed[k], append(slices.Clone(within), k))...)
			}
		}
	}
	return out
}
