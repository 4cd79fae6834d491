package tidy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layer is one row of the import rules. A folder belongs to the layer with the
// longest matching prefix. A prefix that ends in "/" is a shelf: each folder on it
// is a package of its own and may not import its siblings.
//
// Inside a layer imports are free. What has a row of its own is another layer, also if
// it lies in a folder of the first: "sim" does not mean sim/report, "sim/" means both.
type layer struct {
	prefix string
	may    []string // prefixes of ours it may import; "." is package abate
	others string   // what it may import from elsewhere besides the standard library
}

const (
	forTests  = "internal/needs"    // every test may import it, and nothing else
	loopback  = "internal/loopback" // every test may import it, and what starts servers
	nothing   = ""                  // the standard library only
	anybody   = "*"                 // any module
	yaml      = "go.yaml.in/yaml/v3"
	whyArrows = "ARCHITECTURE.md draws the arrows: left may be imported by right, siblings never import siblings"
)

// public is everything a user of the module can import.
var public = []string{".", "core", "inbound", "startup", "policy/", "hops", "policyfile", "topology", "importer",
	"importer/", "lint", "audit", "export", "exporter", "sim", "sim/", "adapter/", "proxy", "proxy/"}

// forTestsOf are what only the tests of a layer may import besides.
var forTestsOf = map[string][]string{
	".":                  {"inbound", "startup", "policy/"}, // the guarded call as its users see it
	"adapter/abateprom":  {"internal/series/process"},       // which is held against the client library's
	"proxy":              {"adapter/abateredis/trial"},
	"adapter/abateredis": {"adapter/abateredis/trial"},
	"lint":               {"core", "policy/"}, // its bound is held against the guards themselves
	"sim/harm":           {"sim"},
	"sim/scenario":       {"sim/engine", "internal/strictyaml/schematest"}, // the examples of its README are simulated
}

