package tidy

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// documented are the folders whose exported names all need a comment.
var documented = []string{".", "policy/", "policyfile", "adapter/"}

// comments finds exported names without a doc comment, and fields of exported
// Config and Policy structs without one: those end up in the published schema.
func comments(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if f.test || !isDocumented(f.dir) {
			continue
		}
		missing := func(n ast.Node, name string) {
			found = append(found, finding{
				f.path, t.line(n), "exported " + name + " has no doc comment: say what it is, its units and its promises",
			})
		}
		for _, decl := range f.ast.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Doc == nil && decl.Name.IsExported() && exportedReceiver(decl) {
					missing(decl.Name, decl.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					uncommented(decl, spec, missing)
				}
			}
		}
	}
	return found
}

func isDocumented(dir string) bool {
	for _, prefix := range documented {
		if matches(prefix, dir) {
			return true
		}
	}
	return false
}

// exportedReceiver reports whether a method's type is exported; a function's is.
func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return true
	}
	expr := fn.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return false
		}
	}
}

// uncommented reports the exported names of one type, constant or variable that
// neither it nor its group describes.
func uncommented(decl *ast.GenDecl, spec ast.Spec, missing func(ast.Node, string)) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		alone := !decl.Lparen.IsValid()
		if spec.Name.IsExported() && spec.Doc == nil && !(alone && decl.Doc != nil) {
			missing(spec.Name, spec.Name.Name)
		}
		if body, ok := spec.Type.(*ast.StructType); ok && (spec.Name.Name == "Config" || spec.Name.Name == "Policy") {
			for _, field := range body.Fields.List {
				if len(field.Names) > 0 && field.Names[0].IsExported() && field.Doc == nil && field.Comment == nil {
					missing(field, "field "+field.Names[0].Name)
				}
			}
		}
	case *ast.ValueSpec:
		if decl.Tok == token.IMPORT || decl.Doc != nil || spec.Doc != nil || spec.Comment != nil {
			return
		}
		for _, name := range spec.Names {
			if name.IsExported() {
				missing(name, name.Name)
			}
		}
	}
}

func TestExportedNamesHaveComments(t *testing.T) { holds(t, comments) }

func TestCommentRuleFails(t *testing.T) {
	in := func(dir, body string) source {
		return source{strings.TrimPrefix(dir+"/a.go", "./"): "package p\n\n" + body + "\n"}
	}
	provoke(t, comments, []example{
		{"function", "policy/retry/a.go:3: error: exported F has no doc comment", in("policy/retry", "func F() {}")},
		{"type", "a.go:3: error: exported T ", in(".", "type T int")},
		{"method", "policyfile/a.go:6:", in("policyfile", "// T is.\ntype T int\n\nfunc (t *T) M() {}")},
		{"method of a generic type", "a.go:6:", in(".", "// T is.\ntype T[A, B any] struct{}\n\nfunc (t *T[A, B]) M() {}")},
		{"constant", "adapter/abatehttp/a.go:3:", in("adapter/abatehttp", "const C = 1")},
		{"variable in a group", "a.go:6: error: exported B ", in(".", "var (\n\t// A is.\n\tA = 1\n\tB = 2\n)")},
		{"type in a group", "a.go:5: error: exported B ", in(".", "// Types.\ntype (\n\tB int\n)")},
		{"configuration field", "policy/retry/a.go:5: error: exported field Max ",
			in("policy/retry", "// Config is.\ntype Config struct {\n\tMax int\n}")},
		{"a described group", "", in(".", "// Kinds.\nconst (\n\tA = 1\n\tB = 2\n)")},
		{"comments at the line's end", "", in(".", "const (\n\tA = 1 // is\n)")},
		{"unexported", "", in(".", "func f() {}\n\ntype t int\n\nfunc (t) M() {}")},
		{"elsewhere", "", in("internal/drill", "func F() {}")},
	})
}
