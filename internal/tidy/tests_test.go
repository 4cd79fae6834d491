package tidy

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// onRealClock are the folders whose tests may wait: a benchmark measures real time.
var onRealClock = []string{"bench"}

// waits finds tests that wait on the real clock. In a file that imports
// testing/synctest waiting moves the virtual clock and costs nothing. A time limit
// costs nothing either: a case of a select in which something else happens first.
func waits(t *tree) []finding {
	limits := timeLimits(t)
	return selectors(t, func(f *goFile, sel *ast.SelectorExpr) (finding, bool) {
		if !f.test || f.packageOf(sel) != "time" || f.imports()["synctest"] == "testing/synctest" ||
			slices.Contains(onRealClock, f.dir) {
			return finding{}, false
		}
		name := sel.Sel.Name
		if name != "Sleep" && name != "Tick" && (name != "After" || limits[sel]) {
			return finding{}, false
		}
		return banned(f.path, t.line(sel), "time."+name,
			"testing/synctest or explicit times; as a time limit, a case of a select with another case",
			"a sleeping test is slow when it passes and flaky when it does not"), true
	})
}

// timeLimits are the selectors in the cases of every select that has more than one.
func timeLimits(t *tree) map[*ast.SelectorExpr]bool {
	limits := make(map[*ast.SelectorExpr]bool)
	for _, f := range t.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			choice, ok := n.(*ast.SelectStmt)
			if !ok || len(choice.Body.List) < 2 {
				return true
			}
			for _, clause := range choice.Body.List {
				comm := clause.(*ast.CommClause).Comm
				if comm == nil { // default
					continue
				}
				ast.Inspect(comm, func(n ast.Node) bool {
					if sel, ok := n.(*ast.SelectorExpr); ok {
						limits[sel] = true
					}
					return true
				})
			}
			return true
		})
	}
	return limits
}

// skipper is the one file that may skip a test: for a user without a program that the
// test drives.
const skipper = "internal/needs/needs.go"

// skips finds tests that skip themselves, whatever they call their testing.T, and
// helpers that skip the test of others.
func skips(t *tree) []finding {
	return selectors(t, func(f *goFile, sel *ast.SelectorExpr) (finding, bool) {
		isSkip := slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name)
		if !isSkip || f.path == skipper || !f.test && f.imports()["testing"] != "testing" {
			return finding{}, false
		}
		return banned(f.path, t.line(sel), sel.Sel.Name, "a test that runs everywhere, or needs.Program",
			"nobody notices a skipped test"), true
	})
}

// selectors calls ban for every x.Sel in the tree's Go files.
func selectors(t *tree, ban func(f *goFile, sel *ast.SelectorExpr) (finding, bool)) []finding {
	var found []finding
	for _, f := range t.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if bad, is := ban(f, sel); is {
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
	does := func(body string) source {
		return source{"a_test.go": "package p\n\nimport \"time\"\n\nfunc f(c chan int) { " + body + " }\n"}
	}
	provoke(t, waits, []example{
		{"a test sleeps", "policy/retry/a_test.go:5: error: time.Sleep is banned here", source{
			"policy/retry/a_test.go": body,
		}},
		{"a test sleeps in virtual time", "", source{
			"policy/retry/a_test.go": strings.Replace(body, "import", "import \"testing/synctest\"\nimport", 1),
		}},
		{"a test waits for a timer", "a_test.go:5: error: time.After is banned here", does("<-time.After(time.Second)")},
		{"a test waits for a tick", "a_test.go:5:", does("<-time.Tick(time.Second)")},
		{"a test waits in a select", "a_test.go:5:", does("select { case <-time.After(time.Second): }")},
		{"a test waits inside a case", "a_test.go:5:", does("select { case <-c: <-time.After(time.Second); case c <- 1: }")},
		{"a test has a time limit", "", does("select { case <-c: case <-time.After(time.Second): }")},
		{"a test polls", "", does("select { case <-c: default: }")},
		{"a benchmark waits", "", source{"bench/a_test.go": body}},
		{"a program sleeps", "", source{"internal/drill/a.go": body}},
		{"somebody else's Sleep", "", source{"a_test.go": "package p\n\nfunc f() { clock.Sleep(1) }\n"}},
	})
}

func TestSkipRuleFails(t *testing.T) {
	const body = "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Skip(\"later\") }\n"
	provoke(t, skips, []example{
		{"a bare skip", "a_test.go:5: error: Skip is banned here, use a test that runs everywhere",
			source{"a_test.go": body}},
		{"under another name", "a_test.go:5:", source{"a_test.go": strings.ReplaceAll(body, "t.Skip", "tt.Skip")}},
		{"through a field", "a_test.go:5:", source{"a_test.go": strings.ReplaceAll(body, "t.Skip", "suite.t.SkipNow")}},
		{"as a value", "a_test.go:5:", source{"a_test.go": strings.ReplaceAll(body, "t.Skip", "(*testing.T).Skipf")}},
		{"a skip in a helper", "internal/drill/a.go:5:", source{
			"internal/drill/a.go": strings.ReplaceAll(body, "t.Skip", "t.Skipf"),
		}},
		{"the skip for a missing program", "", source{
			"internal/needs/needs.go": strings.ReplaceAll(body, "t.Skip", "t.Skipf"),
		}},
		{"another skip beside it", "internal/needs/b.go:5:", source{"internal/needs/b.go": body}},
		{"a scanner skips", "", source{"a.go": "package p\n\nfunc f(s interface{ Skip() }) { s.Skip() }\n"}},
	})
}
