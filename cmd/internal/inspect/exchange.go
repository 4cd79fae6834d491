package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/policyfile"
)

// exchangeOptions are the words of "abate export FORMAT" and "abate import".
type exchangeOptions struct {
	command     string
	policy, out string
	loss        string
	failOnLoss  bool
	noCost      bool
	strict      bool
	warnings    []string
	caller      string
	assume      assumptions
	words       []string
	problems    []string
}

func (o *exchangeOptions) wrong(format string, args ...any) {
	o.problems = append(o.problems, o.command+": "+fmt.Sprintf(format, args...))
}

// parseExchange reads the words; own says which flags the command has besides those of both.
func parseExchange(command string, args []string, own func(*flag.FlagSet, *exchangeOptions)) (*exchangeOptions,
	error) {
	o := &exchangeOptions{command: command}
	f := flag.NewFlagSet(command, flag.ContinueOnError)
	f.StringVar(&o.out, "o", cli.ToStdout, "")
	f.StringVar(&o.loss, "loss", "", "")
	f.BoolVar(&o.failOnLoss, "fail-on-loss", false, "")
	own(f, o)
	var err error
	o.words, err = cli.ReadFlags(f, args, o.wrong)
	return o, err
}

// Exports returns "abate export": formats of other programs' retries are written here, everything else by next. others
// are the words for what next writes.
func Exports(next cli.Run, others ...string) cli.Run {
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		word := firstWord(args)
		all := slices.Clone(others)
		for _, f := range exporter.Formats {
			if word == f.Name {
				return exportFormat(ctx, f, args, stdout, stderr)
			}
			all = append(all, f.Name)
		}
		if word != "" && !slices.Contains(others, word) {
			fmt.Fprintf(stderr, "abate export: %q is nothing that is written; allowed: %s\n"+
				"\"abate export -h\" explains them.\n",
				word, strings.Join(all, ", "))
			return exitUsage
		}
		return next(ctx, args, stdout, stderr)
	}
}

// valueless are the flags of "abate export" that take no value.
var valueless = []string{"h", "help", "fail-on-loss", "no-cost", "strict", "only-listed"}

// firstWord returns the first word that is neither a flag nor a flag's value.
func firstWord(args []string) string {
	for i := 0; i < len(args); i++ {
		flag, isFlag := strings.CutPrefix(args[i], "-")
		if !isFlag || flag == "" {
			return args[i]
		}
		if flag = strings.TrimPrefix(flag, "-"); !strings.Contains(flag, "=") && !slices.Contains(valueless, flag) {
			i++
		}
	}
	return ""
}

func exportFormat(ctx context.Context, format exporter.Format, args []string, stdout, stderr io.Writer) int {
	o, err := parseExchange("abate export "+format.Name, args, func(f *flag.FlagSet, o *exchangeOptions) {
		f.StringVar(&o.policy, "c", "", "")
		f.BoolVar(&o.noCost, "no-cost", false, "")
		f.BoolVar(&o.strict, "strict", false, "")
	})
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, exportFormatHelp())
		return 0
	}
	if len(o.words) > 1 {
		o.wrong("%q is one word too many; the policy file follows -c", o.words[1])
	}
	if o.policy == "" {
		o.wrong("-c FILE is missing: the policy file")
	}
	if len(o.problems) > 0 {
		return o.usage(stderr)
	}
	data, urls, err := readPolicy(o.policy)
	if err != nil {
		return o.failed(err, stderr)
	}
	policy := importer.File{Name: o.policy, Data: data}
	text, losses, err := audit.Export(format, policy, urls)
	if err == nil && !o.noCost {
		err = audit.AddCosts(ctx, format, policy, urls, losses)
	}
	if ctx.Err() != nil {
		fmt.Fprintf(stderr, "abate export %s: interrupted; nothing was written. --no-cost takes no time.\n", format.Name)
		return exitInterrupted
	}
	if err != nil {
		return o.failed(err, stderr)
	}
	o.warnings = audit.Warnings(format.Name, losses)
	return o.finish(text, losses, stdout, stderr)
}

