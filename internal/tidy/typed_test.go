package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// typed is a tree whose programs are type-checked. Tests are left out, and so is what this system does not build.
type typed struct {
	*tree
	programs []*goFile // in the order in which their packages were checked
	info     *types.Info
}

// checker checks the packages of a tree. It imports those from the tree itself, and others as the compiler
// exported them.
type checker struct {
	*typed
	folders map[string][]*goFile
	done    map[string]*types.Package // nil while it is being checked
	outside types.Importer
}

// newChecker returns a checker of a tree's packages, none of which is checked yet.
func newChecker(t *tree) *checker {
	c := &checker{
		typed: &typed{tree: t, info: &types.Info{
			Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object),
			Uses: make(map[*ast.Ident]types.Object), Selections: make(map[*ast.SelectorExpr]*types.Selection),
			Implicits: make(map[ast.Node]types.Object),
		}},
		folders: make(map[string][]*goFile), done: make(map[string]*types.Package),
		outside: importer.ForCompiler(t.fset, "gc", exported),
	}
	built := t.built()
	for _, f := range t.files {
		if !f.test && built(f) {
			c.folders[f.dir] = append(c.folders[f.dir], f)
		}
	}
	return c
}

// check type-checks all packages of a tree.
func check(t *tree) (*typed, error) {
	c := newChecker(t)
	for _, dir := range slices.Sorted(maps.Keys(c.folders)) {
		if _, err := c.Import(strings.TrimSuffix(ours+"/"+dir, "/.")); err != nil {
			return nil, err
		}
	}
	return c.typed, nil
}

// Import returns a package, checked if it is one of the tree's.
func (c *checker) Import(importPath string) (*types.Package, error) {
	dir, isOurs := folder(importPath)
	if !isOurs {
		return c.outside.Import(importPath)
	}
	if p, began := c.done[dir]; p != nil {
		return p, nil
	} else if began {
		return nil, fmt.Errorf("%s imports itself", dir)
	}
	c.done[dir] = nil
	files := make([]*ast.File, len(c.folders[dir]))
	for i, f := range c.folders[dir] {
		files[i] = f.ast
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no program in folder %s", dir)
	}
	config := types.Config{Importer: c, Sizes: types.SizesFor("gc", build.Default.GOARCH)}
	p, err := config.Check(importPath, c.fset, files, c.info)
	if err != nil {
		return nil, fmt.Errorf("%s does not type-check: %w", dir, err)
	}
	c.programs = append(c.programs, c.folders[dir]...)
	c.done[dir] = p
	return p, nil
}

// built returns which files the go command would build here.
func (t *tree) built() func(*goFile) bool {
	bodies := make(map[string][]byte)
	for _, f := range t.texts {
		bodies[f.path] = f.body
	}
	context := build.Default
	context.OpenFile = func(name string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(bodies[filepath.ToSlash(name)])), nil
	}
	return func(f *goFile) bool {
		ok, err := context.MatchFile(f.dir, path.Base(f.path))
		return ok || err != nil // what is wrong with it, the type checker says better
	}
}

// exported opens the compiler's export data of a package that is not ours.
func exported(importPath string) (io.ReadCloser, error) {
	files, err := exportFiles()
	if err != nil {
		return nil, err
	}
	name, ok := files[importPath]
	if !ok {
		return nil, fmt.Errorf("no export data of %s: no program of this repository imports it", importPath)
	}
	return os.Open(name)
}

// exportFiles asks the go command, once for all tests, where the build cache has what this repository's
// programs import.
var exportFiles = sync.OnceValues(func() (map[string]string, error) {
	repo, err := repository()
	if err != nil {
		return nil, err
	}
	imported := map[string]bool{"iter": true} // of the small trees
	for _, f := range repo.files {
		for _, spec := range f.ast.Imports {
			importPath, _ := strconv.Unquote(spec.Path.Value)
			if _, isOurs := folder(importPath); !isOurs && !f.test && importPath != "unsafe" {
				imported[importPath] = true
			}
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	list := []string{"list", "-e", "-export", "-f", "{{.ImportPath}} {{.Export}}", "--"}
	cmd := exec.Command("go", append(list, slices.Sorted(maps.Keys(imported))...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w: %s", cmd.Args[:3], err, said.Bytes())
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		if name, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			files[name] = file
		}
	}
	return files, nil
})
