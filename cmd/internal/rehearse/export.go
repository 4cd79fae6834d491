package rehearse

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/export"
	"github.com/abate-go/abate/policyfile"
)

const exportHelp = `Write what other programs need of a policy file.

Usage: abate export prometheus-rules [FLAGS]
       abate export prometheus-rule [FLAGS]
       abate export mixin [FLAGS]
       abate export grafana [-c FILE] [FLAGS]
       abate export FORMAT -c FILE [FLAGS]      another program's format: abate export envoy -h

prometheus-rules  recording and alerting rules: 20, the same for every policy. Where an alert begins
                  is a metric of the policy in force (abate_policy_...), which every program shows
prometheus-rule   the same as a PrometheusRule for the Prometheus Operator
mixin             the same as a monitoring mixin, in Jsonnet
grafana           a dashboard for Grafana 10 and later; without -c its thresholds are those of the
                  default policy

  -c FILE             the policy file, plain or in a Kubernetes ConfigMap; "-" reads standard input.
                      Rules do not need it: it is only checked
  --for FILE          the same
  -o FILE             write there instead of to standard output ("-"); the file is replaced as a
                      whole, and left as it is if anything is wrong
  --runbook-url URL   folder of the runbook pages, one for each alert
                      (default ` + export.Runbooks + `)
  -h, --help          print this

Of rules:
  --scrape DURATION   how often Prometheus scrapes, 1s to 2m: the rules are evaluated as often, and
                      their windows have four scrapes and a minute at least (default 15s)
  --scale N           factor for all times, 0.01 to 100: 0.1 makes an alert of two minutes one of
                      twelve seconds, for drills; scrape as much more often (default 1)

Of prometheus-rule:
  --name NAME         what it is called (default abate)
  --namespace NAME    the namespace that it is in (default: none is written)
  --labels K=V,...    its labels, by which your Prometheus finds it (its ruleSelector)

Of grafana:
  --title TEXT        what the dashboard is called (default "Abate")
  --uid ID            what Grafana knows it by: one that is imported replaces the one with the same
                      (default "abate")

Check what was written, and load it:
  abate export prometheus-rules | promtool check rules /dev/stdin

Exit code: 0 written, 1 the file is wrong or cannot be read or written, 2 wrong usage.
`

// exportOptions are the words of "abate export".
type exportOptions struct {
	policy, out, runbooks string
	labels                string
	rules                 export.RulesOptions
	grafana               export.GrafanaOptions
}

// exporter writes one kind of thing. own are the flags that belong to it, and not to all.
type exporter struct {
	name  string
	own   []string
	write func(*policyfile.File, exportOptions) ([]byte, error)
}

var exporters = []exporter{
	{string(export.Plain), []string{"scale", "scrape"}, writeRules(export.Plain)},
	{string(export.Operator), []string{"scale", "scrape", "name", "namespace", "labels"}, writeRules(export.Operator)},
	{string(export.Mixin), []string{"scale", "scrape"}, writeRules(export.Mixin)},
	{"grafana", []string{"title", "uid"}, func(f *policyfile.File, o exportOptions) ([]byte, error) {
		o.grafana.RunbookURL = o.runbooks
		return export.Grafana(f, o.grafana)
	}},
}

// Exports returns the words for what ExportCommand writes.
func Exports() []string {
	names := make([]string, len(exporters))
	for i, e := range exporters {
		names[i] = e.name
	}
	return names
}

// writeRules writes rules in a form.
func writeRules(as export.RulesForm) func(*policyfile.File, exportOptions) ([]byte, error) {
	return func(_ *policyfile.File, o exportOptions) ([]byte, error) {
		o.rules.As, o.rules.RunbookURL = as, o.runbooks
		return export.PrometheusRules(o.rules)
	}
}

// ExportCommand is "abate export".
func ExportCommand(_ context.Context, args []string, stdout, stderr io.Writer) int {
	var o exportOptions
	what, problems, err := o.parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, exportHelp)
		return 0
	}
	if len(problems) > 0 {
		for _, p := range problems {
			fmt.Fprintf(stderr, "abate export: %s\n", p)
		}
		fmt.Fprintln(stderr, `"abate export -h" explains the flags.`)
		return 2
	}
	if err := o.export(what, stdout); err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			fmt.Fprintf(stderr, "abate export: %s\n", line)
		}
		return 1
	}
	return 0
}

