// Package grafana has no code, only the dashboard and a schema that a test holds it to.
//
// abate.json is written by "abate export grafana" without a policy file, whose thresholds are those of the default
// policy; with one, -c policy.yaml, each service has its own. Import it into Grafana 10 or later, or provision it. It
// needs no recording rules.
//
// schema.json is the part of Grafana's dashboard model that it uses, and nothing more: Grafana drops what it does not
// know without a word. That its queries find something in a real Prometheus is tested beside the metrics, in
// adapter/abateprom.
package grafana
