package spring

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

var keys = regexp.MustCompile(`(?m)^[ \t]*(resilience4j\.|spring\.cloud\.gateway\.|spring\.cloud\.openfeign\.|` +
	`spring\.application\.name\b)`)

// aside are folders whose configurations are those of tests, or copies that a build made.
var aside = regexp.MustCompile(`/(src/(test|it|integrationTest)|target/classes|build/resources)/`)

// Recognise reports whether a document is a configuration of Spring Boot that says something of calls, or names an
// application.
func Recognise(d source.Document) bool {
	if d.Prose() || aside.MatchString("/"+d.File) {
		return false
	}
	if !d.Root.IsMap() {
		return !d.Root.IsList() && keys.Match(d.Data)
	}
	if configFile.MatchString(path.Base(cmp.Or(d.Name, d.File))) && !d.Root.Get("apiVersion").Exists() {
		return true // what others read out of it
	}
	for _, p := range d.Root.Pairs() {
		if same(p.Key) == "resilience4j" && p.Value.IsMap() || strings.HasPrefix(p.Key, "resilience4j.") ||
			strings.HasPrefix(p.Key, "spring.cloud.gateway") || strings.HasPrefix(p.Key, "spring.application.name") {
			return true
		}
	}
	spring := d.Root.Get("spring")
	return spring.Get("application", "name").Exists() || spring.Get("cloud", "gateway").Exists() ||
		spring.Get("cloud", "openfeign").Exists() || spring.Get("application.name").Exists() ||
		spring.Get("cloud.gateway").Exists()
}

// layerOfConfig is one document of an application, and the profiles that it is for.
type layerOfConfig struct {
	doc     *source.Document
	entries []entry // of a properties file
	profile string  // an expression; empty for all
}

// Read returns what the documents say. Those of one folder are one application.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	var out topology.Form
	var order []string
	groups := map[string][]layerOfConfig{}
	entries := map[string]map[string]bool{} // of a ConfigMap, the applications that its entries are named after
	for i := range docs {
		d := &docs[i]
		key := path.Dir(d.File) + "\x00" + d.Owner + "\x00" + stem(d)
		if _, seen := groups[key]; !seen {
			order = append(order, key)
		}
		groups[key] = append(groups[key], layersOf(d)...)
		if d.Name != "" {
			if entries[d.File] == nil {
				entries[d.File] = map[string]bool{}
			}
			entries[d.File][stem(d)] = true
		}
	}
	for _, key := range order {
		named := ""
		if d := groups[key][0].doc; len(entries[d.File]) > 1 { // the files of a config server
			named = stem(d)
		}
		d := groups[key][0].doc
		shared := groups[path.Dir(d.File)+"\x00"+d.Owner+"\x00"]
		if stem(d) == "" {
			shared = nil
		}
		read(&out, groups[key], shared, named, assume)
	}
	seen := map[topology.Remark]bool{} // of default filters, which all routes have
	out.Remarks = slices.DeleteFunc(out.Remarks, func(r topology.Remark) bool {
		before := seen[r]
		seen[r] = true
		return before
	})
	return out
}

var configFile = regexp.MustCompile(`^(application|bootstrap)(?:-([\w.-]+?))?\.(ya?ml|properties)$`)

// stem tells the configurations of several applications in one folder apart. Files that Spring looks for by their name
// have none.
func stem(d *source.Document) string {
	base := path.Base(cmp.Or(d.Name, d.File))
	if configFile.MatchString(base) {
		return ""
	}
	name, _, _ := strings.Cut(base, ".")
	return name
}

// layersOf returns the parts of a document: one, or for a properties file one for each of its documents.
func layersOf(d *source.Document) []layerOfConfig {
	profile := ""
	if m := configFile.FindStringSubmatch(path.Base(cmp.Or(d.Name, d.File))); m != nil {
		profile = m[2]
	}
	if d.Root.IsMap() {
		own := &tree{}
		own.overlay(d.Root)
		return []layerOfConfig{{doc: d, profile: cmp.Or(own.profile(), profile)}}
	}
	var out []layerOfConfig
	for _, entries := range properties(d.Data) {
		own := &tree{}
		own.overlayProperties(d, entries)
		out = append(out, layerOfConfig{doc: d, entries: entries, profile: cmp.Or(own.profile(), profile)})
	}
	return out
}

// profile returns the profiles that a document says it is for.
func (t *tree) profile() string {
	for _, p := range []string{"spring.config.activate.on-profile", "spring.profiles"} {
		var names []string
		for _, w := range t.get(p).words() {
			names = append(names, w.text)
		}
		if len(names) > 0 {
			return strings.Join(names, ",")
		}
	}
	return ""
}

// production are the names of a profile that counts when nobody says which are active.
var production = []string{"prod", "production", "prd", "live"}

