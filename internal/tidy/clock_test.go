package tidy

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// machines are the packages whose files are state machines, but for the drivers.
var machines = []string{"core", "inbound"}

// drivers are the files of machines that may read the clock, start timers and goroutines. Every other file of them, and
// all of policy/, only decides.
var drivers = []string{
	"core/admit.go", "core/clock.go", "core/context.go", "core/do.go", "core/guards.go", "core/handing.go",
	"core/leash.go", "core/loser.go", "core/race.go", "core/run.go", "inbound/arrivalasks.go",
}

// decided are the packages of ours that the state machines may import. The drivers have more. What the state machines
// may call in them, the graph of calls tells: see pure_test.go.
var decided = []string{
	"policy/", "core", "internal/exhausted", "internal/clock", "internal/chance", "internal/caught", "internal/check",
	"internal/listeners",
}

// inMachine reports whether a file is part of a state machine.
func inMachine(f *goFile) bool {
	return slices.Contains(machines, f.dir) && !slices.Contains(drivers, f.path)
}

const whyPure = "decisions are pure: the simulator drives the same code in virtual time"

// harmless are the packages that only compute, and those of which harmful names
// the part that does more. Nothing else may be imported by a decision.
var harmless = []string{
	"bytes", "cmp", "container/heap", "context", "crypto/sha256", "encoding/binary", "errors", "fmt", "hash",
	"hash/maphash", "io", "maps", "math", "math/big", "math/bits",
	"math/rand", "math/rand/v2", "net/netip", "reflect", "slices", "sort", "strconv", "strings", "sync", "sync/atomic",
	"time", "unicode", "unicode/utf8",
}

// errorsOf are the names of worldly packages that the root's state machines need to
// tell one error or address from another. policy/ knows neither.
var errorsOf = map[string][]string{
	"net":     {"Error", "ErrClosed", "OpError", "SplitHostPort"},
	"net/url": {"Error", "Parse", "URL"},
	"syscall": {"ECONNREFUSED", "ECONNRESET", "EPIPE", "Errno"},
}

// harmful maps a package to the functions that reach for the world, and what to use
// instead.
var harmful = []struct {
	pkg     string
	names   []string
	instead string
}{
	{"time", []string{"Now", "Since", "Until"}, "the argument now"},
	{"time", []string{"Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, "a delay in the returned decision"},
	{"time", []string{"Local", "LoadLocation"}, "durations since a fixed origin"},
	{"context", []string{"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause", "AfterFunc"},
		"a deadline in the returned decision"},
	{"hash/maphash", []string{"MakeSeed", "Hash", "Comparable"}, "a seed that the caller hands over"},
	{"fmt", []string{"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"}, "a value that the caller prints"},
}

// seededRandom is what may be used of math/rand: sources that somebody seeded.
var seededRandom = []string{
	"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf",
	"Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf",
}

// clock finds decisions that read a clock, wait, draw a random number that nobody
// seeded, start a goroutine, or reach for the network or the system.
func clock(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		policy := strings.HasPrefix(f.dir, "policy/") && !strings.HasSuffix(f.dir, "/storetest") // a suite for tests waits
		if f.test || !policy && !inMachine(f) {
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
		_, forErrors := errorsOf[importPath]
		dir, isOurs := folder(importPath)
		switch {
		case isOurs && !policy && !slices.ContainsFunc(decided, func(prefix string) bool { return matches(prefix, dir) }):
			found = append(found, banned(f.path, t.line(spec), "import of "+importPath, "an argument", whyPure))
		case !standard(importPath): // arrows looks after those
		case !slices.Contains(harmless, importPath) && (policy || !forErrors):
			found = append(found, banned(f.path, t.line(spec), "import of "+importPath,
				"an argument; if it only computes, add it to harmless in internal/tidy/clock_test.go", whyPure))
		case spec.Name != nil && spec.Name.Name == ".":
			found = append(found, banned(f.path, t.line(spec), "a dot import", "the package's name", "it would hide time.Now"))
		}
	}
	return found
}

func impureCalls(t *tree, f *goFile) []finding {
	var found []finding
	ban := func(n ast.Node, what, instead string) {
		found = append(found, banned(f.path, t.line(n), what, instead, whyPure))
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			ban(n, "a go statement", "a decision that a driver carries out")
		case *ast.SelectorExpr:
			if n.Sel.Name == "Go" { // of a WaitGroup, an errgroup, whatever wraps them
				ban(n, "a method called Go", "a decision that a driver carries out")
			}
			if pkg := f.packageOf(n); pkg != "" {
				if instead := impure(pkg, n.Sel.Name); instead != "" {
					ban(n, pkg+"."+n.Sel.Name, instead)
				}
			}
		case *ast.Comment:
			if strings.HasPrefix(n.Text, "//go:linkname") {
				ban(n, "go:linkname", "the argument now")
			}
		}
		return true
	})
	return found
}

