package grafana_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func read(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("abate.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func check(t *testing.T, schema *jsonschema.Schema, text []byte) error {
	t.Helper()
	board, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(board)
}

func TestTheDashboardIsOneThatGrafanaKnows(t *testing.T) {
	if err := check(t, compiled(t), read(t)); err != nil {
		t.Errorf("%#v", err)
	}
}

// TestThresholdsOfServicesAreOnesThatGrafanaKnows: the dashboard in this folder has none, one with a policy file has.
func TestThresholdsOfServicesAreOnesThatGrafanaKnows(t *testing.T) {
	const own = `"overrides": [{"matcher": {"id": "byNames", "options": {"mode": "include", "names": ["a", "b"]}},
		"properties": [{"id": "thresholds", "value": {"mode": "absolute", "steps":
			[{"color": "green", "value": null}, {"color": "red", "value": 2}]}}]}]`
	schema, good := compiled(t), string(read(t))
	with := func(overrides string) error {
		return check(t, schema, []byte(strings.Replace(good, `"overrides": []`, overrides, 1)))
	}
	if err := with(own); err != nil {
		t.Error(err)
	}
	for old, wrong := range map[string]string{
		`"names"`: `"name"`, `["a", "b"]`: `[]`, `"absolute"`: `"relative"`, `"id": "thresholds"`: `"id": "limits"`,
		`"value": 2`: `"value": "2"`,
	} {
		if err := with(strings.Replace(own, old, wrong, 1)); err == nil {
			t.Errorf("%s for %s is accepted", wrong, old)
		}
	}
}

// TestTheSchemaRefusesWhatGrafanaWouldDrop: one word of the dashboard is changed at a time.
func TestTheSchemaRefusesWhatGrafanaWouldDrop(t *testing.T) {
	schema, good := compiled(t), string(read(t))
	for _, c := range []struct{ old, new, say string }{
		{`"schemaVersion": 39`, `"schemaVersion": 16`, "schemaVersion"},
		{`"gridPos": {`, `"gridpos": {`, "gridpos"},
		{`"w": 12,`, `"w": 25,`, "gridPos/w"},
		{`"h": 8,`, `"h": 0,`, "gridPos/h"},
		{`"type": "timeseries"`, `"type": "graph"`, "type"},
		{`"unit": "percentunit"`, `"unit": "ratio"`, "unit"},
		{`"mode": "dashed"`, `"mode": "dotted"`, "thresholdsStyle/mode"},
		{`"mode": "palette-classic"`, `"mode": "rainbow"`, "color/mode"},
		{`"value": null`, `"value": 0`, "steps/0"},
		{`"color": "yellow",`, `"color": "amber",`, "color"},
		{`"refId": "A"`, `"refId": "a"`, "refId"},
		{`"expr": "max`, `"query": "max`, "query"},
		{`"legendFormat": "{{service}}"`, `"legendFormat": ""`, "legendFormat"},
		{`"showPoints": "never"`, `"showPoints": false`, "showPoints"},
		{`"graphMode": "area"`, `"graphMode": "line"`, "graphMode"},
		{`"rowHeight": 0.9`, `"rowHeight": 9`, "rowHeight"},
		{`"format": "heatmap"`, `"format": "time_series"`, "format"},
		{`"collapsed": true`, `"collapsed": "true"`, "collapsed"},
		{`"uid": "${datasource}"`, `"uid": "P1809F7CD0C75ACF3"`, "uid"},
		{`"query": "prometheus"`, `"query": "loki"`, "query"},
		{`"iconColor": "purple"`, `"icon": "purple"`, "icon"},
		{`"id": "byName"`, `"id": "byLabel"`, "matcher"},
		{`"id": null`, `"id": 7`, "/id"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if bad == good {
			t.Errorf("the dashboard has no %s", c.old)
			continue
		}
		if err := check(t, schema, []byte(bad)); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s for %s: %v", c.new, c.old, err)
		}
	}
}
