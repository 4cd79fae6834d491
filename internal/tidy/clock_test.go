package tidy

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// drivers are the files of package abate that may read the clock, start timers
// and goroutines. Every other file of it, and all of policy/, only decides.
var drivers = []string{"clock.go", "context.go", "do.go", "race.go", "run.go"}

const whyPure = "decisions are pure: the simulator drives the same code in virtual time"

// bannedCalls maps a package to the functions that reach for the world, and what
// to use instead.
var bannedCalls = []struct {
	pkg     string
	names   []string
	instead string
}{
	{"time", []string{"Now", "Since", "Until"}, "the argument now"},
	{"time", []string{"Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, "a delay in the returned decision"},
	{"context", []string{"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause", "AfterFunc"},
		"a deadline in the returned decision"},
}

// seededRandom is what may be used of math/rand: sources that somebody seeded.
var seededRandom = []string{
	"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf",
	"Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf",
}

// worldly are the packages that policy/ must not import at all.
var worldly = []string{"os", "net", "syscall", "log", "crypto/rand"}

// clock finds decisions that read a clock, wait, draw a global random number,
// start a goroutine, or reach for the network or the system.
func clock(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		policy := strings.HasPrefix(f.dir, "policy/")
		machine := f.dir == "." && !slices.Contains(drivers, f.path)
		if f.test || !policy && !machine {
			continue
		}
		found = append(found, impureImports(t, f, policy)...)
		found = append(found, impureCalls(t, f)...)
	}
	return found
}

func impureImports(t *tree, f *goFile, policy bool) []finding {
	var found []finding
	for _, spec := range f.ast.Imports {
		importPath, _ := strconv.Unquote(spec.Path.Value)
		isWorldly := slices.ContainsFunc(worldly, func(p string) bool { return matches(p, importPath) })
		switch {
		case importPath == "crypto/rand" || policy && isWorldly:
			found = append(found, banned(f.path, t.line(spec), "import of "+importPath, "an argument", whyPure))
		case spec.Name != nil && spec.Name.Name == ".":
			found = append(found, banned(f.path, t.line(spec), "a dot import", "the package's name", "it would hide time.Now"))
		}
	}
	return found
}

func impureCalls(t *tree, f *goFile) []finding {
	var found []finding
	names := f.imports()
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, banned(f.path, t.line(n), "a go statement", "a decision that a driver carries out", whyPure))
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok {
				if instead := impure(names[pkg.Name], n.Sel.Name); instead != "" {
					found = append(found, banned(f.path, t.line(n), pkg.Name+"."+n.Sel.Name, instead, whyPure))
				}
			}
		case *ast.Comment:
			if strings.HasPrefix(n.Text, "//go:linkname") {
				found = append(found, banned(f.path, t.line(n), "go:linkname", "the argument now", whyPure))
			}
		}
		return true
	})
	return found
}

// impure returns what to use instead of a package's function, "" when it is allowed.
func impure(pkg, name string) (instead string) {
	for _, b := range bannedCalls {
		if b.pkg == pkg && slices.Contains(b.names, name) {
			return b.instead
		}
	}
	if (pkg == "math/rand" || pkg == "math/rand/v2") && !slices.Contains(seededRandom, name) {
		return "a random number given as an argument"
	}
	return ""
}

// staleDrivers finds names on the allow-list that no longer exist: a later file of
// that name would be let through unread.
func staleDrivers(t *tree) []finding {
	var found []finding
	for _, name := range drivers {
		if !slices.ContainsFunc(t.files, func(f *goFile) bool { return f.path == name }) {
			found = append(found, finding{name, 1, "listed as a driver in internal/tidy/clock_test.go but there is no such file"})
		}
	}
	return found
}

func TestDecisionsReadNoClock(t *testing.T) { holds(t, clock) }

func TestDriversExist(t *testing.T) { holds(t, staleDrivers) }

func TestClockRuleFails(t *testing.T) {
	uses := func(path, pkg, body string) source {
		return source{path: "package p\n\nimport \"" + pkg + "\"\n\nfunc f() { " + body + " }\n"}
	}
	provoke(t, clock, []example{
		{"policy reads the time", "policy/retry/a.go:5: error: time.Now is banned here, use the argument now (",
			uses("policy/retry/a.go", "time", "_ = time.Now()")},
		{"policy keeps the clock as a value", "policy/retry/a.go:5:", uses("policy/retry/a.go", "time", "now := time.Now; _ = now")},
		{"policy renames the import", "policy/retry/a.go:5:",
			source{"policy/retry/a.go": "package p\n\nimport t \"time\"\n\nfunc f() { t.Sleep(1) }\n"}},
		{"policy dot-imports", "policy/retry/a.go:3:",
			source{"policy/retry/a.go": "package p\n\nimport . \"time\"\n\nfunc f() { _ = Now() }\n"}},
		{"policy measures", "policy/retry/a.go:5:", uses("policy/retry/a.go", "time", "_ = time.Since(time.Time{})")},
		{"policy starts a timer", "policy/retry/a.go:5:", uses("policy/retry/a.go", "time", "time.AfterFunc(1, nil)")},
		{"policy starts a goroutine", "policy/retry/a.go:5: error: a go statement", uses("policy/retry/a.go", "fmt", "go fmt.Print()")},
		{"policy draws globally", "policy/retry/a.go:5:", uses("policy/retry/a.go", "math/rand/v2", "_ = rand.Uint64()")},
		{"policy draws globally, old package", "policy/retry/a.go:5:", uses("policy/retry/a.go", "math/rand", "_ = rand.Int()")},
		{"policy draws from the system", "policy/retry/a.go:3:", uses("policy/retry/a.go", "crypto/rand", "_ = rand.Reader")},
		{"policy opens sockets", "policy/retry/a.go:3:", uses("policy/retry/a.go", "net/http", "_ = http.MethodGet")},
		{"policy reads files", "policy/retry/a.go:3:", uses("policy/retry/a.go", "os", "_ = os.Args")},
		{"policy sets a deadline", "policy/retry/a.go:5:", uses("policy/retry/a.go", "context", "context.WithTimeout(nil, 1)")},
		{"policy links to the runtime", "policy/retry/a.go:3: error: go:linkname",
			source{"policy/retry/a.go": "package p\n\n//go:linkname nanotime runtime.nanotime\nfunc nanotime() int64\n"}},
		{"state machine reads the time", "call.go:5:", uses("call.go", "time", "_ = time.Now()")},
		{"state machine starts a goroutine", "step.go:5:", uses("step.go", "fmt", "go fmt.Print()")},
		{"a driver may", "", uses("do.go", "time", "go time.Sleep(1)")},
		{"a test may", "", uses("policy/retry/a_test.go", "time", "_ = time.Now()")},
		{"a seeded source is given", "", uses("policy/retry/a.go", "math/rand/v2", "_ = rand.New(rand.NewPCG(1, 2))")},
		{"durations are numbers", "", uses("policy/retry/a.go", "time", "_ = 2 * time.Second")},
		{"an adapter may", "", uses("adapter/abatehttp/a.go", "time", "_ = time.Now()")},
	})
}

func TestStaleDriverRuleFails(t *testing.T) {
	all := source{}
	for _, name := range drivers {
		all[name] = "package abate\n"
	}
	provoke(t, staleDrivers, []example{{"all there", "", all}})
	delete(all, drivers[0])
	provoke(t, staleDrivers, []example{{"one gone", drivers[0] + ":1: error: listed as a driver", all}})
}
