package tidy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// outsideWorkspace are modules with their own go line, not listed in go.work: the
// linters' versions must not mix with ours, nor ask us for a newer Go.
var outsideWorkspace = []string{"tools"}

// modFile is what the rules need to know of a go.mod or go.work file.
type modFile struct {
	path, dir string
	entries   []modEntry
}

// modEntry is one directive with its arguments, whether written in a block or not.
type modEntry struct {
	line int
	verb string
	args []string
}

// parseMod reads the line-oriented syntax of go.mod and go.work.
func parseMod(f textFile) modFile {
	m := modFile{path: f.path, dir: path.Dir(f.path)}
	block := ""
	for i, text := range strings.Split(string(f.body), "\n") {
		text, _, _ = strings.Cut(text, "//")
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
		case block == "" && len(words) == 2 && words[1] == "(":
			block = words[0]
		case block != "" && words[0] == ")":
			block = ""
		case block != "":
			m.entries = append(m.entries, modEntry{i + 1, block, words})
		default:
			m.entries = append(m.entries, modEntry{i + 1, words[0], words[1:]})
		}
	}
	return m
}

// first returns the first argument of the first such directive, and its line.
func (m modFile) first(verb string) (arg string, line int) {
	for _, e := range m.entries {
		if e.verb == verb && len(e.args) > 0 {
			return e.args[0], e.line
		}
	}
	return "", 1
}

// modules returns all module files of a tree by folder, and the workspace file.
func modules(t *tree) (mods map[string]modFile, work modFile) {
	mods = make(map[string]modFile)
	for _, f := range t.texts {
		switch path.Base(f.path) {
		case "go.mod":
			m := parseMod(f)
			mods[m.dir] = m
		case "go.work":
			work = parseMod(f)
		}
	}
	return mods, work
}

// requires finds dependencies of the root module besides the YAML library.
func requires(t *tree) []finding {
	mods, _ := modules(t)
	root, ok := mods["."]
	if !ok {
		return []finding{{"go.mod", 1, "there is no root module"}}
	}
	var found []finding
	for _, e := range root.entries {
		if e.verb == "require" && e.args[0] != yaml {
			found = append(
				found, banned(root.path, e.line, "a requirement on "+e.args[0], "the standard library or a nested module",
					"importing abate must move no version of the importer's"))
		}
	}
	return found
}

// replaces finds replace directives that point anywhere but to our own folders.
func replaces(t *tree) []finding {
	const why = "a replace is not seen by users: only our own unpublished modules may need one"
	mods, work := modules(t)
	all := []modFile{work}
	for _, m := range mods {
		all = append(all, m)
	}
	var found []finding
	for _, m := range all {
		for _, e := range m.entries {
			if e.verb != "replace" {
				continue
			}
			target := e.args[len(e.args)-1]
			module, _ := mods[path.Join(m.dir, target)].first("module")
			relative := strings.HasPrefix(target, "./") || strings.HasPrefix(target, "../") || target == ".."
			if !relative || module != e.args[0] {
				found = append(found, banned(m.path, e.line, "replace "+strings.Join(e.args, " "),
					"the relative folder of that module of ours", why))
			}
		}
	}
	return found
}

// newer are the modules with the embedded Kafka broker, and the programs with them: the broker's module wants a newer
// Go than what people import of ours does. The workspace has their line.
var newer = []string{"adapter/abatekafka/embedded", "examples", "tests", "cmd"}

const newerGo = "1.26.0"

// goLines finds modules whose go line differs from the root's, or whose name is
// not that of their folder, or which the workspace does not list.
func goLines(t *tree) []finding {
	mods, work := modules(t)
	root, _ := mods["."].first("go")
	highest := root
	var found []finding
	for dir, m := range mods {
		name := strings.TrimSuffix(ours+"/"+dir, "/.")
		if got, line := m.first("module"); got != name {
			found = append(found, finding{m.path, line, fmt.Sprintf("module %s must be called %s, after its folder", got, name)})
		}
		if slices.Contains(outsideWorkspace, dir) {
			continue
		}
		want, as := root, "as in the root module"
		if slices.Contains(newer, dir) {
			want, as, highest = newerGo, "as in all modules with the embedded broker", newerGo
		}
		if got, line := m.first("go"); got != want {
			found = append(found, finding{m.path, line, fmt.Sprintf("go %s must be go %s, %s", got, want, as)})
		}
		if !work.uses(dir) {
			found = append(found, finding{m.path, 1, "module is not listed in go.work, so nothing builds or tests it"})
		}
	}
	if got, line := work.first("go"); got != highest {
		found = append(found, finding{
			"go.work", line, fmt.Sprintf("go %s must be go %s, the highest of its modules", got, highest),
		})
	}
	return found
}