var layers = []layer{
	{"policy/", nil, nothing},
	{"internal/clock", nil, nothing},
	{"internal/chance", nil, nothing},
	{"internal/caught", nil, nothing},
	{"internal/listeners", nil, nothing},
	{"internal/check", []string{"policy/", "internal/upstream"}, nothing},
	{"internal/upstream", nil, nothing},
	{"core", []string{"policy/", "internal/caught", "internal/chance", "internal/check", "internal/clock",
		"internal/exhausted",
		"internal/listeners"}, nothing},
	{"inbound", []string{"core", "policy/", "internal/caught", "internal/chance", "internal/check", "internal/clock",
		"internal/cpu",
		"internal/listeners"}, nothing},
	{"startup", []string{"core", "policy/", "internal/clock"}, nothing},
	{"internal/registry", []string{"core", "inbound"}, nothing},
	{"internal/series", nil, nothing},
	{"internal/series/process", []string{"internal/series"}, nothing},
	{"internal/metrics", []string{"internal/series", "internal/registry", "core", "inbound", "startup", ".", "policy/"},
		nothing},
	{".", []string{"core"}, nothing},
	{"internal/cpu", nil, nothing},
	{"internal/nearest", nil, nothing},
	{"internal/pathform", nil, nothing},
	{"internal/fieldname", nil, nothing},
	{"internal/exhausted", nil, nothing},
	{"internal/untaken", nil, nothing},
	{"internal/nowait", nil, nothing},
	{loopback, nil, nothing},
	{"internal/strictyaml", []string{"internal/nearest", "internal/check"}, yaml},
	{"policyfile", []string{
		"internal/check", "internal/registry", "internal/strictyaml", "internal/pathform", "internal/upstream", "core",
		"inbound", ".", "policy/",
	}, yaml},
	// The audit, from the bottom up.
	{"topology", []string{"internal/strictyaml"}, yaml},
	{"importer/source", []string{"topology", "internal/nearest"}, yaml},
	{"importer/envoywords", []string{"importer/source", "topology"}, nothing},
	{"importer/", []string{"importer/source", "importer/envoywords", "topology"}, yaml},
	{"importer/abatefile", []string{"importer/source", "topology", "policyfile", "core", "inbound", ".", "policy/"}, yaml},
	{"importer/ingress", []string{"importer/source", "importer/kong", "importer/nginx", "topology"}, nothing},
	{"importer/gatewayapi", []string{"importer/source", "importer/envoywords", "importer/kong", "topology"}, nothing},
	{"importer", []string{"importer/source", "importer/", "topology"}, yaml},
	{"exporter", []string{"topology"}, yaml},
	{"lint", []string{"topology"}, nothing},
	{"audit", []string{"topology", "importer", "importer/", "exporter", "lint", "sim", "sim/", "policyfile", "core",
		"inbound", ".", "policy/"}, yaml},
	{"export", []string{"internal/registry", "policyfile", "core", "inbound", ".", "policy/"}, yaml},
	// The simulator, from the bottom up.
	{"sim/kernel", nil, nothing},
	{"sim/figures", nil, nothing},
	{"sim/expect", []string{"internal/nearest"}, nothing},
	{"sim/distribution", []string{"sim/kernel", "internal/nearest"}, nothing},
	{"sim/population", []string{"internal/registry", "sim/kernel", "core", "inbound", ".", "policy/"}, nothing},
	{"sim/scenario", []string{"sim/population", "sim/distribution", "sim/expect", "policyfile", "internal/strictyaml",
		"core", "inbound", ".", "policy/"}, yaml},
	{"sim/engine", []string{"sim/kernel", "sim/scenario", "sim/expect", "hops", "core", "inbound", ".", "policy/"},
		nothing},
	{"sim/validation", []string{"sim/population", "sim/engine", "sim/scenario", "sim/expect", "policy/"}, nothing},
	{"sim/search", nil, nothing},
	{"sim/remedy", []string{"sim/scenario", "internal/strictyaml", "policyfile", "core", "inbound", ".", "policy/"}, yaml},
	{"sim", []string{"sim/search", "sim/remedy", "sim/population", "sim/engine", "sim/scenario", "sim/expect",
		"sim/kernel", "sim/figures", "policyfile", "core", "inbound", ".", "policy/"}, nothing},
	{"sim/report", []string{"sim", "sim/engine", "sim/expect", "sim/figures"}, nothing},
	{"sim/summary", []string{"sim", "sim/scenario", "sim/expect", "sim/figures", "policyfile", "."}, nothing},
	{"sim/library", []string{"sim", "sim/", "."}, nothing}, // tests
	{"sim/harm", []string{"sim/kernel", "sim/engine", "sim/scenario", "sim/expect"}, nothing},
	{"sim/tune", []string{"sim", "sim/search", "sim/remedy", "sim/harm", "sim/engine", "sim/scenario", "sim/expect",
		"sim/kernel", "sim/figures", "policyfile"}, yaml},
	{"sim/planted", nil, nothing}, // tests
	{"hops", []string{"core", "inbound", ".", "policy/"}, nothing},
	{"internal/connfail", []string{"core", "inbound", ".", "policy/"}, nothing},
	{"internal/serving", []string{"internal/fieldname", "hops", "core", "inbound", ".", "policy/"}, nothing},
	{"internal/repeats", nil, nothing},
	{"adapter/", []string{"hops", "internal/connfail", "internal/registry", "internal/repeats", "internal/serving", "core",
		"inbound", "startup", ".", "policy/"}, anybody},
	{"adapter/abatehttp", []string{
		"hops", "internal/repeats", "internal/serving", "core", "inbound", "startup", ".", "policy/",
	}, nothing},
	{"adapter/abatesql", []string{"internal/connfail", "core", "inbound", ".", "policy/"}, nothing},
	{"adapter/abatenet", []string{"internal/connfail", "core", "startup", ".", "policy/"}, nothing},
	{"adapter/abateadmin", []string{"internal/registry", "core", "inbound", "startup", ".", "policy/"}, nothing},
	{"adapter/abatekafka/letter", []string{"core", "inbound", ".", "policy/"}, anybody},
	{"adapter/abatekafka", []string{
		"adapter/abatekafka/letter", "internal/check", "internal/connfail", "internal/repeats", "core", "inbound",
		".", "policy/",
	}, anybody},
	{"adapter/abatekafka/dlq", []string{"adapter/abatekafka/letter", "core", "inbound", ".", "policy/"}, anybody},
	{"adapter/abatekafka/dlq/page", []string{"adapter/abatekafka/dlq", "adapter/abatekafka/letter"}, anybody},
	{"adapter/abatekafka/embedded", nil, anybody},
	{"adapter/abateprom", []string{"internal/metrics", "internal/series", "core", "inbound", ".", "policy/"}, anybody},
	{"adapter/abateredis", []string{"core", "inbound", ".", "policy/"}, anybody},
	{"adapter/abateredis/trial", nil, anybody},
	{"proxy/h1", nil, nothing},
	{"proxy/h2", []string{"proxy/h1", "internal/untaken", "internal/nowait", "core"}, anybody},
	{"proxy/identity", []string{"proxy/h1"}, nothing},
	{"proxy/proxyproto", nil, nothing},
	{"proxy/stale", []string{"proxy/h1", "internal/fieldname"}, nothing},
	{"proxy/calltree", []string{"proxy/h1", "internal/fieldname", "hops", "core", "inbound", ".", "policy/"}, nothing},
	{"proxy/spread", nil, nothing},
	{"proxy/tracing", nil, anybody},
	{"proxy/discovery", []string{"adapter/abatehttp", ".", "policy/"}, anybody},
	{"proxy", []string{
		"proxy/h1", "proxy/h2", "proxy/identity", "proxy/proxyproto", "proxy/stale", "proxy/calltree", "proxy/sharing",
		"proxy/spread", "proxy/discovery", "proxy/tracing", "adapter/",
		"internal/serving", "internal/fieldname", "internal/pathform", "internal/exhausted", "internal/untaken",
		"internal/upstream", "internal/nowait", "internal/metrics", "internal/series", "internal/series/process",
		"hops", "policyfile", "core",
		"inbound", ".", "policy/",
	}, anybody},
	{"proxy/sharing", []string{"proxy", "adapter/abateredis", "policyfile"}, anybody},
	{"cmd", append([]string{
		"cmd", "adapter/", "internal/connfail", "internal/drill", "internal/drill/", "internal/nearest", loopback,
		"internal/metrics", "internal/series", "internal/upstream", "scenarios",
	}, public...), anybody},
	{"internal/drill", []string{"sim/figures"}, nothing},
	{"internal/drill/httpdrill", []string{
		"internal/drill", loopback, "scenarios", "sim", "sim/", "adapter/abatehttp", "hops", "policyfile", "core",
		"inbound", ".", "policy/",
	}, nothing},
	{"internal/tidy", nil, nothing},
	{"internal/release", nil, nothing},
	{"internal/harm", []string{"sim/harm"}, nothing},
	{"internal/advice", []string{"sim", "sim/harm", "sim/remedy", "sim/scenario"}, nothing},
	{"scenarios", nil, nothing},
	{forTests, []string{loopback}, nothing},
	{"examples/", public, anybody}, // a module of their own
	{"examples/http", public, nothing},
	{"examples/orders", public, nothing},
	// with what brings dependencies: a module of its own
	{"tests/", append([]string{forTests, loopback}, public...), anybody},
	{"deploy", []string{"policyfile", "core", "inbound", ".", "policy/"}, anybody},
	{"bench", append([]string{loopback}, public...), anybody},
	{"tools", nil, anybody},
}

