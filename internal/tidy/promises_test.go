package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"strings"
	"testing"
)

// namedTest is the name of a test or a fuzz target in a text.
var namedTest = regexp.MustCompile(`\b((?:Test|Fuzz)[A-Z]\w*)\b`)

// missingTests finds tests that a page for readers names and that do not exist.
func missingTests(t *tree) []finding {
	exists := make(map[string]bool)
	for _, f := range t.files {
		if !f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				exists[fn.Name.Name] = true
			}
		}
	}
	var found []finding
	for _, f := range t.texts {
		if path.Ext(f.path) != ".md" {
			continue
		}
		for _, at := range namedTest.FindAllSubmatchIndex(f.body, -1) {
			if name := string(f.body[at[2]:at[3]]); !exists[name] && !namesTheForm(name) {
				line := 1 + strings.Count(string(f.body[:at[2]]), "\n")
				found = append(found, finding{f.path, line, fmt.Sprintf("there is no test %s: name the one that holds this", name)})
			}
		}
	}
	return found
}

// namesTheForm reports whether a name only stands for any test, as in go test -run TestName.
func namesTheForm(name string) bool { return name == "TestName" || name == "FuzzName" }

func TestNamedTestsExist(t *testing.T) { holds(t, missingTests) }

func TestNamedTestRuleFails(t *testing.T) {
	provoke(t, missingTests, []example{
		{"a test that is there", "", source{"a.md": "`TestA`", "a_test.go": "package p\n\nfunc TestA() {}\n"}},
		{"one that is not", "a.md:2: error: there is no test TestB", source{
			"a.md": "x\n`TestB`", "a_test.go": "package p\n\nfunc TestA() {}\n",
		}},
		{"a function that is no test", "a.md:1: error: there is no test TestA", source{
			"a.md": "TestA", "a.go": "package p\n\nfunc TestA() {}\n",
		}},
		{"a form", "", source{"a.md": "go test -run TestName"}},
	})
}
