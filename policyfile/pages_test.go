package policyfile // not policyfile_test: the pages are made from the schema that the structs make

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// node is one key of the schema.
type node struct {
	Type        any              `json:"type"`
	Description string           `json:"description"`
	Default     any              `json:"default"`
	Enum        []any            `json:"enum"`
	Pattern     string           `json:"pattern"`
	Range       string           `json:"x-range"`
	Minimum     *float64         `json:"minimum"`
	Maximum     *float64         `json:"maximum"`
	Ref         string           `json:"$ref"`
	Properties  map[string]*node `json:"properties"`
	Items       *node            `json:"items"`
	AnyOf       []*node          `json:"anyOf"`
	Defs        map[string]*node `json:"$defs"`
}

// section is a mapping of the file: its keys that are no mappings, under the name by which pages ask for it.
type section struct {
	name, title string
	of          *node
}

// sections walks the schema: the file, the policy, the protection, Redis, and what is inside them.
func sections(t *testing.T) (list []section) {
	t.Helper()
	text, err := json.Marshal(generate(t))
	if err != nil {
		t.Fatal(err)
	}
	file := new(node)
	if err := json.Unmarshal(text, file); err != nil {
		t.Fatal(err)
	}
	var walk func(name, title string, n *node)
	walk = func(name, title string, n *node) {
		list = append(list, section{name, title, n})
		for _, key := range slices.Sorted(maps.Keys(n.Properties)) {
			inner, to := n.Properties[key], title+": "+key
			if strings.Contains(title, ": ") {
				to = title + "." + key
			}
			switch {
			case inner.Ref != "":
			case len(inner.Properties) > 0:
				walk(name+"."+key, to, inner)
			case inner.Items != nil && len(inner.Items.Properties) > 0:
				inner.Items.Description = inner.Description
				list = append(list, section{name + "." + key, to, inner.Items})
			}
		}
	}
	top := &node{Description: file.Description, Properties: make(map[string]*node)}
	for key, n := range file.Properties {
		if key != "redis" && key != "outside" {
			top.Properties[key] = n
		}
	}
	list = append(list, section{"file", "the file", top})
	walk("policy", "services", file.Defs["policy"])
	walk("protection", "protect", file.Defs["protection"])
	walk("redis", "redis", file.Properties["redis"])
	walk("outside", "outside", file.Properties["outside"])
	return list
}

// leaves are the keys of a section that are no sections themselves.
func (s section) leaves() (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(s.of.Properties)) {
		if n := s.of.Properties[key]; len(n.Properties) == 0 && (n.Items == nil || len(n.Items.Properties) == 0) {
			keys = append(keys, key)
		}
	}
	return keys
}

var (
	// absent finds what a key stands for that is not written; its default counts once the section is in use.
	absent = regexp.MustCompile(`(?:Zero|Empty|Empty or 0|Not set)(?: means|:) ((?:[^.]|\.\d)+)\.`)
	// marked finds the word that is called the default.
	marked = regexp.MustCompile(`(\w+)"? \((?:the )?default\)`)
	// value is a text that may stand in the file.
	value = regexp.MustCompile(`^[\w.:"/-]+$`)
)

// unwritten is the value that counts when a key is not written; "" where there is none to name.
func (n *node) unwritten() string {
	text := ""
	if m := absent.FindStringSubmatch(n.Description); m != nil {
		text = regexp.MustCompile(`^the default[,:] `).ReplaceAllString(m[1], "")
	} else if m := marked.FindStringSubmatch(n.Description); m != nil {
		text = m[1]
	} else if strings.Contains(n.Description, "Zero, the default,") {
		text = "none"
	}
	if len(text) > 60 {
		text = "see the meaning"
	}
	switch {
	case n.Default == nil || n.Default == "":
	case (n.Default == 0.0 || n.Default == "0s") && text != "":
		return fmt.Sprintf("`%v`: %s", n.Default, text)
	case reflect.TypeOf(n.Default).Kind() == reflect.Float64:
		return "`" + number(n.Default.(float64)) + "`"
	default:
		return fmt.Sprintf("`%v`", n.Default)
	}
	if value.MatchString(text) && !slices.Contains([]string{"none", "off", "all"}, text) {
		return "`" + strings.Trim(text, `"`) + "`"
	}
	return text
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// values says what may be written.
func (n *node) values() string {
	switch kind, _ := n.Type.(string); {
	case len(n.Enum) > 0:
		var words []string
		for _, w := range n.Enum {
			if w != "" {
				words = append(words, fmt.Sprintf("`%v`", w))
			}
		}
		return strings.Join(words, ", ")
	case kind == "array" || n.Items != nil:
		return "list"
	case n.Range != "":
		low, high, _ := strings.Cut(n.Range, "..")
		return low + " to " + high
	case n.Minimum != nil && n.Maximum != nil:
		return number(*n.Minimum) + " to " + number(*n.Maximum)
	case kind == "boolean":
		return "`true`, `false`"
	case kind == "object" || n.Ref != "" || len(n.Properties) > 0:
		return "mapping"
	}
	return "text"
}

func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// anchor is what GitHub makes of a heading.
func anchor(title string) string {
	return regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(title), "")
}