// impure returns what to use instead of a package's function, "" when it is allowed.
func impure(pkg, name string) (instead string) {
	for _, h := range harmful {
		if h.pkg == pkg && slices.Contains(h.names, name) {
			return h.instead
		}
	}
	if (pkg == "math/rand" || pkg == "math/rand/v2") && !slices.Contains(seededRandom, name) {
		return "a random number given as an argument"
	}
	if names, ok := errorsOf[pkg]; ok && !slices.Contains(names, name) {
		return "only its " + strings.Join(names, ", ")
	}
	return ""
}

// staleDrivers finds names on the allow-lists that no longer exist: a later file of
// that name would be let through unread.
func staleDrivers(t *tree) []finding {
	var found []finding
	for _, name := range drivers {
		if !slices.ContainsFunc(t.files, func(f *goFile) bool { return f.path == name }) {
			found = append(found, finding{name, 1, "on a list of internal/tidy/clock_test.go but there is no such file"})
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
		{"policy keeps the clock as a value", "policy/retry/a.go:5:",
			uses("policy/retry/a.go", "time", "now := time.Now; _ = now")},
		{"policy renames the import", "policy/retry/a.go:5:",
			source{"policy/retry/a.go": "package p\n\nimport t \"time\"\n\nfunc f() { t.Sleep(1) }\n"}},
		{"policy dot-imports", "policy/retry/a.go:3:",
			source{"policy/retry/a.go": "package p\n\nimport . \"time\"\n\nfunc f() { _ = Now() }\n"}},
		{"policy measures", "policy/retry/a.go:5:", uses("policy/retry/a.go", "time", "_ = time.Since(time.Time{})")},
		{"policy starts a timer", "policy/retry/a.go:5:", uses("policy/retry/a.go", "time", "time.AfterFunc(1, nil)")},
		{"policy starts a goroutine", "policy/retry/a.go:5: error: a go statement",
			uses("policy/retry/a.go", "fmt", "go fmt.Sprint()")},
		{"policy draws globally", "policy/retry/a.go:5:", uses("policy/retry/a.go", "math/rand/v2", "_ = rand.Uint64()")},
		{"policy draws globally, old package", "policy/retry/a.go:5:",
			uses("policy/retry/a.go", "math/rand", "_ = rand.Int()")},
		{"policy draws from the system", "policy/retry/a.go:3:", uses("policy/retry/a.go", "crypto/rand", "_ = rand.Reader")},
		{"policy opens sockets", "policy/retry/a.go:3:", uses("policy/retry/a.go", "net/http", "_ = http.MethodGet")},
		{"policy reads files", "policy/retry/a.go:3:", uses("policy/retry/a.go", "os", "_ = os.Args")},
		{"policy sets a deadline", "policy/retry/a.go:5:",
			uses("policy/retry/a.go", "context", "context.WithTimeout(nil, 1)")},
		{"policy links to the runtime", "policy/retry/a.go:3: error: go:linkname",
			source{"policy/retry/a.go": "package p\n\n//go:linkname nanotime runtime.nanotime\nfunc nanotime() int64\n"}},
		{"state machine reads the time", "core/call.go:5:", uses("core/call.go", "time", "_ = time.Now()")},
		{"state machine starts a goroutine", "core/step.go:5:", uses("core/step.go", "fmt", "go fmt.Sprint()")},
		{"policy starts a goroutine by a method", "policy/retry/a.go:5: error: a method called Go",
			uses("policy/retry/a.go", "sync", "new(sync.WaitGroup).Go(f)")},
		{"policy pulls, on a coroutine", "policy/retry/a.go:3: error: import of iter",
			uses("policy/retry/a.go", "iter", "iter.Pull[int](nil)")},
		{"policy draws a hash's seed", "policy/retry/a.go:5:",
			uses("policy/retry/a.go", "hash/maphash", "_ = maphash.MakeSeed()")},
		{"policy prints", "policy/retry/a.go:5:", uses("policy/retry/a.go", "fmt", "fmt.Println()")},
		{"policy looks into errors of the network", "policy/retry/a.go:3:",
			uses("policy/retry/a.go", "net", "_ = net.ErrClosed")},
		{"state machine starts a goroutine by a method", "core/call.go:5:",
			uses("core/call.go", "sync", "start := new(sync.WaitGroup).Go; start(f)")},
		{"state machine sends a request", "core/call.go:3: error: import of net/http",
			uses("core/call.go", "net/http", "http.Get(\"\")")},
		{"state machine reads the environment", "core/call.go:3:", uses("core/call.go", "os", "os.Getenv(\"\")")},
		{"state machine pulls, on a coroutine", "core/call.go:3:", uses("core/call.go", "iter", "iter.Pull[int](nil)")},
		{"state machine draws a hash's seed", "core/call.go:5:",
			uses("core/call.go", "hash/maphash", "_ = maphash.MakeSeed()")},
		{"state machine draws from the system", "core/call.go:3:", uses("core/call.go", "crypto/rand", "_ = rand.Reader")},
		{"state machine dials", "core/call.go:5: error: net.Dial is banned here, use only its Error, ",
			uses("core/call.go", "net", "net.Dial(\"\", \"\")")},
		{"state machine dials by a type", "core/call.go:5:",
			uses("core/call.go", "net", "var d net.Dialer; d.Dial(\"\", \"\")")},
		{"state machine calls the system", "core/call.go:5:", uses("core/call.go", "syscall", "syscall.Getpid()")},
		{"state machine looks into errors of the network", "", uses("core/call.go", "net", "_ = net.ErrClosed")},
		{"state machine looks into an address", "", uses("core/call.go", "net/url", "url.Parse(\"\")")},
		{"state machine imports the processor's load", "core/call.go:3: error: import of " + ours +
			"/internal/cpu is banned here, use an argument (",
			uses("core/call.go", ours+"/internal/cpu", "_ = cpu.Share()")},
		{"state machine imports it for nothing", "core/call.go:3:", source{
			"core/call.go": "package core\n\nimport _ \"" + ours + "/internal/cpu\"\n",
		}},
		{"state machine imports a policy", "", uses("core/call.go", ours+"/policy/retry", "_ = retry.New")},
		{"a driver imports the processor's load", "",
			uses("inbound/arrivalasks.go", ours+"/internal/cpu", "_ = cpu.Share()")},
		{"the guard is no driver", "core/guard.go:5:", uses("core/guard.go", "time", "_ = time.Now()")},
		{"a driver may", "", uses("core/do.go", "time", "go time.Sleep(1)")},
		{"a test may", "", uses("policy/retry/a_test.go", "time", "_ = time.Now()")},
		{"a seeded source is given", "", uses("policy/retry/a.go", "math/rand/v2", "_ = rand.New(rand.NewPCG(1, 2))")},
		{"durations are numbers", "", uses("policy/retry/a.go", "time", "_ = 2 * time.Second")},
		{"an adapter may", "", uses("adapter/abatehttp/a.go", "time", "_ = time.Now()")},
	})
}

func TestStaleDriverRuleFails(t *testing.T) {
	all := source{}
	for _, name := range drivers {
		all[name] = "package core\n"
	}
	provoke(t, staleDrivers, []example{{"all there", "", all}})
	delete(all, drivers[0])
	provoke(t, staleDrivers, []example{{"one gone", drivers[0] + ":1: error: on a list", all}})
}
