package export_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/abate-go/abate/export"
)

// TestTheRulesInDeployAreInStep holds the maintained files in step with what writes them.
func TestTheRulesInDeployAreInStep(t *testing.T) {
	for name, o := range map[string]export.RulesOptions{
		"abate.rules.yaml": {}, "mixin.libsonnet": {As: export.Mixin}, "prometheusrule.yaml": {As: export.Operator},
	} {
		want, err := export.PrometheusRules(o)
		if err != nil {
			t.Fatal(err)
		}
		artefact := filepath.Join("..", "deploy", "prometheus", name)
		if *update {
			if err := os.WriteFile(artefact, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(artefact); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of step (%v); run: go test ./export -run Rules -update", artefact, err)
		}
	}
}