// active reports whether a document for profiles counts: "prod", "prod | eu", "!test", "prod & eu".
func active(expression string, profiles []string) bool {
	for _, any := range strings.FieldsFunc(expression, func(r rune) bool { return r == ',' || r == '|' }) {
		holds := true
		for all := range strings.SplitSeq(any, "&") {
			name, not := strings.CutPrefix(strings.Trim(all, " ()"), "!")
			holds = holds && slices.Contains(profiles, name) != not
		}
		if holds {
			return true
		}
	}
	return expression == ""
}

// stages are names of profiles that stand for another place than production.
var stages = []string{"dev", "development", "local", "test", "testing", "it", "ci", "qa", "uat", "stage", "staging",
	"demo"}

// activeOf returns the profiles that are active: as it was told, else that of production if there is one, and those
// that the workloads of the application set. Beside production, those of other stages do not count.
func activeOf(layers []layerOfConfig, env map[string]string, assume source.Assume) (profiles []string) {
	words := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	}
	if profiles = words(assume.Versions["spring.profiles"]); len(profiles) > 0 {
		return profiles
	}
	for _, name := range production {
		if slices.ContainsFunc(layers, func(l layerOfConfig) bool { return l.profile == name }) {
			profiles = []string{name}
			break
		}
	}
	for _, name := range words(env["SPRING_PROFILES_ACTIVE"]) {
		if len(profiles) == 0 || !slices.Contains(stages, name) {
			profiles = append(profiles, name)
		}
	}
	return profiles
}

// over puts the documents that count over one another. Those behind count more.
func over(layers []layerOfConfig, counts func(layerOfConfig) bool) *tree {
	root := &tree{}
	for _, l := range layers {
		if counts(l) {
			l.over(root)
		}
	}
	return root
}

// read reads one application. It is called what it says itself, else named if that is not empty, else what its file is
// called. shared is what all applications of its folder read, as those of a config server do: it fills placeholders.
func read(out *topology.Form, layers, shared []layerOfConfig, named string, assume source.Assume) {
	layers, shared = sorted(layers), sorted(shared)
	called := func(root *tree) string {
		name, _ := resolve(root.value("spring.application.name"))
		if name == "" || source.Template(name) != "" {
			name = cmp.Or(named, layers[0].doc.Service("spring-application"))
		}
		return name
	}
	env := assume.Environments[strings.ToLower(called(over(layers, func(layerOfConfig) bool { return true })))]
	profiles := activeOf(slices.Concat(layers, shared), env, assume)
	counts := func(l layerOfConfig) bool { return active(l.profile, profiles) }
	root := over(layers, counts)
	// Where one profile is active, the others are what it is chosen from.
	chosen := slices.ContainsFunc(layers, func(l layerOfConfig) bool {
		return l.profile != "" && !strings.HasPrefix(l.profile, "!") && counts(l)
	})
	for _, l := range layers {
		if chosen || counts(l) {
			continue
		}
		own := &tree{}
		if l.over(own); own.speaks() {
			out.Remarks = append(out.Remarks, topology.Remark{Rule: "F702", At: l.doc.At(1, 0), Subject: "profile " + l.profile,
				Text: "what this document sets for the profile " + l.profile + " was not counted",
				Fix:  "tell which profiles are active: --assume spring.profiles=" + l.profile})
		}
	}
	a := &application{form: out, root: root, shared: over(shared, counts), env: env, service: called(root),
		assume: assume, version: assume.For(layers[0].doc.File).Version("resilience4j", assumedVersion)}
	if a.resilience(); a.gateway() || root.value("spring.application.name") != "" || a.policies > 0 {
		out.Services = append(out.Services, topology.Service{Name: a.service, At: layers[0].doc.At(1, 0)})
	}
}

// sorted returns the documents in the order in which they are put over one another.
func sorted(layers []layerOfConfig) []layerOfConfig {
	layers = slices.Clone(layers)
	slices.SortStableFunc(layers, func(a, b layerOfConfig) int { return rank(a) - rank(b) })
	return layers
}

// rank puts documents for profiles behind those for all, and the bootstrap before the application.
func rank(l layerOfConfig) int {
	n := 0
	if strings.HasPrefix(path.Base(cmp.Or(l.doc.Name, l.doc.File)), "bootstrap") {
		n--
	}
	if l.profile != "" {
		n += 2
	}
	return n
}

func (l layerOfConfig) over(t *tree) {
	if l.doc.Root.IsMap() {
		t.overlay(l.doc.Root)
	} else {
		t.overlayProperties(l.doc, l.entries)
	}
}

// speaks reports whether a document says something of calls.
func (t *tree) speaks() bool {
	return t.get("resilience4j") != nil || t.get("spring.cloud.gateway") != nil || t.get("spring.cloud.openfeign") != nil
}

// application is one program.
type application struct {
	form     *topology.Form
	root     *tree
	shared   *tree             // what all applications of the folder read
	env      map[string]string // what its workloads set
	service  string
	assume   source.Assume
	version  topology.Value[string]
	policies int
}

func (a *application) remark(rule string, at topology.Position, subject, text, fix string) {
	a.form.Remarks = append(a.form.Remarks, topology.Remark{Rule: rule, At: at, Subject: a.service + " " + subject,
		Text: text, Fix: fix})
}