// matches reports whether folder dir lies under prefix.
func matches(prefix, dir string) bool {
	if prefix == "." {
		return dir == "."
	}
	if strings.HasSuffix(prefix, "/") {
		return strings.HasPrefix(dir, prefix)
	}
	return dir == prefix || strings.HasPrefix(dir, prefix+"/")
}

// layerOf returns the layer of a folder, nil when it has none.
func layerOf(dir string) *layer {
	var best *layer
	for i := range layers {
		l := &layers[i]
		if matches(l.prefix, dir) && (best == nil || len(l.prefix) > len(best.prefix)) {
			best = l
		}
	}
	return best
}

// unit is the part of a folder's path inside which imports are free: a policy and
// its test suite, an adapter and its subfolders.
func (l *layer) unit(dir string) string {
	if !strings.HasSuffix(l.prefix, "/") {
		return l.prefix
	}
	name, _, _ := strings.Cut(dir[len(l.prefix):], "/")
	return l.prefix + name
}

// arrows finds imports that point the wrong way, and folders without a layer.
func arrows(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		l := layerOf(f.dir)
		if l == nil {
			found = append(found, finding{f.path, 1, fmt.Sprintf(
				"folder %s has no layer; say in internal/tidy/arrows_test.go what it may import", f.dir)})
			continue
		}
		for _, spec := range f.ast.Imports {
			importPath, _ := strconv.Unquote(spec.Path.Value)
			if l.allows(f, importPath) {
				continue
			}
			found = append(found, banned(f.path, t.line(spec), "import of "+importPath, l.instead(), whyArrows))
		}
	}
	return found
}

