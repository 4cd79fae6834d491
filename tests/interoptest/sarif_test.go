package interoptest_test

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/xeipuuv/gojsonschema"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
)

// sarifSchema returns the JSON schema that OASIS publishes for SARIF 2.1.0. The module go-sarif carries it as a
// constant, which it does not export, and checks only what its own types have kept of a log.
func sarifSchema(t *testing.T) *gojsonschema.Schema {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/owenrumney/go-sarif/v3").Output()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(strings.TrimSpace(string(out)), "pkg", "report", "v210", "sarif", "schema.go")
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := strconv.Unquote(file.Scope.Lookup("schema").Decl.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gojsonschema.NewSchema(gojsonschema.NewStringLoader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// valid says what of a log the schema refuses, and what the standard asks for that no schema can: the ids of rules are
// unique, and a result's ruleIndex is the place of its ruleId.
func valid(schema *gojsonschema.Schema, log string) error {
	result, err := schema.Validate(gojsonschema.NewStringLoader(log))
	if err != nil {
		return err
	}
	if !result.Valid() {
		return fmt.Errorf("%v", result.Errors())
	}
	read, err := sarif.FromString(log)
	if err != nil {
		return err
	}
	rules, seen := read.Runs[0].Tool.Driver.Rules, map[string]bool{}
	for _, r := range rules {
		if seen[*r.ID] {
			return fmt.Errorf("rule %s is there twice", *r.ID)
		}
		seen[*r.ID] = true
	}
	for _, r := range read.Runs[0].Results {
		if *rules[r.RuleIndex].ID != *r.RuleID {
			return fmt.Errorf("ruleIndex %d is %s, the result is of %s", r.RuleIndex, *rules[r.RuleIndex].ID, *r.RuleID)
		}
	}
	return nil
}

func sarifOf(t *testing.T, files []importer.File, o audit.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := audit.SARIF(&b, audit.Run(files, o), "abate v1.2.3 (abc)"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFindingsAreSARIFThatItsSchemaAccepts(t *testing.T) {
	schema := sarifSchema(t)
	systems, err := filepath.Glob("../../audit/testdata/annotated/*")
	if err != nil || len(systems) < 40 {
		t.Fatalf("%d systems, %v", len(systems), err)
	}
	for _, system := range append(systems, "../../examples/audit/shop") {
		files, err := audit.Collect(context.Background(), []string{system}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		known := audit.Options{Baseline: audit.BaselineOf(audit.Run(files, audit.Options{}))}
		for _, o := range []audit.Options{{}, known} {
			if err := valid(schema, sarifOf(t, files, o)); err != nil {
				t.Errorf("%s: %v", system, err)
			}
		}
	}
}

const ninefold = "calls:\n- {from: a, to: b, layers: [{kind: client, repeats: [{on: [\"503\"], tries: 9}]}]}\n"

// TestTheSchemaRefusesLogsThatAreNone: one word of a log is changed at a time.
func TestTheSchemaRefusesLogsThatAreNone(t *testing.T) {
	schema := sarifSchema(t)
	good := sarifOf(t, []importer.File{{Name: "calls.yaml",
		Data: []byte(strings.Replace(ninefold, "\n-", "\n# abate:ignore F401 we know\n-", 1))}}, audit.Options{})
	for _, c := range [][2]string{
		{`"version": "2.1.0"`, `"version": "2.1"`},
		{`"ruleIndex": `, `"ruleindex": `},
		{`"level": "error"`, `"level": "critical"`},
		{`"startLine": 3`, `"startLine": 0`},
		{`"uri": "calls.yaml"`, `"uri": "50%.yaml"`},
		{`"text": `, `"txt": `},
		{`"runs": `, `"run": `},
		{`"id": "F102"`, `"id": "F101"`},
		{`"ruleId": "F401"`, `"ruleId": "F402"`},
		{`"kind": "inSource"`, `"kind": "inside"`},
		{`"driver": `, `"drivers": `},
		{`"name": "abate audit"`, `"fullName": "abate audit"`},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if bad == good {
			t.Errorf("no %s in\n%s", c[0], good)
		} else if valid(schema, bad) == nil {
			t.Errorf("%s for %s is accepted", c[1], c[0])
		}
	}
}

// TestPlacesInSARIFAreURIsOfTheirFiles: relative ones, which code scanning joins with the root of the repository.
func TestPlacesInSARIFAreURIsOfTheirFiles(t *testing.T) {
	schema := sarifSchema(t)
	for name, want := range map[string]string{
		"shop/calls.yaml": "shop/calls.yaml",
		"my calls.yaml":   "my%20calls.yaml",
		"50%.yaml":        "50%25.yaml",
		"a#b?.yaml":       "a%23b%3F.yaml",
		"a:b.yaml":        "./a:b.yaml",
		"größe.yaml":      "gr%C3%B6%C3%9Fe.yaml",
		"../shop/c.yaml":  "../shop/c.yaml",
	} {
		log := sarifOf(t, []importer.File{{Name: name, Data: []byte(ninefold)}}, audit.Options{})
		if err := valid(schema, log); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(log, `"uri": "`+want+`"`) {
			t.Errorf("%s: no uri %s in\n%s", name, want, log[strings.Index(log, `"results"`):])
		}
	}
}
