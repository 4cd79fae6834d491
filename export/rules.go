// Package export writes what other programs need of a policy file.
package export

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/policyfile"
)

// Runbooks is where the runbook pages of the alerts are published, each under the name of its alert.
const Runbooks = "https://github.com/abate-go/abate/blob/main/docs/runbooks"

// Limits of RulesOptions.Scale.
const (
	MinScale = 0.01
	MaxScale = 100
)

// RulesOptions says what a policy file does not about rules for Prometheus. The zero value is fine.
type RulesOptions struct {
	// Scale is the factor for all times of the rules: windows, "for" and how often they are evaluated. 0.1 makes an
	// alert of two minutes one of twelve seconds, for tests and drills; scrape as much more often. Range 0.01 to 100.
	// Zero means 1.
	Scale float64
	// RunbookURL is the folder of the runbook pages: an absolute http or https URL. Empty means Runbooks.
	RunbookURL string
	// OnlyListed leaves out the alerts for what the file does not list. One Prometheus that loads the rules of several
	// files needs it in all of them but one: what one file lists is unlisted to the others.
	OnlyListed bool
}

// The second line of the file.
const (
	headerAll = "# What it lists has alerts of its own. All other services share those labelled policy: defaults, with " +
		"the thresholds of its defaults.\n" +
		"# Are the rules of a second policy file loaded beside these? Write that one with --only-listed, else what is " +
		"listed here is unlisted there."
	headerListed = "# What it does not list has no alerts here (--only-listed)."
)

// The times of the rules before Scale. The alerts are looked at so often that scraping every 15 s, looking and looking
// again take less than 30 s together; the window has four scrapes.
const (
	interval = 5 * time.Second
	window   = time.Minute
)

// PrometheusRules writes recording and alerting rules for Prometheus 2.42 and later about the services that file lists:
// what they are called by guards (services) and what arrives at gates (protect). The thresholds follow from the
// policies, so that an alert says that more happens than the policy wants; each service has rules of its own. All
// others share one set, with the thresholds of the file's defaults and the label policy="defaults": no series is looked
// at twice. They read metrics of adapter/abateprom that come from guards, gates and consumers alone. The recording
// rules are the same for every file, and those that a Grafana dashboard may rely on. The error joins all that is wrong.
// The same input gives the same bytes; the work grows with the number of services.
func PrometheusRules(file *policyfile.File, o RulesOptions) ([]byte, error) {
	base, err := o.check(file)
	if err != nil {
		return nil, err
	}
	t := clockwork{o.Scale}
	doc := ruleFile{Groups: []ruleGroup{
		{Name: "abate-recording", Interval: t.text(interval), Rules: recordings(t)},
		{Name: "abate-alerts", Interval: t.text(interval), Rules: alerts(file, o, base)},
	}}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Written by \"abate export prometheus-rules\" from %s: change the policy, not this file.\n",
		strconv.QuoteToASCII(filepath.Base(file.Name)))
	if o.OnlyListed {
		fmt.Fprintln(&out, headerListed)
	} else {
		fmt.Fprintln(&out, headerAll)
	}
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(doc); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return out.Bytes(), nil
}

// check fills in the defaults and returns the folder of the runbooks.
func (o *RulesOptions) check(file *policyfile.File) (*url.URL, error) {
	var wrong []error
	if o.OnlyListed && len(file.Services)+len(file.Protect) == 0 {
		wrong = append(
			wrong, fmt.Errorf("%s: no services and nothing under protect, so that there is nothing to watch for who wants "+
				"only what is listed; list those to be watched, for example services: {payment-service: {}}, which has the "+
				"defaults, or watch what is not listed too", file.Name))
	}
	if err := file.Defaults.Validate(); err != nil && !o.OnlyListed {
		wrong = append(wrong, fmt.Errorf("%s: defaults: %w", file.Name, err))
	}
	for i := range file.Services { // one that was made in Go may have thresholds that are no numbers
		if err := file.Services[i].Policy.Validate(); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: service %q: %w", file.Name, file.Services[i].Name, err))
		}
	}
	for i := range file.Protect {
		if err := file.Protect[i].Protection.Validate(); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: protect %q: %w", file.Name, file.Protect[i].Name, err))
		}
	}
	o.Scale = cmp.Or(o.Scale, 1)
	if math.IsNaN(o.Scale) || o.Scale < MinScale || o.Scale > MaxScale {
		wrong = append(wrong, fmt.Errorf("scale: %v is out of range; allowed: %v to %v; for example 0.1", o.Scale,
			MinScale, MaxScale))
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
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval"`
	Rules    []rule `yaml:"rules"`
}

type rule struct {
	Record      string      `yaml:"record,omitempty"`
	Alert       string      `yaml:"alert,omitempty"`
	Expr        string      `yaml:"expr"`
	For         string      `yaml:"for,omitempty"`
	Labels      labels      `yaml:"labels,omitempty"`
	Annotations annotations `yaml:"annotations,omitempty"`
}

// labels are templates, as annotations are.
type labels struct {
	Severity string `yaml:"severity,omitempty"`
	Service  string `yaml:"service,omitempty"` // the one that the alert is about, if it is about one
	Policy   string `yaml:"policy,omitempty"`  // "defaults" where it is about all that have no policy of their own
}

type annotations struct {
	Summary     string `yaml:"summary,omitempty"`
	Description string `yaml:"description,omitempty"`
	Runbook     string `yaml:"runbook_url,omitempty"`
}

// clockwork writes times as the scale has them.
type clockwork struct{ scale float64 }

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
func (c clockwork) perSecond(n float64) float64 { return n / (window.Seconds() * c.scale) }

// number writes v with three digits, which is more than a threshold needs.
func number(v float64) string {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return strconv.FormatFloat(short, 'f', -1, 64)
}
