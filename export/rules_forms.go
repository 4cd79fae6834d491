package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// RulesForm is how rules are written down.
type RulesForm string

// The forms of rules.
const (
	Plain    RulesForm = "prometheus-rules" // a file of rules for Prometheus
	Operator RulesForm = "prometheus-rule"  // a PrometheusRule for the Prometheus Operator, of monitoring.coreos.com/v1
	Mixin    RulesForm = "mixin"            // a monitoring mixin, in Jsonnet
)

var forms = map[RulesForm]func(o *RulesOptions, g []ruleGroup) ([]byte, error){
	Plain: writePlain, Operator: writeOperator, Mixin: writeMixin,
}

func writePlain(o *RulesOptions, g []ruleGroup) ([]byte, error) {
	return inYAML(o, ruleFile{withShare(g, number(pageShare))})
}

// withShare fills in from which share of the instances on somebody is woken.
func withShare(groups []ruleGroup, share string) []ruleGroup {
	for _, g := range groups {
		for i := range g.Rules {
			g.Rules[i].Expr = strings.ReplaceAll(g.Rules[i].Expr, "PAGE", share)
		}
	}
	return groups
}

func inYAML(o *RulesOptions, doc any) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, header, o.As)
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(doc); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return out.Bytes(), nil
}

// prometheusRule is what the Prometheus Operator reads.
type prometheusRule struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name      string            `yaml:"name"`
		Namespace string            `yaml:"namespace,omitempty"`
		Labels    map[string]string `yaml:"labels,omitempty"`
	} `yaml:"metadata"`
	Spec ruleFile `yaml:"spec"`
}

func writeOperator(o *RulesOptions, g []ruleGroup) ([]byte, error) {
	p := prometheusRule{APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule"}
	p.Metadata.Name, p.Metadata.Namespace, p.Metadata.Labels = o.Name, o.Namespace, o.Labels
	p.Spec.Groups = withShare(g, number(pageShare))
	return inYAML(o, p)
}

// What Kubernetes takes as a name, and as the two halves of a label.
var (
	objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	labelKey   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?` +
		`[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
)

// checkNames finds what Kubernetes would not take.
func (o *RulesOptions) checkNames() (wrong []error) {
	if !objectName.MatchString(o.Name) {
		wrong = append(wrong, fmt.Errorf("name: %q is not one that Kubernetes takes: small letters, digits, - and .; for "+
			"example abate", o.Name))
	}
	if o.Namespace != "" && !objectName.MatchString(o.Namespace) {
		wrong = append(wrong, fmt.Errorf("namespace: %q is not one that Kubernetes takes; for example monitoring",
			o.Namespace))
	}
	for k, v := range o.Labels {
		if !labelKey.MatchString(k) || !labelValue.MatchString(v) {
			wrong = append(wrong, fmt.Errorf("label: %s=%s is not one that Kubernetes takes; for example "+
				"release=kube-prometheus-stack", k, v))
		}
	}
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return wrong
}

// mixinHead is the configuration of the mixin. %s is the folder of the runbooks.
const mixinHead = `// A monitoring mixin. The dashboard is what "abate export grafana" writes: put it beside this file.
{
  _config+:: {
    // from which share of its instances on a program's trouble wakes somebody; that of fewer is a ticket
    pageShare: %s,
    // the folder of the runbook pages
    runbookURL: %s,
    // how often Prometheus scrapes: the windows of the rules have four of these
    interval: %s,
    // how often what changes slowly is looked at
    slowInterval: %s,
  },
  grafanaDashboards+:: {
    'abate.json': import 'abate.json',
  },
`

// tokens of a mixin stand for what its configuration says. They are no text of ours.
const shareToken, runbookToken = "PAGE", "\x01"

func writeMixin(o *RulesOptions, _ []ruleGroup) ([]byte, error) {
	groups := o.groups(func(name string) string { return runbookToken + name })
	base := strings.TrimSuffix(o.RunbookURL, "/")
	if base == "" {
		base = Runbooks
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, strings.ReplaceAll(header, "# ", "// "), o.As)
	fmt.Fprintf(&out, mixinHead, number(pageShare), quoted(base), quoted(groups[0].Interval), quoted(groups[1].Interval))
	for _, part := range []struct {
		field, kind string
		alerts      bool
	}{{"prometheusRules", "-recording", false}, {"prometheusAlerts", "-alerts", true}} {
		fmt.Fprintf(&out, "  %s+:: {\n    groups+: [", part.field)
		for i, g := range groups {
			g.Name += part.kind
			g.Interval = [...]string{"$._config.interval", "$._config.slowInterval"}[i]
			g.Rules = slices.DeleteFunc(slices.Clone(g.Rules), func(r rule) bool { return (r.Alert != "") != part.alerts })
			if err := mixinGroup(&out, g); err != nil {
				return nil, err
			}
		}
		out.WriteString("],\n  },\n")
	}
	out.WriteString("}\n")
	return out.Bytes(), nil
}

// mixinGroup writes a group, whose interval is Jsonnet.
func mixinGroup(out *bytes.Buffer, g ruleGroup) error {
	fmt.Fprintf(out, "{\n      name: %s,\n      interval: %s,\n      rules: [\n", quoted(g.Name), g.Interval)
	for _, r := range g.Rules {
		text, err := mixinRule(r)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "        %s,\n", text)
	}
	out.WriteString("      ],\n    }, ")
	return nil
}

// mixinRule is a rule as Jsonnet, of which JSON is a part.
func mixinRule(r rule) (string, error) {
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	to.SetIndent("        ", "  ")
	if err := to.Encode(r); err != nil {
		return "", fmt.Errorf("export: %w", err)
	}
	text := strings.TrimSpace(out.String())
	text = strings.ReplaceAll(text, `"runbook_url": "\u0001`+r.Alert+`"`, `"runbook_url": $._config.runbookURL + "/`+
		r.Alert+`.md"`)
	return strings.ReplaceAll(text, ">= "+shareToken, `>= " + $._config.pageShare + "`), nil
}

// quoted is a string of Jsonnet.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a string is never refused
	return string(b)
}
