package inspect

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// The exit codes of an audit beside 0, nothing to complain about, and 1, findings.
const (
	exitUsage       = 2 // a flag is wrong, or a file that should have been read was not
	exitInterrupted = 130
)

const auditHelp = `Read the retries that a team already has, in any stack, and say what they do in an outage.

Usage: abate audit [FLAGS] PATH...

PATH is a file, a folder, or "-" for standard input (helm template . | abate audit -). Files are
recognised by their content: FORMATS. What no file says can be added in a file
with calls: and services: (see docs/audit.md).

  --list                  print what each file was taken for and how names were joined; judge nothing
  --all                   print notes, findings of the baseline and accepted ones too
  --topology FILE         write the joined form as YAML, each value with its source

  --prometheus URL        ask this Prometheus who calls whom, how often and how fast: service graphs
                          of Tempo and the OpenTelemetry collector, Istio, Linkerd. Saved answers of
                          instant queries are read as files
  --window TIME           how far back it looks, from 1s to 1y (default 5m)

  --assume NAME=VALUE     istio=1.23: whose defaults hold; implementation=istio, envoy-gateway or consul: what
                          serves routes of the Gateway API; app=propagate: an application whose call
                          failed answers as the call did. May be given several times
  --max-amplification N   attempts that one request may become; more is an error (at least 1, default 10)
  --fail-on SEVERITY      error, warning, note or never: what makes the exit code 1 (default error)
  --baseline FILE         findings in it do not fail; --write-baseline writes it
  --write-baseline

  --simulate              play the outage of the three services at which one request becomes most
                          attempts, as configured and with the changes of --fix
  --outage TIME           how long a service fails (default 30s)
  --service NAME          the only service that fails
  --runs N                runs of each at most (1 to 1000; default 10, or 5 of a large system if none
                          collapses)
  --rate N                requests/s at services that nobody calls, where no file says it (default 100)

  --fix                   look for the fewest numbers to change, or to write where a default is at
                          fault, and print them as a diff; with --fix=write they are written

  --html FILE             write one page for a browser
  --sarif FILE            write SARIF 2.1.0, --junit FILE JUnit XML, --json FILE all numbers,
  --markdown FILE         a pull request's comment, --gitlab FILE a code quality report; "-" for
                          standard output, instead of the text
  --github                print workflow commands, which GitHub shows beside the lines
  --explain RULE          say what a rule means, why, and when it is wrong
  --quiet                 no progress, and of the text only the last line
  -h, --help              print this

A comment "abate:ignore F301 why" on the line of a finding or on the line above accepts it, and so
does a Kubernetes annotation abate.dev/ignore: "F301=why". The reason is needed.

Exit code: 0 no finding at or above --fail-on, or --write-baseline has accepted them; 1 there is
one; 2 a flag is wrong, or a path could not be read; 130 interrupted.
`

// auditOptions are the words of "abate audit".
type auditOptions struct {
	problems []string
	paths    []string

	list, all, github, quiet, simulate, writeBaseline bool

	prometheus, window string

	topology, baseline, html, sarif, junit, json, markdown, gitlab string

	assume  assumptions
	max     float64
	failOn  string
	outage  time.Duration
	service string
	runs    int
	rate    float64
	fix     fixing
	explain string
}

// fixing is --fix, and --fix=write.
type fixing string

func (f *fixing) String() string   { return string(*f) }
func (f *fixing) IsBoolFlag() bool { return true }
func (f *fixing) Set(s string) error {
	switch s {
	case "true":
		*f = "print"
	case "write", "print":
		*f = fixing(s)
	case "false":
		*f = ""
	default:
		return fmt.Errorf("%q is not a way to fix; allowed: --fix, --fix=write", s)
	}
	return nil
}

func (o *auditOptions) wrong(format string, args ...any) {
	o.problems = append(o.problems, "abate audit: "+fmt.Sprintf(format, args...))
}

func (o *auditOptions) define() *flag.FlagSet {
	f := flag.NewFlagSet("audit", flag.ContinueOnError)
	f.BoolVar(&o.list, "list", false, "")
	f.BoolVar(&o.all, "all", false, "")
	f.BoolVar(&o.github, "github", false, "")
	f.BoolVar(&o.quiet, "quiet", false, "")
	f.BoolVar(&o.simulate, "simulate", false, "")
	f.BoolVar(&o.writeBaseline, "write-baseline", false, "")
	f.StringVar(&o.prometheus, "prometheus", "", "")
	f.StringVar(&o.window, "window", "5m", "")
	f.StringVar(&o.topology, "topology", "", "")
	f.StringVar(&o.baseline, "baseline", "", "")
	f.StringVar(&o.html, "html", "", "")
	f.StringVar(&o.sarif, "sarif", "", "")
	f.StringVar(&o.junit, "junit", "", "")
	f.StringVar(&o.json, "json", "", "")
	f.StringVar(&o.markdown, "markdown", "", "")
	f.StringVar(&o.gitlab, "gitlab", "", "")
	f.Var(&o.assume, "assume", "")
	f.Float64Var(&o.max, "max-amplification", 10, "")
	f.StringVar(&o.failOn, "fail-on", "error", "")
	f.DurationVar(&o.outage, "outage", 30*time.Second, "")
	f.IntVar(&o.runs, "runs", unset, "")
	f.StringVar(&o.service, "service", "", "")
	f.Float64Var(&o.rate, "rate", audit.AssumedRate, "")
	f.Var(&o.fix, "fix", "")
	f.StringVar(&o.explain, "explain", "", "")
	return f
}

