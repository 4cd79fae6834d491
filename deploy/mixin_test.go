package deploy_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"sigs.k8s.io/yaml"
)

// mixin renders an expression about the mixin, as whoever uses one does.
func mixin(t *testing.T, expr string, into any) {
	t.Helper()
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{"prometheus", "grafana"}})
	text, err := vm.EvaluateAnonymousSnippet("test", expr)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// ruleGroups are groups of rules, as a file and a mixin have them.
type ruleGroups struct {
	Groups []struct {
		Name, Interval string
		Rules          []map[string]any
	} `json:"groups"`
}

func TestTheMixinHasTheRulesOfTheFileAndTheDashboard(t *testing.T) {
	text, err := os.ReadFile("prometheus/abate.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file, recordings, alerts ruleGroups
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	mixin(t, "(import 'mixin.libsonnet').prometheusRules", &recordings)
	mixin(t, "(import 'mixin.libsonnet').prometheusAlerts", &alerts)
	rendered := append(recordings.Groups[0].Rules, alerts.Groups[0].Rules...)
	if !reflect.DeepEqual(rendered, file.Groups[0].Rules) || alerts.Groups[0].Interval != file.Groups[0].Interval {
		t.Errorf("%d rules, want the %d of the file", len(rendered), len(file.Groups[0].Rules))
	}
	var title string
	mixin(t, "(import 'mixin.libsonnet').grafanaDashboards['abate.json'].title", &title)
	if title != "Abate" {
		t.Errorf("the dashboard is called %q", title)
	}
}

func TestTheMixinTakesAnotherShareAndOtherRunbooks(t *testing.T) {
	var alerts ruleGroups
	mixin(t, "((import 'mixin.libsonnet') + {_config+:: {pageShare: 0.5, runbookURL: 'https://wiki.example/r'}})"+
		".prometheusAlerts", &alerts)
	all, err := json.Marshal(alerts)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(all); strings.Contains(s, "= 0.25") || !strings.Contains(s, "= 0.5)") ||
		!strings.Contains(s, `"https://wiki.example/r/ShedRate.md"`) || strings.Contains(s, "github.com/abate-go") {
		t.Errorf("%.3000s", s)
	}
}
