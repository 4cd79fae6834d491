package importer

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/awssdk"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/workloads"
	"github.com/abate-go/abate/topology"
)

// MaxBytes is the size of the largest file that is read. A larger one is a remark.
const MaxBytes = 256 << 20

// File is one file and its content.
type File struct {
	Name string // as positions are to name it, with slashes
	Data []byte
}

// Seen is what became of one file.
type Seen struct {
	Name    string
	Formats []string // of its documents, each once; empty when none is known
}

// Read returns what the files say together, and what became of each.
func Read(files []File, assume source.Assume) (topology.Form, []Seen) {
	r := &reading{byFormat: map[string][]source.Document{}, seen: make([]Seen, len(files))}
	for i, f := range files {
		r.seen[i].Name = f.Name
		r.file(&f, &r.seen[i])
	}
	r.configMaps()
	r.unlist("aws-sdk", awssdk.Silent(r.byFormat["aws-sdk"]))
	assume.NginxInc = r.nginxInc
	assume.Images = workloads.Images(r.byFormat["workloads"])
	assume.Environments = workloads.Environments(r.byFormat["workloads"])
	assume.Defaults = defaults(files)
	assume.Built = append(versions(files), r.mounts(assume.Environments)...)
	assume.Mentions = func(text string) bool {
		return slices.ContainsFunc(files, func(f File) bool { return bytes.Contains(f.Data, []byte(text)) })
	}
	for _, s := range r.seen {
		assume.Given = append(assume.Given, s.Name)
		r.form.Protos = r.form.Protos || strings.HasSuffix(s.Name, ".proto")
	}
	for _, f := range formats {
		if docs := r.byFormat[f.name]; len(docs) > 0 {
			r.form.Add(f.read(docs, assume))
		}
	}
	r.notFilledIn()
	r.notReadYet()
	r.notRendered(files)
	r.form.Add(workloads.FromMaps(r.byFormat["workloads"], r.nodes()))
	tidied(&r.form)
	return r.form, r.seen
}

// unlist takes a format off files that only seemed to be of it.
func (r *reading) unlist(format string, silent map[string]bool) {
	for i := range r.seen {
		if s := &r.seen[i]; silent[s.Name] {
			s.Formats = slices.DeleteFunc(s.Formats, func(f string) bool { return f == format })
		}
	}
}

type reading struct {
	form     topology.Form
	byFormat map[string][]source.Document
	maps     []configMap
	seen     []Seen
	nginxInc bool // there are resources of NGINX Inc.'s controller

	templates  []string // folders with files that are nothing else
	templateAt *int     // which remark is theirs
	skipped    map[string]*unread
	kinds      []string // of what was skipped, in the order of the files

	unrendered []source.Node // values that only a run of Terraform knows
}

// configMap is one ConfigMap, opened when all files were seen: only then is known whose it is.
type configMap struct {
	node source.Node
	seen *Seen
}

func (r *reading) file(f *File, seen *Seen) {
	switch {
	case len(f.Data) > MaxBytes:
		r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F702", At: topology.Position{File: f.Name, Line: 1},
			Subject: "size", Text: fmt.Sprintf("the file was not read: it has more than %d MiB",
				MaxBytes>>20), Fix: "dump the routes and clusters only, or fewer traces"})
	case isUTF16(f.Data):
		if isConfiguration(f.Name) && known.Match(bytes.ReplaceAll(f.Data, []byte{0}, nil)) {
			r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F702", At: topology.Position{File: f.Name, Line: 1},
				Subject: "encoding", Text: "the file was not read: it is UTF-16, as PowerShell writes by default",
				Fix: "write it as UTF-8: … | Out-File -Encoding utf8 FILE"})
		}
	case bytes.IndexByte(f.Data[:min(len(f.Data), 8000)], 0) < 0: // no binary file
		r.text(source.Document{File: f.Name, Data: f.Data}, f.Name, seen)
	}
}

func isUTF16(data []byte) bool {
	return bytes.HasPrefix(data, []byte{0xFF, 0xFE}) || bytes.HasPrefix(data, []byte{0xFE, 0xFF})
}

// isConfiguration reports whether a file has the extension of a configuration.
func isConfiguration(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return slices.Contains(extensions, ext) || slices.Contains(others, ext)
}

