package rehearse

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/sim/summary"
	"github.com/abate-go/abate/sim/validation"
)

// The exit codes of "abate sim" that say that there is no verdict. They are those of sysexits.h, so that none is also a
// verdict.
const (
	exitUsage  = 64 // the words or a scenario were wrong
	exitOutput = 74 // a result could not be written
)

const simHelp = `Run a scenario in virtual time, with the policy code that production runs, and judge it.

Usage: abate sim [FLAGS] FILE|FOLDER...
       abate sim FILE --shard 3/20 -o FILE|FOLDER    one part of a study's runs
       abate sim merge [FLAGS] FILE|FOLDER...        what one process would have written
       abate sim --from PATH [--service NAME] [--outage 30s] [--rate N] [-o FILE]
                     the outage of a system that "abate audit" reads, as a scenario to edit and run

Each file is a scenario; a folder means its *.yaml files. Flags may stand anywhere; after "--" all
words are files.

  --html FILE           write a report for a browser, one file that needs no network; with a folder
                        or several scenarios FILE is a folder, too. Implies --margin and --map
  --json FILE           write all numbers; "-" for standard output, instead of the text; with a
                        folder or several scenarios a list, {"version": 1, "results": [...]}
  --junit FILE          write JUnit XML: a test case per variant and expectation
  --markdown FILE       write five lines for a pull request; "-" for standard output

  --seeds N             make exactly N runs of each variant; without it runs are made until every
                        expectation is decided, at most as many as the scenario says
  --seed N              seed of the first run; the next ones count up (default 1)
  --variant NAME        only this variant; may be given several times

  --margin              find how far away the cliff is: in load, length of the trouble, capacity
  --advice              find the smallest change, or pair of changes, that makes a variant pass
                        that fails
  --map                 find the share of runs that collapse, over load and length of the trouble
  --fast                none of these three, unless asked for
                        Without any of these flags, one scenario gets margin and advice, several
                        none

  --rare EXPECTATION    how probable it is that a run misses it, also where plain runs never
                        would: 'queue(payment-db) < 200', with 'in 99.99% of runs' for a verdict.
                        Splits runs on the way to the long queue; --seeds is how many of each
                        stage (default 100). Prints the probability, its 95 % interval, its cost;
                        with --json the same, and the shares, as {"version": 1, "rare": [...]}
  --shard I/N           make only every N-th run, from the I-th on, all that may be needed, and add
                        them to the file of -o; the same command again goes on where it stopped.
                        job/N takes the number from JOB_COMPLETION_INDEX, as pods of an Indexed Job
                        have it. "merge" needs the scenario where it was, and takes the flags above
  -o FILE               where the runs of a shard go; in a folder, to shard-I-of-N.jsonl

  --explain             print what a run would rest on: every assumption and default, the policies
                        in force, the size of a run, all measures. Runs nothing
  --schema              print the JSON Schema of a scenario file
  --validate            hold the simulator against about 300 numbers that others published, and
                        print the table; stands alone, and takes about a minute; exit code 0 if all
                        fit, else 1
  --quiet               no progress, and of the text only the last line
  -h, --help            print this

Exit code: 0 PASS, every expectation holds or there is none; 1 FAIL, at least one does not;
2 UNDECIDED, none fails, but more runs are needed to decide (in JUnit: skipped); 64 a flag or a
scenario is wrong; 74 a result could not be written; 130 interrupted, and what was known by then is
printed.
`

// runner runs one scenario: sim.Run.
type runner func(ctx context.Context, s *scenario.Scenario, o sim.Options) (*sim.Result, error)

// SimCommand runs "abate sim".
func SimCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return simulate(ctx, sim.Run, args, stdout, stderr)
}

// simulate is simCommand with what runs a scenario as an argument.
func simulate(ctx context.Context, run runner, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == mergeWord {
		return merge(ctx, args, stdout, stderr)
	}
	if asksFrom(args) {
		return from(ctx, args, stdout, stderr)
	}
	o, err := parseSim(args)
	if errors.Is(err, flag.ErrHelp) {
		return written(stderr, say(stdout, simHelp))
	}
	if len(o.problems) == 0 && o.schema {
		return written(stderr, say(stdout, string(scenario.Schema())))
	}
	if len(o.problems) == 0 && o.validate {
		return validate(ctx, validation.Run, o.quiet, stdout, stderr)
	}
	scenarios := o.load()
	if len(o.problems) > 0 {
		for _, p := range o.problems {
			fmt.Fprintln(stderr, p)
		}
		fmt.Fprintln(stderr, `abate sim: nothing was run; "abate sim -h" explains the flags.`)
		return exitUsage
	}
	if o.explain {
		for _, s := range scenarios {
			if err := summary.Explain(stdout, s, o.variantsOf(s)); err != nil {
				return written(stderr, err)
			}
		}
		return 0
	}
	if o.given["shard"] {
		return o.shard(ctx, scenarios[0], stdout, stderr)
	}
	if o.given["rare"] {
		return o.rareEvents(ctx, scenarios[0], stdout, stderr)
	}
	if err := o.checkOutputs(); err != nil {
		return written(stderr, err)
	}
	return o.run(ctx, run, scenarios, stdout, stderr)
}