func exportFormatHelp() string {
	var b strings.Builder
	b.WriteString("Write the retries, limits and breakers of a policy file in the format of another program.\n\n" +
		"Usage: abate export FORMAT -c FILE [FLAGS]\n\n")
	for _, f := range exporter.Formats {
		fmt.Fprintf(&b, "%-12s %s\n", f.Name, f.About)
	}
	b.WriteString(`
  -c FILE          the policy file; "-" reads standard input
  -o FILE          write there instead of to standard output
  --loss FILE      write the loss report as JSON; without it what is lost is said on standard error
  --fail-on-loss   exit with 1 if a setting is not exact in what was written
  --strict         exit with 1 if what was written repeats POST and PATCH where the policy does not
  --no-cost        do not play in the simulator what the losses cost
  -h, --help       print this

What was written is read again by the importer of the format, and compared: what came back the same
is exact, the rest is approximated, dropped or added.
`)
	return b.String()
}

// readPolicy reads a policy file, and where its services are.
func readPolicy(name string) (data []byte, urls map[string][]string, err error) {
	if name == cli.ToStdout {
		data, err = io.ReadAll(io.LimitReader(os.Stdin, policyfile.MaxBytes+1))
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, nil, err
	}
	file, err := policyfile.Parse(name, data)
	if err != nil {
		return nil, nil, err
	}
	urls = map[string][]string{}
	for i := range file.Services {
		urls[file.Services[i].Name] = file.Services[i].Policy.Upstreams
	}
	return data, urls, nil
}

const importHelp = `Write a policy file for the retries, limits and breakers that files of other programs set.

Usage: abate import [FLAGS] PATH...

PATH is a file, a folder, or "-" for standard input, as for "abate audit".

  -o FILE              write the policy there instead of to standard output
  --for SERVICE        only the calls of this service: one policy file is one caller's
  --assume NAME=VALUE  istio=1.23: whose defaults hold; may be given several times
  --loss FILE          write the loss report as JSON; without it what is lost is said on standard error
  --fail-on-loss       exit with 1 if a setting is not exact in what was written
  -h, --help           print this

Where several layers try one call, the outermost that repeats is taken. The others are named: they go
on repeating until they are switched off where they stand.
`

// ImportCommand runs "abate import".
func ImportCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseExchange("abate import", args, func(f *flag.FlagSet, o *exchangeOptions) {
		f.StringVar(&o.caller, "for", "", "")
		f.Var(&o.assume, "assume", "")
	})
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, importHelp)
		return 0
	}
	if len(o.words) == 0 {
		o.wrong("no path is named; for example: abate import deploy/ -o policy.yaml")
	}
	assume, _ := o.assume.read(false, o.wrong)
	if len(o.problems) > 0 {
		return o.usage(stderr)
	}
	files, err := audit.Collect(ctx, o.words, os.Stdin, nil)
	if err != nil && ctx.Err() == nil {
		return o.failed(err, stderr)
	}
	var text []byte
	var losses []audit.Loss
	if ctx.Err() != nil || !cli.Interruptible(ctx, func() { text, losses, err = audit.Import(files, o.caller, assume) }) {
		fmt.Fprintln(stderr, "abate import: interrupted; nothing was written.")
		return exitInterrupted
	}
	if err != nil {
		return o.failed(err, stderr)
	}
	return o.finish(text, losses, stdout, stderr)
}

func (o *exchangeOptions) usage(stderr io.Writer) int {
	for _, p := range o.problems {
		fmt.Fprintln(stderr, p)
	}
	fmt.Fprintf(stderr, "%q explains the flags.\n", o.command+" -h")
	return exitUsage
}

func (o *exchangeOptions) failed(err error, stderr io.Writer) int {
	fmt.Fprintf(stderr, "%s: %s\n", o.command, strings.ReplaceAll(err.Error(), "\n", "\n"+o.command+": "))
	return 1
}

// finish writes the text and the loss report, and returns the exit code.
func (o *exchangeOptions) finish(text []byte, losses []audit.Loss, stdout, stderr io.Writer) int {
	err := errors.Join(
		cli.Output(stdout, "o", o.out, func(w io.Writer) error { _, err := w.Write(text); return err }),
		cli.Output(stdout, "loss", o.loss, func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(losses)
		}))
	if err != nil {
		return o.failed(err, stderr)
	}
	for _, w := range o.warnings {
		fmt.Fprintf(stderr, "warning: %s\n", w)
	}
	if o.loss == "" {
		fmt.Fprint(stderr, audit.LossText(losses))
	}
	if o.failOnLoss && audit.Lossy(losses) || o.strict && len(o.warnings) > 0 {
		return 1
	}
	return 0
}