// text reads a whole file, or an embedded one. name says what kind of file it may be.
func (r *reading) text(d source.Document, name string, seen *Seen) {
	if slices.Contains(programs, strings.ToLower(path.Ext(name))) || builds.MatchString(path.Base(name)) ||
		kept.MatchString(name) || r.take(d, stream, seen) {
		return
	}
	var remarks []topology.Remark
	found := false
	hcl, asked := isHCL(name, d.Data)
	switch {
	case hcl:
		found, remarks = r.hcl(d, seen)
	case isYAML(name, d.Data):
		var docs []source.Document
		docs, remarks = d.Parsed()
		for _, d := range docs {
			found = r.document(d, seen) || found
		}
	}
	if !found && !isTree(path.Ext(name)) && r.take(d, plain, seen) {
		return
	}
	switch {
	case len(remarks) == 0 || !found && !asked && (hcl || !meant(name, d.Data)):
	case !found && source.Template(string(d.Data)) != "" || actions.Match(d.Data) || slices.Contains(templates,
		strings.ToLower(path.Ext(name))):
		r.template(&d)
	default:
		r.form.Remarks = append(r.form.Remarks, remarks...)
	}
}

// audited is text of what an audit would read in a template, were it rendered: of a workload, a route, a policy of
// retries, the configuration of a gateway. Secrets, volumes, roles and jobs have none of it.
var audited = regexp.MustCompile(`(?m)^[ \t-]*kind:[ \t]*["']?(Deployment|StatefulSet|DaemonSet|Rollout|ReplicaSet|` +
	`Pod|Ingress|Resiliency)\b|^[ \t-]*kind:[ \t]*["']?\{\{|` +
	`apiVersion:[ \t]*["']?([\w.-]+\.)?(istio\.io|gateway\.networking\.k8s\.io|envoyproxy\.io|linkerd\.io|` +
	`projectcontour\.io|traefik\.io|traefik\.containo\.us|konghq\.com|kuma\.io|consul\.hashicorp\.com)/|` +
	`proxy_pass|static_resources|typed_config|resilience4j|methodConfig|` +
	`(?i:(\b|_|max|num)retries\b|(\b|_)retry(_?(on|policy|budget))?["']?[ \t]*[:=])|^[ \t]*(backend|upstream)[ \t]`)

// synced is how often Argo CD tries to apply something, which is no call.
var synced = regexp.MustCompile(`(?m)^[ \t]*retry:[ \t]*\n[ \t]+(limit|backoff|refresh):`)

// template notes a file that is a template and nothing else, if it is of something that an audit reads. Those below the
// templates of a chart are one folder's.
func (r *reading) template(d *source.Document) {
	if !audited.Match(synced.ReplaceAll(d.Data, nil)) {
		return
	}
	folder := path.Dir(d.File)
	if chart, _, deeper := strings.Cut(folder, "/templates/"); deeper {
		folder = chart + "/templates"
	}
	if !slices.Contains(r.templates, folder) {
		r.templates = append(r.templates, folder)
	}
	if len(r.templates) == 1 && r.templateAt == nil {
		r.templateAt = new(int)
		*r.templateAt = len(r.form.Remarks)
		r.form.Remarks = append(r.form.Remarks, topology.Remark{At: d.At(1, 0)}) // said when all are known
	}
}

// trees are extensions of files that are YAML or JSON and nothing else.
var trees = []string{".yaml", ".yml", ".json", ".jsonl"}

func isTree(extension string) bool { return slices.Contains(trees, strings.ToLower(extension)) }

// known is text that makes a broken file worth a remark: it was meant for one of the programs that an audit knows.
var known = regexp.MustCompile(`(?m)^apiVersion:|static_resources|resilience4j|methodConfig|retry`)

// unmistakable is the same of a file whose extension is that of no configuration: people write about retries, too.
var unmistakable = regexp.MustCompile(`(?m)^apiVersion:|static_resources|resilience4j|methodConfig`)

// meant reports whether a broken file was meant for one of the programs that an audit knows.
func meant(name string, data []byte) bool {
	if path.Base(name) == "Chart.yaml" { // which names a chart, and configures nothing
		return false
	}
	if path.Ext(name) != "" && !isConfiguration(name) {
		return unmistakable.Match(data)
	}
	return known.Match(data)
}

// actions are what makes of YAML a text that is none before it is rendered: {{ .x }}, {% if %}, <%= x %>, %VERSION%,
// @x@, a line that is $NAME.
var actions = regexp.MustCompile(`\{\{|\{%|<%|(?m::[ \t]*(?:%[A-Za-z_]+%|@[A-Za-z_.-]+@)[ \t]*$)|` +
	`(?m:^[ \t]*(?:\$[A-Z_][A-Z0-9_]*|\$\{[A-Z_][A-Z0-9_]*\})[ \t]*$)`)

