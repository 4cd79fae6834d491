package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// ours is the path of the root module; nested modules are called after their folder.
const ours = "github.com/abate-go/abate"

// TestMain collects garbage less often than usual: the tree stays in memory, and a quarter of the time went there.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

// tree is the repository as the rules see it: every Go file parsed, every other
// file as text.
type tree struct {
	fset  *token.FileSet
	files []*goFile
	texts []textFile
}

type goFile struct {
	path string // slash-separated, from the root
	dir  string // "." for the root package
	ast  *ast.File
	test bool
}

type textFile struct {
	path string
	body []byte
}

// finding is one broken rule at one place.
type finding struct {
	path string
	line int
	text string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: error: %s", f.path, f.line, f.text) }

// rule looks for everything in a tree that breaks it.
type rule func(*tree) []finding

// banned builds the usual finding: what is banned, what to use, and why.
func banned(path string, line int, what, instead, why string) finding {
	return finding{path, line, fmt.Sprintf("%s is banned here, use %s (%s)", what, instead, why)}
}

// line is the line of a node's first character.
func (t *tree) line(n ast.Node) int { return t.fset.Position(n.Pos()).Line }

// imports maps the name under which f uses a package to the package's path.
func (f *goFile) imports() map[string]string {
	names := make(map[string]string)
	for _, spec := range f.ast.Imports {
		importPath, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		} else if importPath == "math/rand/v2" {
			name = "rand"
		}
		names[name] = importPath
	}
	return names
}

// packageOf returns the path of the package that sel takes a name from, "" when sel
// is a field or a method.
func (f *goFile) packageOf(sel *ast.SelectorExpr) string {
	if x, ok := sel.X.(*ast.Ident); ok {
		return f.imports()[x.Name]
	}
	return ""
}

// load reads a whole tree. Folders that start with a dot are left out, except the
// CI script's; so are what the build writes, and what git has instead of a folder in a
// second work tree.
func load(root fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci" || name == "bench/out" {
				return fs.SkipDir
			}
			return nil
		}
		if ext := path.Ext(name); ext == ".test" || ext == ".prof" || name == ".git" || !d.Type().IsRegular() {
			return nil
		}
		return t.read(root, name)
	})
	return t, err
}

func (t *tree) read(root fs.FS, name string) error {
	body, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	if !bytes.ContainsRune(body[:min(len(body), 8000)], 0) { // a zero byte means binary
		t.texts = append(t.texts, textFile{name, body})
	}
	if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
		return nil
	}
	file, err := parser.ParseFile(t.fset, name, body, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.files = append(t.files, &goFile{
		path: name, dir: path.Dir(name), ast: file,
		test: strings.HasSuffix(name, "_test.go"),
	})
	return nil
}

// repository is this repository, read once for all tests.
var repository = sync.OnceValues(func() (*tree, error) { return load(os.DirFS("../..")) })

// holds reports every place in the repository that breaks the rule.
func holds(t *testing.T, r rule) {
	t.Helper()
	repo, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	if len(repo.files) < 10 || len(repo.texts) < 10 {
		t.Fatalf("only %d Go files and %d texts read: this is not the repository", len(repo.files), len(repo.texts))
	}
	for _, f := range r(repo) {
		t.Error(f)
	}
}

// source is a small tree: path → contents.
type source map[string]string

func (s source) check(t *testing.T, r rule) []finding {
	t.Helper()
	files := make(fstest.MapFS)
	for name, body := range s {
		files[name] = &fstest.MapFile{Data: []byte(body)}
	}
	small, err := load(files)
	if err != nil {
		t.Fatal(err)
	}
	return r(small)
}

// example is a small tree and what a rule must say about it: one finding that
// starts with want, or none when want is empty.
type example struct {
	name string
	want string
	tree source
}

// provoke runs a rule over examples, most of which break it.
func provoke(t *testing.T, r rule, examples []example) {
	t.Helper()
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			found := e.tree.check(t, r)
			switch {
			case e.want == "" && len(found) != 0:
				t.Errorf("found %v in a tree that keeps the rule", found)
			case e.want != "" && len(found) != 1:
				t.Errorf("%d findings %v, want one: %q", len(found), found, e.want)
			case e.want != "" && !strings.HasPrefix(found[0].String(), e.want):
				t.Errorf("found %q, want %q", found[0], e.want)
			}
		})
	}
}