func say(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// written is the exit code after output, and says what went wrong with it.
func written(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "abate sim: %v\n", err)
	return exitOutput
}

// run runs the scenarios, one after the other, and writes what came of them.
func (o *simOptions) run(ctx context.Context, run runner, scenarios []*scenario.Scenario, stdout,
	stderr io.Writer) int {
	progress := newSimProgress(stderr, o.quiet)
	var results []*sim.Result
	var left []string
	code := 0
	for i, s := range scenarios {
		variants := o.variantsOf(s)
		if variants != nil && len(variants) == 0 {
			fmt.Fprintf(stderr, "abate sim: %s has none of the variants asked for; it is left out\n", s.File)
			continue
		}
		if ctx.Err() != nil {
			left = append(left, s.File)
			continue
		}
		options := o.options
		options.Variants = variants
		options.Progress = progress.of(s.File, i+1, len(scenarios))
		result, err := run(ctx, s, options)
		progress.End("")
		switch {
		case err == nil:
			results = append(results, result)
		case ctx.Err() != nil: // before the first run ended
			left = append(left, s.File)
		default:
			fmt.Fprintf(stderr, "abate sim: %v\n", err)
			code = exitUsage
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(stderr, "abate sim: stopped; nothing is known of %s\n", strings.Join(left, ", "))
	}
	if err := errors.Join(o.text(stdout, results), o.files(stdout, results)); err != nil {
		return written(stderr, err)
	}
	if ctx.Err() != nil {
		return summary.ExitInterrupted
	}
	if code == 0 {
		code = summary.ExitCode(results)
	}
	return code
}

// text prints the results for people, unless a program reads standard output.
func (o *simOptions) text(stdout io.Writer, results []*sim.Result) error {
	options := summary.Options{Color: cli.NewLive(stdout).Terminal && os.Getenv("NO_COLOR") == "" &&
		os.Getenv("TERM") != "dumb"}
	switch {
	case o.json == toStdout || o.markdown == toStdout || len(results) == 0:
		return nil
	case o.quiet:
		return summary.Last(stdout, results, options)
	case o.several:
		return summary.Overview(stdout, results, options)
	}
	return summary.Text(stdout, results[0], options)
}

// load reads all scenarios. Whatever is wrong with any of them is added to the problems.
func (o *simOptions) load() []*scenario.Scenario {
	var scenarios []*scenario.Scenario
	seen := map[string]bool{}
	for _, path := range o.paths {
		for _, file := range o.expand(path) {
			if file = filepath.Clean(file); seen[file] {
				continue
			}
			seen[file] = true
			s, err := scenario.Load(file)
			if err != nil {
				o.problems = append(o.problems, err.Error())
				continue
			}
			scenarios = append(scenarios, s)
		}
	}
	if o.given["shard"] && len(o.problems) == 0 && (o.several || len(scenarios) != 1) {
		o.wrong("--shard is a part of one scenario's study: name one file")
	}
	if o.given["rare"] && len(o.problems) == 0 && (o.several || len(scenarios) != 1) {
		o.wrong("--rare is about the queue of one scenario: name one file")
	}
	if len(o.problems) == 0 {
		o.checkVariants(scenarios)
		o.settle(scenarios)
	}
	return scenarios
}

// expand returns the files of a path: itself, or the *.yaml files of a folder in the order of their names.
func (o *simOptions) expand(path string) []string {
	info, err := os.Stat(path)
	if err != nil {
		o.wrong("%v", err)
		return nil
	}
	if !info.IsDir() {
		return []string{path}
	}
	o.several = true
	entries, err := os.ReadDir(path)
	if err != nil {
		o.wrong("%v", err)
		return nil
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && filepath.Ext(e.Name()) == ".yaml" {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		o.wrong("%s: there is no *.yaml file in this folder", path)
	}
	return files
}
