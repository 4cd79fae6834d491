package rehearse

import (
	"flag"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// toStdout is the name of standard output where a flag takes a file.
const toStdout = "-"

// mergeWord is the first word of "abate sim merge"; a scenario of that name is written ./merge.
const mergeWord = "merge"

// mostRuns is the most that --seeds takes, as in a scenario file.
const mostRuns = 1_000_000

// simOptions are the words of "abate sim".
type simOptions struct {
	paths                       []string
	several                     bool // a path was a folder, or there is more than one scenario
	html, json, junit, markdown string
	options                     sim.Options // Margin, Advice and Map as asked for until settle
	variants                    []string
	fast, explain               bool
	schema, quiet, validate     bool
	merge                       bool // "abate sim merge"
	part                        sim.Shard
	rare                        expect.Expectation
	shardFile                   string
	given                       map[string]bool // flags that were given
	problems                    []string
}

func (o *simOptions) wrong(format string, args ...any) {
	o.problems = append(o.problems, "abate sim: "+fmt.Sprintf(format, args...))
}

// parseSim reads the words, flags wherever they stand, and collects everything that is wrong with them. The error is
// flag.ErrHelp or nil.
func parseSim(args []string) (*simOptions, error) {
	o := &simOptions{options: sim.Options{Seed: 1}, given: map[string]bool{}}
	if o.merge = len(args) > 0 && args[0] == mergeWord; o.merge {
		args = args[1:]
	}
	flags := o.define()
	var err error
	if o.paths, err = cli.ReadFlags(flags, args, o.wrong); err != nil {
		return o, err
	}
	flags.Visit(func(f *flag.Flag) { o.given[f.Name] = true })
	o.finish()
	return o, nil
}

func (o *simOptions) define() *flag.FlagSet {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for name, to := range map[string]*string{"html": &o.html, "json": &o.json, "junit": &o.junit,
		"markdown": &o.markdown} {
		flags.StringVar(to, name, "", "")
	}
	for name, to := range map[string]*bool{
		"margin": &o.options.Margin, "advice": &o.options.Advice, "map": &o.options.Map, "fast": &o.fast,
		"explain": &o.explain, "schema": &o.schema, "quiet": &o.quiet, "validate": &o.validate,
	} {
		flags.BoolVar(to, name, false, "")
	}
	flags.StringVar(&o.shardFile, "o", "", "")
	flags.Func("shard", "", func(s string) (err error) {
		o.part, err = parseShard(s)
		return err
	})
	flags.Func("seed", "", func(s string) error {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil || v == 0 {
			return fmt.Errorf("%q is not a whole number from 1 to %d", s, uint64(math.MaxUint64))
		}
		o.options.Seed = v
		return nil
	})
	flags.Func("seeds", "", func(s string) error {
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 || v > mostRuns {
			return fmt.Errorf("%q is not a whole number from 1 to %d", s, mostRuns)
		}
		o.options.Runs, o.options.Exactly = v, true
		return nil
	})
	flags.Func("rare", "", func(s string) (err error) {
		o.rare, err = expect.Parse(s)
		return err
	})
	flags.Func("variant", "", func(s string) error {
		o.variants = append(o.variants, s)
		return nil
	})
	return flags
}

// outputs are the flags that name a file, in the order of the help, and the files.
func (o *simOptions) outputs() [4][2]string {
	return [...][2]string{{"html", o.html}, {"json", o.json}, {"junit", o.junit}, {"markdown", o.markdown}}
}

// finish checks what no single flag can tell.
func (o *simOptions) finish() {
	users := map[string]string{}
	for _, out := range o.outputs() {
		name, file := out[0], out[1]
		switch {
		case !o.given[name]:
			continue
		case file == "":
			o.wrong("--%s needs the name of a file", name)
		case strings.HasPrefix(file, "-") && file != toStdout:
			o.wrong("--%s: %q looks like a flag; a file of that name is written ./%s", name, file, file)
		case file == toStdout && (name == "html" || name == "junit"):
			o.wrong("--%s: only --json and --markdown can be written to standard output", name)
		case slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(file)):
			o.wrong("--%s: %q looks like a scenario, which would be overwritten; name the file to write", name, file)
		case users[filepath.Clean(file)] != "":
			o.wrong("--%s and --%s would write the same file, %s", users[filepath.Clean(file)], name, file)
		case o.explain || o.schema:
			o.wrong("--%s: nothing is run, so there is nothing to write", name)
		}
		users[filepath.Clean(file)] = name
	}
	o.checkShard()
	o.checkRare()
	switch {
	case o.merge: // whose words are shards
	case o.validate:
		o.checkAlone()
	case o.schema && (len(o.paths) > 0 || o.explain):
		o.wrong("--schema stands alone")
	case !o.schema && len(o.paths) == 0:
		o.wrong("no scenario is named; for example: abate sim scenarios/checkout-outage.yaml")
	}
}

// checkAlone finds what --validate has no use for.
func (o *simOptions) checkAlone() {
	for name := range o.given {
		if name != "validate" && name != "quiet" {
			o.wrong("--validate stands alone, or with --quiet")
			return
		}
	}
	if len(o.paths) > 0 {
		o.wrong("--validate stands alone, or with --quiet")
	}
}

// settle decides which slow extras are made: what was asked for, else for a report margin and map, else for a single
// scenario margin and advice.
func (o *simOptions) settle(scenarios []*scenario.Scenario) {
	o.several = o.several || len(scenarios) > 1
	report := o.html != ""
	unless := func(name string, to *bool, otherwise bool) {
		if !o.given[name] {
			*to = otherwise && !o.fast
		}
	}
	unless("margin", &o.options.Margin, report || !o.several)
	unless("advice", &o.options.Advice, !o.several)
	unless("map", &o.options.Map, report)
	if report && o.several {
		o.checkReports(scenarios)
	}
}

// checkReports finds scenarios whose reports would have the same name.
func (o *simOptions) checkReports(scenarios []*scenario.Scenario) {
	first := map[string]string{}
	for _, s := range scenarios {
		name := reportName(s.File)
		if other, ok := first[name]; ok {
			o.wrong("--html: the reports of %s and %s would both be called %s; run them one after the other", other, s.File,
				name)
		}
		first[name] = s.File
	}
}

// checkVariants finds names that no scenario has.
func (o *simOptions) checkVariants(scenarios []*scenario.Scenario) {
	var known []string
	for _, s := range scenarios {
		for i := range s.Variants {
			if name := s.Variants[i].Name; !slices.Contains(known, name) {
				known = append(known, name)
			}
		}
	}
	for _, name := range o.variants {
		if !slices.Contains(known, name) {
			o.wrong("--variant: there is no variant %q; %s", name, cli.SuggestVariant(name, known))
		}
	}
}

// variantsOf returns the variants asked for that a scenario has, in its order; nil if none was asked for.
func (o *simOptions) variantsOf(s *scenario.Scenario) []string {
	if o.variants == nil {
		return nil
	}
	found := []string{}
	for i := range s.Variants {
		if slices.Contains(o.variants, s.Variants[i].Name) {
			found = append(found, s.Variants[i].Name)
		}
	}
	return found
}
