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

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/export"
	"github.com/abate-go/abate/policyfile"
)

const exportHelp = `Write what other programs need of a policy file.

Usage: abate export prometheus-rules -c FILE [FLAGS]
       abate export grafana [-c FILE] [FLAGS]
       abate export FORMAT -c FILE [FLAGS]      another program's format: abate export envoy -h

prometheus-rules  recording and alerting rules, with thresholds that follow from the policies: each
                  service that the file lists has its own, all others share those of its defaults
grafana           a dashboard for Grafana 10 and later; without -c its thresholds are those of the
                  default policy

  -c FILE             the policy file, plain or in a Kubernetes ConfigMap; "-" reads standard input
  -o FILE             write there instead of to standard output ("-"); the file is replaced as a
                      whole, and left as it is if anything is wrong
  --runbook-url URL   folder of the runbook pages, one for each alert
                      (default ` + export.Runbooks + `)
  -h, --help          print this

Of prometheus-rules:
  --scale N           factor for all times, 0.01 to 100: 0.1 makes an alert of two minutes one of
                      twelve seconds, for drills; scrape as much more often (default 1)
  --only-listed       no alerts for services that the file does not list: for all files but one if
                      a Prometheus loads the rules of several

Of grafana:
  --title TEXT        what the dashboard is called (default "Abate")
  --uid ID            what Grafana knows it by: one that is imported replaces the one with the same
                      (default "abate")

Check what was written, and load it:
  abate export prometheus-rules -c policy.yaml | promtool check rules /dev/stdin

Exit code: 0 written, 1 the file is wrong or cannot be read or written, 2 wrong usage.
`

// exportOptions are the words of "abate export".
type exportOptions struct {
	policy, out, runbooks string
	rules                 export.RulesOptions
	grafana               export.GrafanaOptions
}

// exporter writes one kind of thing. own are the flags that belong to it alone.
type exporter struct {
	name  string
	own   []string
	write func(*policyfile.File, exportOptions) ([]byte, error)
}

var exporters = []exporter{
	{"prometheus-rules", []string{"scale", "only-listed"}, func(f *policyfile.File, o exportOptions) ([]byte, error) {
		o.rules.RunbookURL = o.runbooks
		return export.PrometheusRules(f, o.rules)
	}},
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
	flags.StringVar(&o.out, "o", "", "")
	flags.Float64Var(&o.rules.Scale, "scale", 1, "")
	flags.BoolVar(&o.rules.OnlyListed, "only-listed", false, "")
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
	if o.policy == "" && what.name == exporters[0].name {
		wrong("-c FILE is missing: the thresholds come from a policy file")
	}
	if _, err := export.RunbookFolder(o.runbooks); err != nil {
		wrong("%v", err)
	}
	flags.Visit(func(f *flag.Flag) {
		for _, e := range exporters {
			if what.write != nil && e.name != what.name && slices.Contains(e.own, f.Name) {
				wrong("--%s is for %s, not for %s", f.Name, e.name, what.name)
			}
		}
		if f.Name == "scale" && !(o.rules.Scale >= export.MinScale && o.rules.Scale <= export.MaxScale) {
			wrong("--scale: %v is out of range; allowed: %v to %v", o.rules.Scale, export.MinScale, export.MaxScale)
		}
	})
	return what, problems, nil
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
