// Package export writes what other programs need of a policy file.
package export

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"
)

// Runbooks is where the runbook pages of the alerts are published, each under the name of its alert.
const Runbooks = "https://github.com/abate-go/abate/blob/main/docs/runbooks"

// Limits of RulesOptions.
const (
	MinScale  = 0.01
	MaxScale  = 100
	MinScrape = time.Second
	MaxScrape = 2 * time.Minute
)

// RulesOptions says what the metrics do not about rules for Prometheus. The zero value is fine.
type RulesOptions struct {
	// Scale is the factor for all times of the rules: windows, "for" and how often they are evaluated. 0.1 makes an
	// alert of two minutes one of twelve seconds, for tests and drills; scrape as much more often. Range 0.01 to 100.
	// Zero means 1.
	Scale float64
	// Scrape is how often Prometheus scrapes, before Scale. The rules are evaluated as often; their windows have four
	// scrapes and a minute at least. Range 1s to 2m. Zero means 15s.
	Scrape time.Duration
	// RunbookURL is the folder of the runbook pages: an absolute http or https URL. Empty means Runbooks.
	RunbookURL string
	// As is the form: Plain, Operator or Mixin. Empty means Plain.
	As RulesForm
	// Name is what the PrometheusRule is called, and Namespace where it is. Operator only. Empty means abate, and no
	// namespace.
	Name, Namespace string
	// Labels are those of the PrometheusRule, by which an operator finds it: see ruleSelector of your Prometheus. Operator
	// only.
	Labels map[string]string
}

// header is the first line of the file.
const header = "# Written by \"abate export %s\". The same for every policy: the thresholds are metrics of the " +
	"policy that\n" +
	"# is in force (abate_policy_...), so that this file does not change when the policy does.\n"

// PrometheusRules writes recording and alerting rules for Prometheus 2.42 and later, about what is called by guards and
// what arrives at gates. There are no more than 20, whatever there is to watch: where an alert begins follows from the
// abate_policy_ metrics, which each program shows of the policy that it is under. A guard that was not added to the
// metrics is measured by abate.DefaultPolicy. The labels cluster, namespace, job and service are kept.
// An alert that wakes somebody does so if the trouble is that of the whole program or of a quarter of its instances;
// that of fewer is a ticket. The error joins all that is wrong. The same input gives the same bytes.
func PrometheusRules(o RulesOptions) ([]byte, error) {
	base, err := o.check()
	if err != nil {
		return nil, err
	}
	return forms[o.As](&o, o.groups(func(name string) string { return literal(base.JoinPath(name + ".md").String()) }))
}

// groups are all rules, each group in the order in which its rules read each other. What has to be known at once
// follows the scrape; what is read of all instances and changes slowly is evaluated a quarter as often. runbook gives
// the address of an alert's page.
func (o *RulesOptions) groups(runbook func(alert string) string) []ruleGroup {
	t := clockwork{o.Scale, o.Scrape}
	fast := ruleGroup{Name: "abate", Interval: t.text(o.Scrape), Rules: recordings(t)}
	slow := ruleGroup{Name: "abate-slow", Interval: t.text(t.slowly()), Rules: slowRecordings(t)}
	for _, a := range alertKinds(t) {
		in := &fast
		if a.slow {
			in = &slow
		}
		in.Rules = append(in.Rules, a.rule(t, runbook(a.name)))
	}
	return []ruleGroup{fast, slow}
}