// document gives a document to its format, and reports whether there is one. Lists are opened; ConfigMaps that are not
// a format of their own are kept for later.
func (r *reading) document(d source.Document, seen *Seen) (found bool) {
	kind := d.Root.Get("kind").Text()
	r.nginxInc = r.nginxInc || strings.HasPrefix(d.Root.Get("apiVersion").Text(), "k8s.nginx.org/")
	if strings.HasSuffix(kind, "List") && d.Root.Get("items").IsList() {
		for _, item := range d.Root.Get("items").Items() {
			inner := d
			inner.Root = item
			found = r.document(inner, seen) || found
		}
		return found
	}
	if found = r.take(d, parsed, seen); !found && kind == "ConfigMap" {
		r.maps = append(r.maps, configMap{d.Root, seen})
	}
	if !found {
		r.skip(d)
	}
	return found || kind == "ConfigMap"
}

// take gives d to each format of a form that recognises it, and reports whether there is one: a Service of Kubernetes
// may have annotations of Linkerd, a compose file labels of Traefik.
func (r *reading) take(d source.Document, as form, seen *Seen) (found bool) {
	for _, f := range formats {
		if f.form&as != 0 && f.recognise(d) {
			r.byFormat[f.name] = append(r.byFormat[f.name], d)
			if !slices.Contains(seen.Formats, f.name) {
				seen.Formats = append(seen.Formats, f.name)
			}
			found = true
		}
	}
	return found
}

// nodes returns the ConfigMaps.
func (r *reading) nodes() (all []source.Node) {
	for _, m := range r.maps {
		all = append(all, m.node)
	}
	return all
}

// configMaps opens the ConfigMaps: each entry is a file of the service whose pods mount it.
func (r *reading) configMaps() {
	owners := workloads.Mounts(r.byFormat["workloads"])
	for _, m := range r.maps {
		meta := m.node.Get("metadata")
		name := meta.Get("name").Text()
		if namespace := meta.Get("namespace").Text(); namespace != "" {
			name += "." + namespace
		}
		for _, p := range m.node.Get("data").Pairs() {
			if strings.ContainsAny(p.Value.Text(), "\n:{") {
				d := source.Embedded(p.Key, p.Value)
				d.Owner = owners[name]
				r.text(d, p.Key, m.seen)
			}
		}
	}
}

// templates are extensions of files that some program fills in first, whatever its marks look like.
var templates = []string{".tmpl", ".tpl", ".template", ".j2"}

// mounts gives the configurations of gateways to the services of compose files whose containers have them, and returns
// which versions these run.
func (r *reading) mounts(environments map[string]map[string]string) []source.Built {
	files, run := workloads.Files(r.byFormat["workloads"])
	for _, format := range []string{"nginx", "haproxy", "envoy", "kong"} {
		for i := range r.byFormat[format] {
			d := &r.byFormat[format][i]
			if d.Owner == "" {
				d.Owner = files.Of(d.File)
			}
			if d.Owner == "" && format == "nginx" {
				d.Owner = filledInBy(d.Data, environments)
			}
		}
	}
	return run
}

// extensions of files that are YAML or JSON, or templates of them.
var extensions = append([]string{".yaml", ".yml", ".json", ".jsonl"}, templates...)

// programs are extensions of files that are no configuration, whatever they look like.
var programs = []string{".go", ".java", ".py", ".js", ".jsx", ".ts", ".tsx", ".md", ".html", ".css", ".scss", ".xml",
	".sh", ".rb", ".php", ".cs", ".kt", ".scala", ".rs", ".c", ".h", ".cc", ".proto", ".sql", ".csv", ".lock", ".sum",
	".mod",
	".svg", ".log", ".ipynb", ".map", ".t", ".pl", ".lua", ".bats", ".feature"}

// builds are names of files that say how something is built.
var builds = regexp.MustCompile(`(?i)^((gnu)?makefile|dockerfile|containerfile|jenkinsfile|vagrantfile|tiltfile|` +
	`procfile)(\..*)?$|\.mk$`)

// kept are names of what was there before, which an editor or a person put aside.
var kept = regexp.MustCompile(`(?i)(\.(bak|orig|old|save|rej|swp)|~)$`)

// others are extensions of configuration that is neither YAML nor JSON.
var others = []string{".conf", ".cfg", ".properties", ".toml", ".ini", ".hcl", ".nomad", ".tf", ".txt"}

var keyed = regexp.MustCompile(`(?m)\A(?:\s*(?:#.*)?\n)*(?:---.*\n)?(?:\s*(?:#.*)?\n)*` +
	`(?:[{\[]|"?[A-Za-z_][\w.-]*"?:(?:\s|$))`)

// isYAML reports whether a text is to be parsed as YAML or JSON.
func isYAML(name string, data []byte) bool {
	extension := strings.ToLower(path.Ext(name))
	if slices.Contains(extensions, extension) {
		return true
	}
	return !slices.Contains(others, extension) && keyed.Match(data[:min(len(data), 4096)])
}
