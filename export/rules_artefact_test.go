package export_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/abate-go/abate/export"
	"github.com/abate-go/abate/policyfile"
)

// TestTheRulesOfTheExampleAreThoseInDeploy holds the maintained file in step with what writes it.
func TestTheRulesOfTheExampleAreThoseInDeploy(t *testing.T) {
	policy := filepath.Join("..", "examples", "policy.yaml")
	text, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	file, err := policyfile.Parse(policy, text)
	if err != nil {
		t.Fatal(err)
	}
	want, err := export.PrometheusRules(file, export.RulesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	artefact := filepath.Join("..", "deploy", "prometheus", "abate.rules.yaml")
	if *update {
		if err := os.WriteFile(artefact, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(artefact); err != nil || !bytes.Equal(got, want) {
		t.Errorf("deploy/prometheus/abate.rules.yaml is out of step (%v); run: go test ./export -run Rules -update", err)
	}
}
