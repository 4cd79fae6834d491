package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
)

// tree reads an example.
func tree(t *testing.T, name string) []importer.File {
	t.Helper()
	files, err := audit.Collect(context.Background(), []string{filepath.Join("..", "examples", "audit", name)}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func rules(r *audit.Result, least lint.Severity) []string {
	var all []string
	for _, f := range r.Findings {
		if f.State == audit.New && f.Severity >= least {
			all = append(all, f.Rule)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestTheShopMultipliesAndTheFixedShopIsClean(t *testing.T) {
	r := audit.Run(tree(t, "shop"), audit.Options{})
	if w := r.Worst; w == nil || w.Most != 144 || w.Service != "payment.shop" || w.Root != "edge.shop" ||
		len(w.Hops) != 3 {
		t.Errorf("worst path %+v", r.Worst)
	}
	if got, want := rules(r, lint.Error), []string{"F101", "F103", "F301"}; !slices.Equal(got, want) {
		t.Errorf("errors %q, want %q", got, want)
	}
	r = audit.Run(tree(t, "shop-fixed"), audit.Options{})
	if got := rules(r, lint.Warning); len(got) > 0 || r.Worst.Most > 4 {
		var text bytes.Buffer
		_ = audit.Text(&text, r, audit.TextOptions{All: true})
		t.Errorf("the fixed shop has findings:\n%s", &text)
	}
}

const two = `services:
- {name: shop, rate: 50}
- {name: orders, answersWith: "503"}
calls:
- from: shop
  to: orders
  unsafe: true
  layers:
  - {kind: client, product: library, perTry: 10s, overall: 60s, repeats: [{on: ["503"], tries: 4}]}
  - {kind: gateway, product: envoy, perTry: 1s, overall: 5s, repeats: [{on: ["503"], tries: 3}]} # mesh
- from: orders
  to: db
  layers: [{kind: client, product: driver, perTry: 1s, overall: 4s, repeats: [{on: ["503"], tries: 4}]}]
`

func file(text string) []importer.File {
	return []importer.File{{Name: "calls.yaml", Data: []byte(text)}}
}

func TestTheProposedChangesMakeThePathShortWhenTheyAreMade(t *testing.T) {
	for name, files := range map[string][]importer.File{"calls": file(two), "shop": tree(t, "shop")} {
		r := audit.Run(files, audit.Options{})
		r.Propose(files, lint.Options{})
		if len(r.Changes) == 0 || r.Diff == "" {
			t.Fatalf("%s: nothing is proposed for %+v", name, r.Worst)
		}
		changed, left := audit.Apply(files, r.Changes)
		again := audit.Run(changed, audit.Options{})
		if len(left) > 0 || again.Worst == nil && r.After != nil || again.Worst != nil && again.Worst.Most != r.After.Most {
			t.Errorf("%s: the changes leave %+v, and %+v was promised; %d were not made", name, again.Worst, r.After, len(left))
		}
		if r.After != nil && r.After.Most >= r.Worst.Most {
			t.Errorf("%s: %v attempts before and %v after", name, r.Worst.Most, r.After.Most)
		}
	}
}

func TestAFindingIsAcceptedWithAReasonOnly(t *testing.T) {
	find := func(text, rule string) audit.Finding {
		r := audit.Run(file(text), audit.Options{})
		for _, f := range r.Findings {
			if f.Rule == rule && f.At.Line >= 9 {
				return f
			}
		}
		t.Fatalf("no finding %s in %v", rule, rules(r, lint.Note))
		return audit.Finding{}
	}
	rule, at := "F103", find(two, "F103").At
	lines := strings.Split(two, "\n")
	put := func(line int, comment string) string {
		changed := slices.Clone(lines)
		changed[line-1] += comment
		return strings.Join(changed, "\n")
	}
	for _, c := range []struct {
		text  string
		state audit.State
	}{
		{put(at.Line, " # abate:ignore F103 the gateway knows"), audit.Suppressed},
		{put(at.Line, " # abate:ignore F301, F103 both"), audit.Suppressed},
		{put(at.Line, " # abate:ignore F103"), audit.New},
		{put(at.Line, " # abate:ignore F301 another"), audit.New},
	} {
		f := find(c.text, rule)
		if f.State != c.state {
			t.Errorf("state %v of %q, want %v", f.State, c.text, c.state)
		}
	}
	if f := find(put(at.Line, " # abate:ignore F103"), rule); !strings.Contains(f.Message, "without a reason") {
		t.Errorf("nothing is said of the missing reason: %s", f.Message)
	}
}

// What is said of several places is one finding, and one that is new is not in the baseline with the others.
func TestAFurtherPlaceOfAFindingIsNoneOfTheBaseline(t *testing.T) {
	routes := func(n int) []importer.File {
		text := "calls:\n"
		for i := range n {
			text += fmt.Sprintf("- {from: edge, to: s%d, layers: [{kind: gateway, product: x, name: r%d, repeats: "+
				"[{on: [\"500\"], tries: 3}]}]}\n", i, i)
		}
		return file(text)
	}
	only := lint.Options{Only: []string{"F301"}}
	before := audit.Run(routes(2), audit.Options{Lint: only})
	base := audit.BaselineOf(before)
	for n, fails := range map[int]bool{1: false, 2: false, 3: true} {
		r := audit.Run(routes(n), audit.Options{Lint: only, Baseline: base})
		if len(r.Findings) != 1 || r.Fails(lint.Note) != fails || (len(r.Stale) > 0) != (n == 1) {
			t.Errorf("%d routes: %+v, stale %v", n, r.Findings, r.Stale)
		}
	}
}

func TestABaselineLetsPassWhatWasThere(t *testing.T) {
	before := audit.Run(file(two), audit.Options{})
	if !before.Fails(lint.Error) {
		t.Fatal("there is nothing to let pass")
	}
	base, err := audit.ParseBaseline("b.json", audit.BaselineOf(before).JSON())
	if err != nil {
		t.Fatal(err)
	}
	moved := file("# a line more\n" + two)
	if r := audit.Run(moved, audit.Options{Baseline: base}); r.Fails(lint.Note) || len(r.Stale) > 0 {
		t.Errorf("new findings %v, stale %v", rules(r, lint.Note), r.Stale)
	}
	less := file(strings.Replace(two, "tries: 3", "tries: 1", 1))
	if r := audit.Run(less, audit.Options{Baseline: base}); len(r.Stale) == 0 {
		t.Error("nothing is stale although a cause is gone")
	}
	for _, bad := range []string{"", "[]", `{"version": 9}`} {
		if _, err := audit.ParseBaseline("b.json", []byte(bad)); err == nil || !strings.Contains(err.Error(),
			"--write-baseline") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestEveryOutputHasTheFindings(t *testing.T) {
	files := file(two + "# abate:ignore nothing\n")
	r := audit.Run(files, audit.Options{})
	r.Propose(files, lint.Options{})
	r.Simulate(context.Background(), audit.SimulateOptions{Outage: 1e9, Runs: 1, Most: 1})
	write := func(form func(*bytes.Buffer) error) string {
		t.Helper()
		var b bytes.Buffer
		if err := form(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	has := func(name, text string, wants ...string) {
		t.Helper()
		for _, w := range wants {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", name, w, text)
			}
		}
	}
	place := r.Findings[0].At
	has("text", write(func(b *bytes.Buffer) error { return audit.Text(b, r, audit.TextOptions{}) }),
		"One request at shop can become", "calls.yaml:9:", "error F1", "fix:", "Outage of", "The smallest change",
		"--- a/calls.yaml")
	sarif := write(func(b *bytes.Buffer) error { return audit.SARIF(b, r, "v1") })
	has("SARIF", sarif, `"version": "2.1.0"`, `"ruleId": "F101"`, `"uri": "calls.yaml"`, `"startLine": 9`,
		`"abateFinding/v1"`)
	github := write(func(b *bytes.Buffer) error { return audit.GitHub(b, r) })
	has("GitHub", github, "::error file=calls.yaml,line=9,", "title=F101::")
	if n := strings.Count(strings.TrimSpace(github), "\n"); n+1 != len(r.Findings) {
		t.Errorf("GitHub: %d lines for %d findings", n+1, len(r.Findings))
	}
	has("GitLab", write(func(b *bytes.Buffer) error { return audit.GitLab(b, r) }), `"check_name": "F101"`, `"begin": 9`,
		`"severity": "critical"`)
	has("Markdown", write(func(b *bytes.Buffer) error { return audit.Markdown(b, r) }), "**One request at shop",
		"| error F101 |")
	has("HTML", write(func(b *bytes.Buffer) error { return audit.HTML(b, r) }), "<svg", "calls.yaml:9:", "error F101",
		"What an outage does", place.String())
	var suite struct {
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []struct{} `xml:"testcase"`
	}
	junit := write(func(b *bytes.Buffer) error { return audit.JUnit(b, r, lint.Error) })
	if err := xml.Unmarshal([]byte(junit), &suite); err != nil || suite.Tests != len(r.Findings) ||
		suite.Failures != r.Count(lint.Error) {
		t.Errorf("JUnit: %v, %+v", err, suite)
	}
	var all struct {
		Worst    struct{ Attempts float64 } `json:"worst"`
		Findings []struct{ State string }   `json:"findings"`
		Verdicts []struct{ Service string } `json:"verdicts"`
	}
	text := write(func(b *bytes.Buffer) error { return audit.JSON(b, r) })
	if err := json.Unmarshal([]byte(text), &all); err != nil || all.Worst.Attempts != r.Worst.Most ||
		len(all.Findings) != len(r.Findings) || len(all.Verdicts) != 1 {
		t.Errorf("JSON: %v\n%s", err, text)
	}
}

func TestACycleHasAHeadlineAndNothingHangs(t *testing.T) {
	r := audit.Run(file(`calls:
- {from: a, to: b, layers: [{kind: client, repeats: [{on: [hang, "503"], tries: 3}]}]}
- {from: b, to: a}
- {from: b, to: c}
`), audit.Options{})
	r.Propose(file(""), lint.Options{})
	r.Simulate(context.Background(), audit.SimulateOptions{Outage: 1e9, Runs: 1})
	var b bytes.Buffer
	if err := errors.Join(audit.Text(&b, r, audit.TextOptions{}), audit.HTML(&b, r), audit.JSON(&b, r)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "circle") {
		t.Errorf("nothing is said of the cycle:\n%s", &b)
	}
}

func TestFilesAreCollectedWithoutThoseOfOthers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "sub/b.yaml", "node_modules/c.yaml", ".git/d.yaml", "e.png", "vendor/f.yaml"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := audit.Collect(context.Background(), []string{dir, "-", filepath.Join(dir, "missing")},
		strings.NewReader("in"), nil)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f.Name))
	}
	if want := []string{"a.yaml", "b.yaml", "stdin"}; !slices.Equal(names, want) {
		t.Errorf("collected %q, want %q", names, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := audit.Collect(ctx, []string{dir}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestPrometheusIsAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		switch {
		case r.URL.Path != "/prom/api/v1/query":
			w.WriteHeader(http.StatusNotFound)
		case strings.Contains(query, "traces_service_graph_request_total") && strings.Contains(query, "[1m]"):
			_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[` +
				`{"metric":{"client":"a","server":"b","abate":"rate"},"value":[1,"7"]}]}}`))
		case strings.Contains(query, "response_total"):
			w.WriteHeader(http.StatusTeapot)
		default:
			_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[]}}`))
		}
	}))
	defer server.Close()
	files, err := audit.Prometheus(context.Background(), server.Client(), server.URL+"/prom", "1m")
	if err == nil || !strings.Contains(err.Error(), "418") {
		t.Errorf("error %v", err)
	}
	r := audit.Run(files, audit.Options{})
	if len(r.Form.Calls) != 1 || r.Form.Calls[0].To != "b" {
		t.Errorf("calls %+v", r.Form.Calls)
	}
	if _, err := audit.Prometheus(context.Background(), nil, "localhost", "1m"); err == nil {
		t.Error("an address without a scheme is accepted")
	}
}