const referenceHead = `# Every key of the policy file

This page is made from the [JSON Schema](../policyfile/schema.json), which is made from the Go structs and their
comments; "go test ./policyfile -run Pages -update" writes it anew. "abate check FILE" prints a file with every
default written out, and names all mistakes at once.

A duration is a number with a unit, such as 250ms, 1.5s, 1m30s or 24h. A rate is a number and a time: 100/s, 50/m or
100/10s. A section that is not written takes the defaults of this page; "disabled: true" in it switches it off. What
each policy is for is on [its own page](policies/README.md).

`

// reference is the page of all keys.
func reference(t *testing.T) []byte {
	var b bytes.Buffer
	b.WriteString(referenceHead)
	all := sections(t)
	for _, s := range all {
		fmt.Fprintf(&b, "- [%s](#%s)\n", s.title, strings.ReplaceAll(anchor(s.title), " ", "-"))
	}
	for _, s := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| Key | Default | Values | Meaning |\n|---|---|---|---|\n",
			s.title, cell(s.of.Description))
		for _, key := range slices.Sorted(maps.Keys(s.of.Properties)) {
			n := s.of.Properties[key]
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", key, cell(n.unwritten()), cell(n.values()), cell(n.Description))
		}
	}
	return b.Bytes()
}

// defaultsTable is the place for a table of defaults on a page: the section, and the keys of it if these are not all.
var defaultsTable = regexp.MustCompile(`(?s)<!-- defaults of ([\w.]+)(?:: ([\w, ]+))? -->\n(.*?)<!-- end -->\n`)

// fill writes the tables of a page, and notes which keys they have.
func fill(t *testing.T, page []byte, all []section, shown map[string]bool) []byte {
	return defaultsTable.ReplaceAllFunc(page, func(was []byte) []byte {
		m := defaultsTable.FindSubmatch(was)
		i := slices.IndexFunc(all, func(s section) bool { return s.name == string(m[1]) })
		if i < 0 {
			t.Errorf("the policy file has no section %s", m[1])
			return was
		}
		keys := all[i].leaves()
		if len(m[2]) > 0 {
			keys = strings.Split(string(m[2]), ", ")
		}
		head, _, _ := bytes.Cut(was, []byte("\n"))
		b := bytes.NewBuffer(slices.Clone(head)) // head is a part of the page
		b.WriteString("\n| Key | Default | Values |\n|---|---|---|\n")
		for _, key := range keys {
			n := all[i].of.Properties[key]
			if n == nil {
				t.Errorf("%s has no key %s", m[1], key)
				continue
			}
			shown[all[i].name+"."+key] = true
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", key, cell(n.unwritten()), cell(n.values()))
		}
		b.WriteString("<!-- end -->\n")
		return b.Bytes()
	})
}

// docs returns the paths of all pages.
func docs(t *testing.T) (pages []string) {
	t.Helper()
	err := filepath.WalkDir("../docs", func(name string, d fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(pages, "../README.md")
}

func TestPagesAreInStepWithTheSchema(t *testing.T) {
	all, shown := sections(t), make(map[string]bool)
	for _, name := range docs(t) {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := fill(t, page, all, shown)
		if filepath.Base(name) == "reference.md" {
			want = reference(t)
		}
		if bytes.Equal(page, want) {
			continue
		}
		if !*update {
			t.Errorf("%s is out of step with the schema; run: go test ./policyfile -run Pages -update", name)
		} else if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range all {
		for _, key := range s.leaves() {
			if name := s.name + "." + key; !shown[name] {
				t.Errorf("no page shows the default of %s: add it to a table <!-- defaults of %s -->", name, s.name)
			}
		}
	}
}

// Examples that nobody loads are wrong sooner or later.
func TestPolicyFilesOfThePagesLoad(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n((?:defaults|services|protect|gatewayRetries):.*?)```")
	for _, name := range docs(t) {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllSubmatch(page, -1) {
			if _, err := Parse(name, m[1]); err != nil {
				t.Errorf("%v\n%s", err, m[1])
			}
		}
	}
}