func (l *layer) allows(f *goFile, importPath string) bool {
	dir, isOurs := folder(importPath)
	if !isOurs {
		return standard(importPath) || l.others == anybody || l.others == importPath
	}
	if unit := l.unit(f.dir); unit != "." && matches(unit, dir) && layerOf(dir) == l || f.dir == dir {
		return true
	}
	names := func(prefix string) bool {
		row := layerOf(dir) == nil || len(layerOf(dir).prefix) <= len(prefix)
		return matches(prefix, dir) && (row || strings.HasSuffix(prefix, "/"))
	}
	return slices.ContainsFunc(l.may, names) ||
		f.test && (matches(forTests, dir) || dir == loopback || slices.ContainsFunc(forTestsOf[l.prefix], names))
}

// standard reports whether a package belongs to the standard library.
func standard(importPath string) bool {
	host, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(host, ".")
}

// folder returns the folder of a package of ours.
func folder(importPath string) (dir string, isOurs bool) {
	if importPath == ours {
		return ".", true
	}
	return strings.CutPrefix(importPath, ours+"/")
}

func (l *layer) instead() string {
	list := "the standard library"
	if l.others == anybody {
		list = "any module of others"
	} else if l.others != nothing {
		list += ", " + l.others
	}
	for _, prefix := range l.may {
		list += ", " + strings.TrimSuffix(ours+"/"+prefix, "/.")
	}
	return list
}

func TestImportsFollowTheArrows(t *testing.T) { holds(t, arrows) }

