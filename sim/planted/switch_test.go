package planted_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// chooses is the environment variable that names the bug of a program that has all of them in it.
const chooses = "ABATE_PLANTED"

// switches writes all files that have bugs in them, and what tells go build to take those. A function with a bug is
// there twice: as it is, and under another name with the bug in it, which is called when the bug is chosen. One program
// is built then, and not one per bug.
func switches(t *testing.T, dir string, bugs []bug) (overlay string) {
	t.Helper()
	in := map[string][]int{} // bugs by their file
	for i, b := range bugs {
		in[b.file] = append(in[b.file], i)
	}
	replace := map[string]string{}
	put := func(path, text string) {
		if replace[path] != "" {
			return // the switch, which is the same for all files of a package
		}
		replace[path] = filepath.Join(dir, fmt.Sprintf("planted%d.go", len(replace)))
		write(t, replace[path], text)
	}
	for file, numbers := range in {
		path := absolute(t, file)
		text, pkg := switched(t, path, bugs, numbers)
		put(path, text)
		put(filepath.Join(filepath.Dir(path), "planted_switch.go"),
			fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar planted = os.Getenv(%q)\n", pkg, chooses))
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	write(t, overlay, string(list))
	return overlay
}

// edit is text that goes into a file at an offset.
type edit struct {
	at   int
	text string
}

// switched returns the text of a file with the bugs of these numbers in it, each behind its switch, and the name of the
// package.
func switched(t *testing.T, path string, bugs []bug, numbers []int) (text, pkg string) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	text = string(source)
	var copies strings.Builder
	var calls []edit // in the order of the bugs
	for _, n := range numbers {
		at := strings.Index(text, bugs[n].right)
		f := around(parsed, set, at, at+len(bugs[n].right))
		if at < 0 || f == nil {
			t.Fatalf("%s: %q is in no function, so no bug can be switched on in it", path, bugs[n].right)
		}
		begin, end := set.Position(f.Pos()).Offset, set.Position(f.End()).Offset
		name := set.Position(f.Name.Pos()).Offset
		twin := fmt.Sprintf("%sPlanted%d", f.Name.Name, n)
		copies.WriteString("\n" + text[begin:name] + twin + text[name+len(f.Name.Name):at] + bugs[n].wrong +
			text[at+len(bugs[n].right):end] + "\n")
		calls = append(calls, edit{set.Position(f.Body.Lbrace).Offset + 1,
			fmt.Sprintf("\nif planted == \"%d\" {\n%s\n}\n", n, call(t, f, twin))})
	}
	for i := len(calls) - 1; i >= 0; i-- { // offsets are those of the file as it was, so the last goes first
		last := i
		for j := range calls[:i+1] {
			if calls[j].at > calls[last].at {
				last = j
			}
		}
		text = text[:calls[last].at] + calls[last].text + text[calls[last].at:]
		calls[last] = calls[i]
	}
	return text + copies.String(), parsed.Name.Name
}

// around returns the function that the text between two offsets is part of.
func around(file *ast.File, set *token.FileSet, from, to int) *ast.FuncDecl {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && set.Position(f.Body.Lbrace).Offset < from && to < set.Position(f.End()).Offset {
			return f
		}
	}
	return nil
}

// call returns the statement by which a function does what its twin does.
func call(t *testing.T, f *ast.FuncDecl, twin string) string {
	t.Helper()
	name := func(id *ast.Ident) string {
		if id.Name == "_" {
			t.Fatalf("%s has a parameter without a name: choose another line", f.Name.Name)
		}
		return id.Name
	}
	if f.Recv != nil {
		twin = name(f.Recv.List[0].Names[0]) + "." + twin
	}
	var given []string
	for _, field := range f.Type.Params.List {
		for _, id := range field.Names {
			given = append(given, name(id))
		}
		if _, many := field.Type.(*ast.Ellipsis); many {
			given[len(given)-1] += "..."
		}
	}
	if statement := twin + "(" + strings.Join(given, ", ") + ")"; f.Type.Results != nil {
		return "return " + statement
	} else {
		return statement + "\nreturn"
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// absolute returns the path of a file of the repository.
func absolute(t *testing.T, file string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