// check fills in the defaults and returns the folder of the runbooks.
func (o *RulesOptions) check() (*url.URL, error) {
	o.Scale, o.Scrape = cmp.Or(o.Scale, 1), cmp.Or(o.Scrape, 15*time.Second)
	o.As, o.Name = cmp.Or(o.As, Plain), cmp.Or(o.Name, "abate")
	var wrong []error
	if math.IsNaN(o.Scale) || o.Scale < MinScale || o.Scale > MaxScale {
		wrong = append(wrong, fmt.Errorf("scale: %v is out of range; allowed: %v to %v; for example 0.1", o.Scale,
			MinScale, MaxScale))
	}
	if o.Scrape < MinScrape || o.Scrape > MaxScrape {
		wrong = append(wrong, fmt.Errorf("scrape: %v is out of range; allowed: %v to %v; for example 30s", o.Scrape,
			MinScrape, MaxScrape))
	}
	if forms[o.As] == nil {
		wrong = append(wrong, fmt.Errorf("form: %q is not known; allowed: %s, %s, %s", o.As, Plain, Operator, Mixin))
	}
	if o.As == Operator {
		wrong = append(wrong, o.checkNames()...)
	}
	base, err := RunbookFolder(o.RunbookURL)
	return base, errors.Join(append(wrong, err)...)
}

// RunbookFolder reads the address of a folder of runbook pages: an absolute http or https URL, or nothing for Runbooks.
func RunbookFolder(text string) (*url.URL, error) {
	text = cmp.Or(text, Runbooks)
	folder, err := url.Parse(text)
	if err != nil || folder.Scheme != "http" && folder.Scheme != "https" || folder.Host == "" {
		return nil, fmt.Errorf("runbook URL: %q is not the address of a folder; for example %s", text, Runbooks)
	}
	return folder, nil
}

// ruleFile is what Prometheus reads.
type ruleFile struct {
	Groups []ruleGroup `yaml:"groups" json:"groups"`
}

type ruleGroup struct {
	Name     string `yaml:"name" json:"name"`
	Interval string `yaml:"interval" json:"interval"`
	Rules    []rule `yaml:"rules" json:"rules"`
}

type rule struct {
	Record      string      `yaml:"record,omitempty" json:"record,omitempty"`
	Alert       string      `yaml:"alert,omitempty" json:"alert,omitempty"`
	Expr        string      `yaml:"expr" json:"expr"`
	For         string      `yaml:"for,omitempty" json:"for,omitempty"`
	Labels      labels      `yaml:"labels,omitempty" json:"labels,omitzero"`
	Annotations annotations `yaml:"annotations,omitempty" json:"annotations,omitzero"`
}

type labels struct {
	Severity string `yaml:"severity,omitempty" json:"severity,omitempty"`
}

// annotations are templates.
type annotations struct {
	Summary     string `yaml:"summary,omitempty" json:"summary,omitempty"`
	Description string `yaml:"description,omitempty" json:"description,omitempty"`
	Runbook     string `yaml:"runbook_url,omitempty" json:"runbook_url,omitempty"`
}

// clockwork writes times as the scale has them, for what is scraped so often.
type clockwork struct {
	scale  float64
	scrape time.Duration
}

// window is over how much time rates are taken, before the scale: four scrapes, and a minute at least.
func (c clockwork) window() time.Duration { return max(time.Minute, 4*c.scrape) }

// slowly is how often what changes slowly is looked at, before the scale: at a quarter of the scrapes. What is recorded
// less than every five minutes is gone in between; two leave room for an evaluation that is missed.
func (c clockwork) slowly() time.Duration {
	return min(4*c.scrape, max(c.scrape, time.Duration(float64(2*time.Minute)/c.scale)))
}

// text is a time as Prometheus reads it, to the millisecond.
func (c clockwork) text(d time.Duration) string {
	ms := max(int64(math.Round(float64(d)*c.scale/float64(time.Millisecond))), 1)
	for _, unit := range []struct {
		name string
		ms   int64
	}{{"h", 3_600_000}, {"m", 60_000}, {"s", 1000}} {
		if ms%unit.ms == 0 {
			return strconv.FormatInt(ms/unit.ms, 10) + unit.name
		}
	}
	return strconv.FormatInt(ms, 10) + "ms"
}

// perSecond is n things within a window, as a rate.
func (c clockwork) perSecond(n float64) float64 { return n / (c.window().Seconds() * c.scale) }

// number writes v with three digits, which is more than a threshold needs.
func number(v float64) string {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return strconv.FormatFloat(short, 'f', -1, 64)
}