// unset is --runs if it is left out: no number that anybody would write.
const unset = math.MinInt

// severities are the words of --fail-on.
var severities = map[string]lint.Severity{"error": lint.Error, "warning": lint.Warning, "note": lint.Note}

// parse reads the words, and collects everything that is wrong with them. The error is flag.ErrHelp or nil.
func parse(args []string) (*auditOptions, error) {
	o := &auditOptions{}
	var err error
	if o.paths, err = cli.ReadFlags(o.define(), args, o.wrong); err != nil {
		return o, err
	}
	if len(o.paths) == 0 && o.explain == "" && o.prometheus == "" {
		o.wrong("no path is named; for example: abate audit .")
	}
	if _, ok := severities[o.failOn]; !ok && o.failOn != "never" {
		o.wrong("--fail-on: %q is no severity; allowed: error, warning, note, never", o.failOn)
	}
	if o.writeBaseline && o.baseline == "" {
		o.wrong("--write-baseline needs --baseline FILE, for example --baseline .abate-baseline.json")
	}
	if o.writeBaseline && o.list {
		o.wrong("--write-baseline writes what was found, and --list looks for nothing: leave one of them out")
	}
	if !(o.max >= 1) { // NaN is no number either
		o.wrong("--max-amplification: %v is too few, for a request is one attempt at least; write a number from 1 on, or "+
			"leave the flag out for 10", o.max)
	}
	if err := audit.CheckWindow(o.window); err != nil {
		o.wrong("--window: %v", err)
	}
	if o.runs != unset && (o.runs < 1 || o.runs > 1000) {
		o.wrong("--runs: %d is no number of runs; write one from 1 to 1000, or leave the flag out", o.runs)
	}
	o.runs = max(o.runs, 0)
	cli.CheckOutage(o.outage, o.rate, audit.AssumedRate, o.wrong)
	if all := o.toStdout(); len(all) > 1 {
		o.wrong("%s all write to standard output, where one document has room; write the others to files",
			strings.Join(all, ", "))
	}
	return o, nil
}

// outputs are the files that can be written besides the text.
func (o *auditOptions) outputs() []struct{ flag, file string } {
	return []struct{ flag, file string }{{"html", o.html}, {"sarif", o.sarif}, {"junit", o.junit}, {"json", o.json},
		{"markdown", o.markdown}, {"gitlab", o.gitlab}, {"topology", o.topology}}
}

// toStdout returns the flags that take the place of the text.
func (o *auditOptions) toStdout() []string {
	var all []string
	for _, out := range o.outputs() {
		if out.file == cli.ToStdout {
			all = append(all, "--"+out.flag+" -")
		}
	}
	if o.github {
		all = append(all, "--github")
	}
	return all
}

// AuditCommand runs "abate audit".
func AuditCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, strings.Replace(auditHelp, "FORMATS", strings.Join(importer.Formats(), ", "), 1))
		return 0
	}
	if len(o.problems) == 0 && o.explain != "" {
		return explain(o.explain, stdout, stderr)
	}
	options := o.audit()
	if len(o.problems) > 0 {
		for _, p := range o.problems {
			fmt.Fprintln(stderr, p)
		}
		fmt.Fprintln(stderr, `abate audit: nothing was read; "abate audit -h" explains the flags.`)
		return exitUsage
	}
	return o.run(ctx, options, stdout, stderr)
}

// audit returns what the words mean for package audit.
func (o *auditOptions) audit() audit.Options {
	options := audit.Options{Lint: lint.Options{MaxAmplification: o.max}}
	options.Assume, options.Propagate = o.assume.read(true, o.wrong)
	if o.baseline == "" {
		return options
	}
	data, err := os.ReadFile(o.baseline)
	if err == nil {
		options.Baseline, err = audit.ParseBaseline(o.baseline, data)
	}
	if err != nil && !o.writeBaseline {
		o.wrong("--baseline: %v", err)
	}
	return options
}

