package tidy

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// waits finds tests that sleep on the real clock. In a file that imports
// testing/synctest a sleep moves the virtual clock and costs nothing.
func waits(t *tree) []finding {
	return selectors(t, func(f *goFile, pkg, name string) (finding, bool) {
		imports := f.imports()
		if !f.test || imports[pkg] != "time" || name != "Sleep" || imports["synctest"] == "testing/synctest" {
			return finding{}, false
		}
		return banned(f.path, 0, "time.Sleep", "testing/synctest or explicit times", "a sleeping test is slow when it passes and flaky when it does not"), true
	})
}

// skips finds tests that skip themselves without the helper.
func skips(t *tree) []finding {
	handles := []string{"t", "b", "f", "tb"}
	return selectors(t, func(f *goFile, recv, name string) (finding, bool) {
		isSkip := name == "SkipNow" || name == "Skipf" || name == "Skip"
		if !isSkip || !slices.Contains(handles, strings.ToLower(recv)) || matches("internal/needs", f.dir) {
			return finding{}, false
		}
		return banned(f.path, 0, recv+"."+name, "a helper of "+forSkips, "nobody notices a skipped test: the helper fails it when CI=true"), true
	})
}

// selectors calls ban for every x.Sel in the tree's Go files and fills in the line.
func selectors(t *tree, ban func(f *goFile, x, sel string) (finding, bool)) []finding {
	var found []finding
	for _, f := range t.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok {
				if bad, is := ban(f, x.Name, sel.Sel.Name); is {
					bad.line = t.line(sel)
					found = append(found, bad)
				}
			}
			return true
		})
	}
	return found
}

func TestTestsDoNotSleep(t *testing.T) { holds(t, waits) }

func TestTestsDoNotSkipSilently(t *testing.T) { holds(t, skips) }

func TestSleepRuleFails(t *testing.T) {
	const body = "package p\n\nimport clock \"time\"\n\nfunc f() { clock.Sleep(1) }\n"
	provoke(t, waits, []example{
		{"a test sleeps", "policy/retry/a_test.go:5: error: time.Sleep is banned here", source{"policy/retry/a_test.go": body}},
		{"a test sleeps in virtual time", "", source{"policy/retry/a_test.go": strings.Replace(body, "import", "import \"testing/synctest\"\nimport", 1)}},
		{"a program sleeps", "", source{"internal/drill/a.go": body}},
		{"somebody else's Sleep", "", source{"a_test.go": "package p\n\nfunc f() { clock.Sleep(1) }\n"}},
	})
}

func TestSkipRuleFails(t *testing.T) {
	const body = "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Skip(\"later\") }\n"
	provoke(t, skips, []example{
		{"a bare skip", "a_test.go:5: error: t.Skip is banned here", source{"a_test.go": body}},
		{"a skip in a helper", "internal/drill/a.go:5:", source{"internal/drill/a.go": strings.ReplaceAll(body, "t.Skip", "t.Skipf")}},
		{"the helper itself", "", source{"internal/needs/a.go": body}},
		{"a scanner skips", "", source{"a.go": "package p\n\nfunc f(s interface{ Skip() }) { s.Skip() }\n"}},
	})
}