// parse reads the words, and finds all that is wrong with them.
func (o *exportOptions) parse(args []string) (what exporter, problems []string, err error) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	flags := flag.NewFlagSet("export", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.policy, "c", "", "")
	flags.StringVar(&o.policy, "for", "", "")
	flags.StringVar(&o.out, "o", "", "")
	flags.Float64Var(&o.rules.Scale, "scale", 1, "")
	flags.DurationVar(&o.rules.Scrape, "scrape", 15*time.Second, "")
	flags.StringVar(&o.rules.Name, "name", "", "")
	flags.StringVar(&o.rules.Namespace, "namespace", "", "")
	flags.StringVar(&o.labels, "labels", "", "")
	flags.StringVar(&o.runbooks, "runbook-url", "", "")
	flags.StringVar(&o.grafana.Title, "title", "", "")
	flags.StringVar(&o.grafana.UID, "uid", "", "")
	words, err := cli.ParseAll(flags, args)
	if err != nil {
		wrong("%v", err)
		return what, problems, err
	}
	names := Exports()
	if len(words) > 0 && slices.Contains(names, words[0]) {
		what = exporters[slices.Index(names, words[0])]
	}
	switch {
	case len(words) == 0:
		wrong("say what to write: %s", strings.Join(names, " or "))
	case what.write == nil:
		wrong("%q is not something to write; allowed: %s", words[0], strings.Join(names, ", "))
	}
	if len(words) > 1 {
		wrong("%q is one word too many; the policy file follows -c", words[1])
	}
	if _, err := export.RunbookFolder(o.runbooks); err != nil {
		wrong("%v", err)
	}
	flags.Visit(func(f *flag.Flag) { problems = append(problems, o.fits(f.Name, what)...) })
	if err := o.readLabels(); err != nil {
		wrong("%v", err)
	}
	return what, problems, nil
}

// fits finds what is wrong with one flag that was given.
func (o *exportOptions) fits(flag string, what exporter) (problems []string) {
	var whose []string
	for _, e := range exporters {
		if slices.Contains(e.own, flag) {
			whose = append(whose, e.name)
		}
	}
	if what.write != nil && len(whose) > 0 && !slices.Contains(whose, what.name) {
		problems = append(problems, fmt.Sprintf("--%s is for %s, not for %s", flag, strings.Join(whose, " and "), what.name))
	}
	if flag == "scale" && !(o.rules.Scale >= export.MinScale && o.rules.Scale <= export.MaxScale) {
		problems = append(problems, fmt.Sprintf("--scale: %v is out of range; allowed: %v to %v", o.rules.Scale,
			export.MinScale, export.MaxScale))
	}
	if flag == "scrape" && (o.rules.Scrape < export.MinScrape || o.rules.Scrape > export.MaxScrape) {
		problems = append(problems, fmt.Sprintf("--scrape: %v is out of range; allowed: %v to %v", o.rules.Scrape,
			export.MinScrape, export.MaxScrape))
	}
	return problems
}

// readLabels reads --labels.
func (o *exportOptions) readLabels() error {
	if o.labels == "" {
		return nil
	}
	o.rules.Labels = map[string]string{}
	for pair := range strings.SplitSeq(o.labels, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("--labels: %q is not KEY=VALUE; for example release=kube-prometheus-stack", pair)
		}
		o.rules.Labels[key] = value
	}
	return nil
}

func (o exportOptions) export(what exporter, stdout io.Writer) error {
	var file *policyfile.File
	if o.policy != "" {
		if o.policy == "-" {
			o.policy = cli.StdinName
		}
		var err error
		if file, err = cli.PolicyFile(o.policy); err != nil {
			return err
		}
	}
	text, err := what.write(file, o)
	if err != nil {
		return err
	}
	if o.out == "" || o.out == "-" {
		_, err = stdout.Write(text)
		return err
	}
	if same(o.out, o.policy) {
		return fmt.Errorf("-o %s is the policy file itself, which this would replace: name another file", o.out)
	}
	if err := cli.ReplaceFile(o.out, text); err != nil {
		return fmt.Errorf("-o %s was not written: %w", o.out, err)
	}
	return nil
}

// same reports whether two names are those of one file.
func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