func (o *auditOptions) run(ctx context.Context, options audit.Options, stdout, stderr io.Writer) int {
	progress := newProgress(stderr, o.quiet)
	files, err := audit.Collect(ctx, o.paths, os.Stdin, progress.files)
	progress.End("")
	if o.prometheus != "" {
		answers, asked := audit.Prometheus(ctx, nil, o.prometheus, o.window)
		files, err = append(files, answers...), errors.Join(err, asked)
	}
	if err != nil && len(files) == 0 && ctx.Err() == nil { // a report of nothing would say that nothing is repeated
		return o.code(nil, err, stderr)
	}
	var r *audit.Result
	if ctx.Err() != nil || !cli.Interruptible(ctx, func() { r = audit.Run(files, options) }) {
		fmt.Fprintln(stderr, "abate audit: interrupted; nothing was judged.")
		return exitInterrupted
	}
	if err == nil && r.Known() == 0 && !r.Fails(lint.Warning) {
		err = errors.New("none of these files is of a kind that is read; --list says what each was taken for")
	}
	if o.list {
		err = errors.Join(err, audit.List(stdout, r))
		return o.code(nil, err, stderr)
	}
	if o.simulate && o.service != "" {
		err = errors.Join(err, o.failing(r))
	}
	if o.fix != "" || o.simulate {
		progress.changes()
		proposed := *r // of which nothing is used if it is not ready
		if cli.Interruptible(ctx, func() { proposed.Propose(files, options.Lint) }) {
			r = &proposed
		}
		progress.End("")
	}
	if o.simulate {
		r.Simulate(ctx, audit.SimulateOptions{Outage: o.outage, Service: o.service, Rate: o.rate, Runs: o.runs,
			Progress: progress.outage})
		progress.End("")
	}
	if o.fix == "" {
		r.Diff = ""
	}
	failed := errors.Join(o.keepBaseline(err), o.write(r, files, stdout))
	if o.fix == "write" {
		changed, wrong := rewrite(r, files)
		failed = errors.Join(failed, wrong)
		if len(changed) > 0 && !o.quiet {
			fmt.Fprintf(stderr, "abate audit: changed: %s; what is said above is from before.\n", strings.Join(changed, ", "))
		}
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "abate audit: interrupted; what was known by then is printed.")
		return exitInterrupted
	}
	return o.code(r, failed, stderr)
}

// failing finds the service that is to fail by the name that was given, as files name services. Without one nothing
// would be played, and nothing would say so.
func (o *auditOptions) failing(r *audit.Result) error {
	name, rule := topology.NewNames(r.Form.Services).Find(o.service, "")
	if rule == topology.NotFound || rule == topology.Ambiguous {
		var names []string
		for i := range r.Form.Services {
			names = append(names, r.Form.Services[i].Name)
		}
		o.simulate = false
		return fmt.Errorf("--service: %q is no service of these files, or several; they are: %s", o.service,
			strings.Join(names, ", "))
	}
	o.service = name
	return nil
}

// write writes all that was asked for.
func (o *auditOptions) write(r *audit.Result, files []importer.File, stdout io.Writer) error {
	version := cli.Version()
	var errs []error
	forms := map[string]func(io.Writer) error{
		"html":     func(w io.Writer) error { return audit.HTML(w, r) },
		"sarif":    func(w io.Writer) error { return audit.SARIF(w, r, version) },
		"junit":    func(w io.Writer) error { return audit.JUnit(w, r, o.least()) },
		"json":     func(w io.Writer) error { return audit.JSON(w, r) },
		"markdown": func(w io.Writer) error { return audit.Markdown(w, r) },
		"gitlab":   func(w io.Writer) error { return audit.GitLab(w, r) },
		"topology": func(w io.Writer) error { _, err := w.Write(r.Form.YAML()); return err },
	}
	for _, out := range o.outputs() {
		errs = append(errs, cli.Output(stdout, out.flag, out.file, forms[out.flag]))
	}
	if o.writeBaseline {
		errs = append(errs, cli.Output(stdout, "baseline", o.baseline, func(w io.Writer) error {
			_, err := w.Write(audit.BaselineOf(r).JSON())
			return err
		}))
	}
	switch {
	case o.github:
		errs = append(errs, audit.GitHub(stdout, r))
	case len(o.toStdout()) == 0:
		errs = append(errs, audit.Text(stdout, r, audit.TextOptions{All: o.all, Last: o.quiet}))
	}
	return errors.Join(errs...)
}

// least is the least severity that fails.
func (o *auditOptions) least() lint.Severity {
	if least, ok := severities[o.failOn]; ok {
		return least
	}
	return lint.Error + 1 // never
}

// code is the exit code.
func (o *auditOptions) code(r *audit.Result, err error, stderr io.Writer) int {
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "abate audit: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nabate audit: "))
		return exitUsage
	case r != nil && o.writeBaseline && !o.quiet:
		fmt.Fprintf(stderr, "abate audit: %s accepts what was found: from now on what is new fails.\n", o.baseline)
	case r != nil && !o.writeBaseline && r.Fails(o.least()):
		return 1
	}
	return 0
}

func explain(id string, stdout, stderr io.Writer) int {
	if r, ok := lint.RuleOf(strings.ToUpper(id)); ok {
		fmt.Fprintf(stdout, "%s (%s): %s\n\n%s\n\nSource: %s\n\nFine when: %s\n\nFix: %s\n", r.ID, r.Severity, r.Title,
			r.Why,
			r.Source, r.Fine, r.Fix)
		return 0
	}
	var ids []string
	for _, r := range lint.Rules() {
		ids = append(ids, r.ID)
	}
	fmt.Fprintf(stderr, "abate audit: there is no rule %q; the rules are %s.\n", id, strings.Join(ids, ", "))
	return exitUsage
}