func TestArrowsRuleFails(t *testing.T) {
	imports := func(dir, file, pkg string) source {
		return source{strings.TrimPrefix(dir+"/", "./") + file: "package p\n\nimport _ \"" + pkg + "\"\n"}
	}
	provoke(t, arrows, []example{
		{"policy imports a sibling", "policy/retry/a.go:3: error: import of " + ours + "/policy/budget is banned here, use",
			imports("policy/retry", "a.go", ours+"/policy/budget")},
		{"policy imports the root", "policy/retry/a.go:3:", imports("policy/retry", "a.go", ours)},
		{"policy test imports the root", "policy/retry/a_test.go:3:", imports("policy/retry", "a_test.go", ours)},
		{"policy imports a module", "policy/retry/a.go:3:", imports("policy/retry", "a.go", "golang.org/x/time/rate")},
		{"policy test imports itself", "", imports("policy/retry", "a_test.go", ours+"/policy/retry")},
		{"policy suite imports its policy", "", imports("policy/idempotency/storetest", "a.go", ours+"/policy/idempotency")},
		{"root imports the state machines", "", imports(".", "a.go", ours+"/core")},
		{"the state machines import a policy", "", imports("core", "a.go", ours+"/policy/retry")},
		{"root imports a policy", "a.go:3:", imports(".", "a.go", ours+"/policy/retry")},
		{"root imports policyfile", "a.go:3:", imports(".", "a.go", ours+"/policyfile")},
		{"root imports YAML", "a.go:3:", imports(".", "a.go", yaml)},
		{"root test imports an adapter", "a_test.go:3:", imports(".", "a_test.go", ours+"/adapter/abatehttp")},
		{"policyfile imports YAML", "", imports("policyfile", "a.go", yaml)},
		{"policyfile imports lint", "policyfile/a.go:3:", imports("policyfile", "a.go", ours+"/lint")},
		{"sim imports policyfile", "", imports("sim", "a.go", ours+"/policyfile")},
		{"sim imports lint", "sim/a.go:3:", imports("sim", "a.go", ours+"/lint")},
		{"sim imports its engine", "", imports("sim", "a.go", ours+"/sim/engine")},
		{"sim imports its report", "sim/a.go:3:", imports("sim", "a.go", ours+"/sim/report")},
		{"kernel imports the engine", "sim/kernel/a.go:3:", imports("sim/kernel", "a.go", ours+"/sim/engine")},
		{"engine imports sim", "sim/engine/a.go:3: error: import of " + ours + "/sim is banned here",
			imports("sim/engine", "a.go", ours+"/sim")},
		{"engine imports a population", "sim/engine/a.go:3:", imports("sim/engine", "a.go", ours+"/sim/population")},
		{"scenario imports the engine", "sim/scenario/a.go:3:", imports("sim/scenario", "a.go", ours+"/sim/engine")},
		{"scenario's test imports the engine", "", imports("sim/scenario", "a_test.go", ours+"/sim/engine")},
		{"population imports a scenario", "sim/population/a.go:3:", imports("sim/population", "a.go", ours+"/sim/scenario")},
		{"report imports its sibling", "sim/report/a.go:3:", imports("sim/report", "a.go", ours+"/sim/summary")},
		{"drill imports the simulator's report", "", imports("internal/drill/httpdrill", "a.go", ours+"/sim/report")},
		{"wire format imports the proxy", "proxy/h1/a.go:3:", imports("proxy/h1", "a.go", ours+"/proxy")},
		{"wire format imports a newer one", "proxy/h1/a.go:3:", imports("proxy/h1", "a.go", ours+"/proxy/h2")},
		{"dead letters import the consumer", "adapter/abatekafka/dlq/a.go:3:",
			imports("adapter/abatekafka/dlq", "a.go", ours+"/adapter/abatekafka")},
		{"consumer imports dead letters", "adapter/abatekafka/a.go:3:",
			imports("adapter/abatekafka", "a.go", ours+"/adapter/abatekafka/dlq")},
		{"an adapter imports another's tests", "adapter/abatesql/a.go:3:",
			imports("adapter/abatesql", "a.go", ours+"/tests/postgrestest")},
		{"adapter imports policyfile", "adapter/abatehttp/a.go:3:", imports("adapter/abatehttp", "a.go", ours+"/policyfile")},
		{"adapter imports a sibling", "adapter/abategrpc/a.go:3:",
			imports("adapter/abategrpc", "a.go", ours+"/adapter/abatehttp")},
		{"HTTP adapter imports a module", "adapter/abatehttp/a.go:3:",
			imports("adapter/abatehttp", "a.go", "golang.org/x/net/http2")},
		{"gRPC adapter imports gRPC", "", imports("adapter/abategrpc", "a.go", "google.golang.org/grpc")},
		{"proxy imports an adapter", "", imports("proxy", "a.go", ours+"/adapter/abatehttp")},
		{"proxy imports sim", "proxy/a.go:3:", imports("proxy", "a.go", ours+"/sim")},
		{"command imports the drill", "", imports("cmd/abate", "a.go", ours+"/internal/drill")},
		{"command imports the benchmarks", "cmd/abate/a.go:3:", imports("cmd/abate", "a.go", ours+"/bench")},
		{"strict reader imports YAML", "", imports("internal/strictyaml", "a.go", yaml)},
		{"strict reader imports the root", "internal/strictyaml/a.go:3:", imports("internal/strictyaml", "a.go", ours)},
		{"strict reader imports a policy", "internal/strictyaml/a.go:3:",
			imports("internal/strictyaml", "a.go", ours+"/policy/retry")},
		{"strict reader imports policyfile", "internal/strictyaml/a.go:3:",
			imports("internal/strictyaml", "a.go", ours+"/policyfile")},
		{"policyfile imports the strict reader", "", imports("policyfile", "a.go", ours+"/internal/strictyaml")},
		{"sim imports the strict reader", "", imports("sim/scenario", "a.go", ours+"/internal/strictyaml")},
		{"lint imports the strict reader", "lint/a.go:3:", imports("lint", "a.go", ours+"/internal/strictyaml")},
		{"drill imports sim", "", imports("internal/drill/httpdrill", "a.go", ours+"/sim")},
		{"drill imports the scenarios", "", imports("internal/drill/httpdrill", "a.go", ours+"/scenarios")},
		{"scenarios import sim", "scenarios/a.go:3:", imports("scenarios", "a.go", ours+"/sim")},
		{"drill imports lint", "internal/drill/a.go:3:", imports("internal/drill", "a.go", ours+"/lint")},
		{"example imports the drill", "examples/http/a.go:3:", imports("examples/http", "a.go", ours+"/internal/drill")},
		{"benchmarks import a peer", "", imports("bench", "a_test.go", "github.com/sony/gobreaker/v2")},
		{"a test needs a program", "", imports("policy/retry", "a_test.go", ours+"/internal/needs")},
		{"a program imports what tests need", "policy/retry/a.go:3:",
			imports("policy/retry", "a.go", ours+"/internal/needs")},
		{"tidy imports the root", "internal/tidy/a.go:3:", imports("internal/tidy", "a.go", ours)},
		{"a folder nobody placed", "helpers/a.go:1: error: folder helpers has no layer", imports("helpers", "a.go", "fmt")},
		{"a look-alike prefix is not ours", "simple/a.go:1:", imports("simple", "a.go", "fmt")},
	})
}