func (m modFile) uses(dir string) bool {
	return slices.ContainsFunc(m.entries, func(e modEntry) bool {
		return e.verb == "use" && path.Clean(e.args[0]) == dir
	})
}

func TestRootModuleRequiresOnlyYAML(t *testing.T) { holds(t, requires) }

func TestReplacesPointToOurFolders(t *testing.T) { holds(t, replaces) }

func TestModulesAreInLockstep(t *testing.T) { holds(t, goLines) }

// house is a small tree of modules that keeps the rules, changed by edits.
func house(edits source) source {
	s := source{
		"go.mod":       "module " + ours + "\n\ngo 1.25.0\n\nrequire " + yaml + " v3.0.5 // the one\n",
		"go.work":      "go 1.25.0\n\nuse (\n\t.\n\t./bench\n)\n",
		"bench/go.mod": "module " + ours + "/bench\n\ngo 1.25.0\n\nreplace " + ours + " => ..\n",
		"tools/go.mod": "module " + ours + "/tools\n\ngo 1.26.0\n",
	}
	for name, body := range edits {
		s[name] = body
	}
	return s
}

func TestRequiresRuleFails(t *testing.T) {
	const start = "module " + ours + "\n\ngo 1.25.0\n\n"
	provoke(t, requires, []example{
		{"the house as it is", "", house(nil)},
		{"a second library", "go.mod:7: error: a requirement on golang.org/x/time",
			house(source{"go.mod": start + "require (\n\t" + yaml + " v3.0.5\n\tgolang.org/x/time v0.15.0\n)\n"})},
		{"an indirect one", "go.mod:5:", house(source{"go.mod": start + "require golang.org/x/time v0.15.0 // indirect\n"})},
		{"no root module", "go.mod:1: error: there is no root module", source{"bench/go.mod": "module x\n"}},
	})
}

func TestReplacesRuleFails(t *testing.T) {
	const start = "module " + ours + "/bench\n\ngo 1.25.0\n\n"
	bench := func(directive string) source { return house(source{"bench/go.mod": start + directive + "\n"}) }
	provoke(t, replaces, []example{
		{"the house as it is", "", house(nil)},
		{"a fork", "bench/go.mod:5: error: replace", bench("replace golang.org/x/time => github.com/fork/time v0.1.0")},
		{"an absolute folder", "bench/go.mod:5:", bench("replace " + ours + " => /src/abate")},
		{"a folder of ours that is not it", "bench/go.mod:5:", bench("replace " + ours + " => ../tools")},
		{"somebody else's module", "bench/go.mod:5:", bench("replace golang.org/x/time => ../tools")},
		{"in the workspace", "go.work:8:", house(source{
			"go.work": "go 1.25.0\n\nuse (\n\t.\n\t./bench\n)\n\nreplace golang.org/x/time => ../time\n"})},
	})
}

func TestLockstepRuleFails(t *testing.T) {
	provoke(t, goLines, []example{
		{"the house as it is", "", house(nil)},
		{"a newer go line", "bench/go.mod:3: error: go 1.26.0 must be go 1.25.0",
			house(source{"bench/go.mod": "module " + ours + "/bench\n\ngo 1.26.0\n"})},
		{"a module with the broker", "", house(source{"cmd/go.mod": "module " + ours + "/cmd\n\ngo " + newerGo + "\n",
			"go.work": "go " + newerGo + "\n\nuse .\nuse ./bench\nuse ./cmd\n"})},
		{"a module with the broker that is not newer", "cmd/go.mod:3: error: go 1.25.0 must be go " + newerGo,
			house(source{"cmd/go.mod": "module " + ours + "/cmd\n\ngo 1.25.0\n",
				"go.work": "go " + newerGo + "\n\nuse .\nuse ./bench\nuse ./cmd\n"})},
		{"a newer workspace", "go.work:1:", house(source{"go.work": "go 1.26.0\n\nuse .\nuse ./bench\n"})},
		{"not in the workspace", "bench/go.mod:1: error: module is not listed",
			house(source{"go.work": "go 1.25.0\n\nuse .\n"})},
		{"a name that is not the folder's", "tools/go.mod:1: error: module example.com/x must be called",
			house(source{"tools/go.mod": "module example.com/x\n\ngo 1.26.0\n"})},
	})
}
