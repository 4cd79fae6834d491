package rehearse

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/sim/summary"
)

const scenarioText = `name: NAME
duration: 30s
clients:
  shop: {rate: 10, calls: [db]}
services:
  db: {workers: 1, serviceTime: 10ms}
faults:
  - {at: 10s, for: 5s, outage: db}
expect: [collapse < 50%]
variants:
  plain: {policy: {services: {db: {maxRetries: 0}}}}
  retrying: {policy: {services: {db: {maxRetries: 3}}}}
`

// scenarios writes scenario files into a new folder, which becomes the working one.
func scenarios(t *testing.T, files ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		writeFile(t, file, strings.Replace(scenarioText, "NAME", name, 1))
	}
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// recorder runs scenarios as told, and keeps what it was asked to run.
type recorder struct {
	verdicts map[string]string // by name; PASS for others
	stop     func()            // called in the middle of the first scenario
	names    []string
	options  []sim.Options
}

func (r *recorder) run(ctx context.Context, s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
	r.names, r.options = append(r.names, s.Name), append(r.options, o)
	if r.stop != nil {
		r.stop()
	}
	verdict := r.verdicts[s.Name]
	switch verdict {
	case "":
		verdict = "PASS"
	case "too large":
		return nil, errors.New(s.File + ": a run would need 100 GB of memory; lower rate or set scale")
	}
	o.Progress(sim.Progress{Variant: "plain", Stage: "runs", Done: 1, Of: 2})
	result := &sim.Result{Version: sim.Version, Name: s.Name, File: s.File, Seed: o.Seed, Scale: 1, Verdict: verdict,
		Interrupted: ctx.Err() != nil}
	for i := range s.Variants {
		if name := s.Variants[i].Name; o.Variants == nil || slices.Contains(o.Variants, name) {
			result.Variants = append(result.Variants, sim.VariantResult{Name: name, Runs: 40, Verdict: verdict,
				Expectations: []sim.ExpectationResult{
					{Text: "collapse < 50%", Verdict: verdict, Runs: 40, Held: 40, Held95: sim.Share{High: 0.1}},
				}})
		}
	}
	return result, nil
}

func (r *recorder) sim(t *testing.T, args string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = simulate(t.Context(), r.run, strings.Fields(args), &out, &errs)
	return code, out.String(), errs.String()
}

func TestSimTellsAllBadWordsAtOnceAndRunsNothing(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"", []string{"no scenario is named; for example: abate sim scenarios/checkout-outage.yaml"}},
		{"--colour a.yaml --x=7 -quick --seeds 0", []string{
			"--colour is not a flag", "--x is not a flag", "-quick is not a flag",
			`--seeds: "0" is not a whole number from 1 to 1000000`,
		}},
		{"a.yaml --seed -1 --seeds many --margin=maybe", []string{
			`--seed: "-1" is not a whole`, `--seeds: "many" is not`, `--margin: "maybe" is neither true nor false`,
		}},
		{"a.yaml --seed 0", []string{`--seed: "0" is not a whole number from 1 to 18446744073709551615`}},
		{"a.yaml --seeds 1000001 --seed", []string{`--seeds: "1000001" is not`, "--seed needs a value"}},
		{"--html - --junit - --json= --markdown --quiet a.yaml",
			[]string{"--html: only --json and --markdown can be", "--json needs the name of a file",
				"--junit: only --json and --markdown", `--markdown: "--quiet" looks like a flag; a file of that name is written ` +
					`./--quiet`}},
		{"--json a.yaml b.yaml", []string{`--json: "a.yaml" looks like a scenario, which would be overwritten`}},
		{"--json - --markdown - a.yaml", []string{"--json and --markdown would write the same file, -"}},
		{"--json x --junit ./x a.yaml", []string{"--json and --junit would write the same file, ./x"}},
		{"--schema a.yaml", []string{"--schema stands alone"}},
		{"--explain --json x a.yaml", []string{"--json: nothing is run, so there is nothing to write"}},
		{"missing.yaml a.yaml empty none", []string{
			"stat missing.yaml: no such file", "empty: there is no *.yaml file in this folder", "stat none: no such file",
		}},
		{"a.yaml --variant retryng --variant nothing-like-it",
			[]string{`--variant: there is no variant "retryng"; did you mean retrying?`,
				`--variant: there is no variant "nothing-like-it"; there are: plain, retrying`}},
		{"--html out a.yaml sub/a.yaml", []string{
			"--html: the reports of a.yaml and sub/a.yaml would both be called a.html",
		}},
		{"a.yaml --html out -- --quiet", []string{"stat --quiet: no such file"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			scenarios(t, "a.yaml", "b.yaml", "sub/a.yaml")
			writeFile(t, "empty/a.txt", "")
			var r recorder
			code, out, errs := r.sim(t, c.args)
			if code != 64 || out != "" || len(r.names) > 0 {
				t.Errorf("exit %d, %q on standard output, run %q", code, out, r.names)
			}
			for _, want := range c.want {
				if !strings.Contains(errs, "abate sim: "+want) {
					t.Errorf("lacks %q:\n%s", want, errs)
				}
			}
			if n := strings.Count(errs, "\n"); n != len(c.want)+1 {
				t.Errorf("%d lines, want one for each of %d mistakes and a last one:\n%s", n, len(c.want), errs)
			}
		})
	}
}

func TestSimTellsAllMistakesOfAllFilesAndRunsNothing(t *testing.T) {
	scenarios(t, "good.yaml")
	writeFile(t, "bad.yaml", "name: x\nduraton: 3s\nmodel: {hold: 1}\n")
	writeFile(t, "worse.yaml", "runs: many\n")
	var r recorder
	code, out, errs := r.sim(t, "good.yaml --seeds none worse.yaml bad.yaml")
	if code != 64 || out != "" || len(r.names) > 0 {
		t.Errorf("exit %d, %q, run %q", code, out, r.names)
	}
	for _, want := range []string{"\nbad.yaml:2:1: ", "\nbad.yaml:3:15: ", "\nworse.yaml:1:7: ", "abate sim: --seeds: ",
		"abate sim: nothing was run; "} {
		if !strings.Contains("\n"+errs, want) {
			t.Errorf("lacks %q:\n%s", want, errs)
		}
	}
}

func TestSimHelpKnowsEveryFlagAndFitsATerminal(t *testing.T) {
	var r recorder
	code, out, errs := r.sim(t, "a.yaml --colour -h")
	if code != 0 || out != simHelp || errs != "" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	for _, line := range strings.Split(simHelp, "\n") {
		if len(line) > 100 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	var o simOptions
	for _, name := range strings.Fields("html json junit markdown seeds seed variant margin advice map fast explain " +
		"schema quiet shard") {
		if o.define().Lookup(name) == nil || !strings.Contains(simHelp, "\n  --"+name+" ") {
			t.Errorf("--%s is not a flag, or the help does not explain it", name)
		}
	}
}

func TestSimExitCodeIsTheWorstVerdict(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"PASS", "PASS", 0}, {"NONE", "PASS", 0}, {"PASS", "FAIL", 1}, {"FAIL", "UNDECIDED", 1}, {"UNDECIDED", "PASS", 2},
		{"FAIL", "too large", 64}, {"too large", "PASS", 64},
	} {
		scenarios(t, "a.yaml", "b.yaml")
		r := recorder{verdicts: map[string]string{"a": c.a, "b": c.b}}
		code, out, errs := r.sim(t, "a.yaml b.yaml")
		if code != c.want || len(r.names) != 2 || out == "" {
			t.Errorf("%s and %s: exit %d, want %d; run %q", c.a, c.b, code, c.want, r.names)
		}
		if strings.Contains(errs, "100 GB") != (c.want == 64) {
			t.Errorf("%s and %s: %q", c.a, c.b, errs)
		}
	}
}

func TestSimTakesFlagsAnywhereAndPassesThemOn(t *testing.T) {
	scenarios(t, "a.yaml")
	var r recorder
	if code, _, errs := r.sim(t, "--seed 7 a.yaml -seeds=50 --variant retrying --variant retrying --quiet=false"); code !=
		0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	o := r.options[0]
	if o.Seed != 7 || o.Runs != 50 || !o.Exactly || !slices.Equal(o.Variants, []string{"retrying"}) {
		t.Errorf("options %+v", o)
	}
	r = recorder{}
	if code, _, errs := r.sim(t, "a.yaml"); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if o := r.options[0]; o.Seed != 1 || o.Runs != 0 || o.Exactly || o.Variants != nil {
		t.Errorf("options without flags %+v", o)
	}
}

func TestSimSlowExtras(t *testing.T) {
	for _, c := range []struct {
		args                string
		margin, advice, cli bool
	}{
		{"a.yaml", true, true, false},
		{"a.yaml --html x.html", true, true, true},
		{"a.yaml --html x.html --fast", false, false, false},
		{"a.yaml --fast --map", false, false, true},
		{"a.yaml --advice=false", true, false, false},
		{"a.yaml b.yaml", false, false, false},
		{".", false, false, false},
		{". --advice", false, true, false},
		{". --html out", true, false, true},
		{"sub", false, false, false},
	} {
		scenarios(t, "a.yaml", "b.yaml", "sub/a.yaml")
		var r recorder
		if code, _, errs := r.sim(t, c.args); code != 0 {
			t.Fatalf("%s: exit %d: %s", c.args, code, errs)
		}
		if o := r.options[0]; o.Margin != c.margin || o.Advice != c.advice || o.Map != c.cli {
			t.Errorf("%s: margin %t, advice %t, map %t", c.args, o.Margin, o.Advice, o.Map)
		}
	}
}

func TestSimPlaysAFolderInOrderAndEachFileOnce(t *testing.T) {
	scenarios(t, "d/b.yaml", "d/a.yaml", "d/sub/c.yaml", "x.yaml")
	writeFile(t, "d/notes.txt", "no scenario")
	writeFile(t, "d/old.yml", "no scenario")
	var r recorder
	code, out, errs := r.sim(t, "x.yaml d ./d/b.yaml x.yaml")
	if code != 0 || !slices.Equal(r.names, []string{"x", "a", "b"}) || errs != "" {
		t.Errorf("exit %d, run %q, %s", code, r.names, errs)
	}
	if !strings.Contains(out, "\n3 scenarios; variants: 6 passed\n") {
		t.Errorf("the overview:\n%s", out)
	}
}

func TestSimLeavesOutScenariosWithoutTheVariant(t *testing.T) {
	scenarios(t, "a.yaml", "b.yaml")
	writeFile(t, "b.yaml", strings.ReplaceAll(strings.Replace(scenarioText, "NAME", "b", 1), "retrying:", "other:"))
	var r recorder
	code, _, errs := r.sim(t, "--variant retrying b.yaml a.yaml")
	if code != 0 || !slices.Equal(r.names, []string{"a"}) ||
		!strings.Contains(errs, "b.yaml has none of the variants asked for; it is left out") {
		t.Errorf("exit %d, run %q, %s", code, r.names, errs)
	}
}

func TestSimWritesEveryFile(t *testing.T) {
	scenarios(t, "a.yaml", "b.yaml")
	var r recorder
	code, out, errs := r.sim(t, "a.yaml --html a.html --json a.json --junit a.xml --markdown a.md --quiet")
	if code != 0 || out != "PASS  expectations: 2 passed (exit code 0)\n" || errs != "" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	var one sim.Result
	var all struct{ Results []sim.Result }
	readJSON(t, "a.json", &one)
	if one.Name != "a" || len(one.Variants) != 2 {
		t.Errorf("a.json is %+v", one)
	}
	code, _, errs = r.sim(t, ". --html pages --json all.json --junit all.xml --markdown all.md")
	readJSON(t, "all.json", &all)
	if code != 0 || len(all.Results) != 2 {
		t.Errorf("exit %d, %s; %d results", code, errs, len(all.Results))
	}
	for file, want := range map[string]string{"a.html": "<!doctype html>", "pages/a.html": "<!doctype html>",
		"pages/b.html": "<!doctype html>",
		"a.md":         "**✅ abate sim: pass**", "all.md": "**✅ abate sim: pass**", "a.xml": "<?xml ", "all.xml": "<?xml "} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(strings.ToLower(string(text)), want) {
			t.Errorf("%s: %v, begins %.40q", file, err, text)
		}
	}
	text, _ := os.ReadFile("all.xml")
	if err := xml.Unmarshal(text, new(struct{})); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(".*.tmp")
	if err != nil || len(files) > 0 {
		t.Errorf("left behind: %v %q", err, files)
	}
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSimGivesStandardOutputToTheProgramThatReadsIt(t *testing.T) {
	scenarios(t, "a.yaml")
	var r recorder
	if code, out, _ := r.sim(t, "a.yaml --json -"); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, out, _ := r.sim(t, "a.yaml --markdown -"); code != 0 || strings.Count(out, "\n") != 5 {
		t.Errorf("exit %d, %s", code, out)
	}
}

func TestSimFindsOutputsThatCannotBeWrittenBeforeItRuns(t *testing.T) {
	scenarios(t, "a.yaml", "b.yaml")
	writeFile(t, "d/x.txt", "")
	for _, c := range []struct {
		args string
		want []string
	}{
		{"a.yaml --json no/a.json --junit d", []string{
			"--json no/a.json: there is no folder no; make it first", "--junit d: this is a folder; name a file in it",
		}},
		{"a.yaml --html d", []string{"--html d: this is a folder"}},
		{"a.yaml b.yaml --html d/x.txt", []string{"--html d/x.txt: a folder is needed"}},
		{"a.yaml --json d/x.txt/a.json", []string{"--json: stat d/x.txt/a.json: not a directory"}},
	} {
		var r recorder
		code, out, errs := r.sim(t, c.args)
		if code != 74 || out != "" || len(r.names) > 0 {
			t.Errorf("%s: exit %d, %q, run %q", c.args, code, out, r.names)
		}
		for _, want := range c.want {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: lacks %q: %s", c.args, want, errs)
			}
		}
	}
}

// broken is a terminal that went away.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestSimSaysWhenOutputFails(t *testing.T) {
	scenarios(t, "a.yaml")
	for _, args := range []string{"a.yaml", "a.yaml --json -", "a.yaml --quiet", "a.yaml --explain", "-h", "--schema"} {
		var r recorder
		var errs bytes.Buffer
		if code := simulate(t.Context(), r.run, strings.Fields(args), broken{}, &errs); code != 74 ||
			!strings.Contains(errs.String(), os.ErrClosed.Error()) {
			t.Errorf("%s: exit %d, %s", args, code, errs.String())
		}
	}
}

func TestSimGoesOnWithTheOtherFilesWhenOneCannotBeWritten(t *testing.T) {
	scenarios(t, "a.yaml")
	r := recorder{stop: func() {
		if err := errors.Join(os.Mkdir("a.xml", 0o700), os.Mkdir("a.html", 0o700)); err != nil { // in the way since the check
			t.Error(err)
		}
	}}
	code, _, errs := r.sim(t, "a.yaml --html a.html --junit a.xml --json a.json")
	if code != 74 || !strings.Contains(errs, "--html a.html was not written: ") ||
		!strings.Contains(errs, "--junit a.xml was not written: ") {
		t.Errorf("exit %d, %s", code, errs)
	}
	readJSON(t, "a.json", new(sim.Result))
}

func TestAFileIsReplacedWholeAndKeepsItsModeAndLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "real.json", "before")
	if err := errors.Join(os.Chmod("real.json", 0o640), os.Symlink("real.json", "link.json")); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat("real.json")
	if err := cli.ReplaceFile("link.json", []byte("after")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("real.json")
	link, linkErr := os.Lstat("link.json")
	after, statErr := os.Stat("real.json")
	if err := errors.Join(err, linkErr, statErr); err != nil {
		t.Fatal(err)
	}
	if string(text) != "after" || link.Mode()&os.ModeSymlink == 0 || after.Mode() != 0o640 {
		t.Errorf("%q, link %v, mode %v", text, link.Mode(), after.Mode())
	}
	if os.SameFile(before, after) {
		t.Error("written in place: a reader could see half of it")
	}
}

func TestOutputIntoAPipeGoesThroughIt(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = errors.Join(cli.ReplaceFile(fmt.Sprintf("/dev/fd/%d", w.Fd()), []byte("text")), w.Close())
	text, readErr := io.ReadAll(r)
	if err := errors.Join(err, readErr); err != nil || string(text) != "text" {
		t.Errorf("%v, %q", err, text)
	}
}

func TestSimInterruptedBeforeItsFirstRunKnowsNothing(t *testing.T) {
	scenarios(t, "a.yaml")
	ctx, interrupt := context.WithCancel(t.Context())
	run := func(ctx context.Context, _ *scenario.Scenario, _ sim.Options) (*sim.Result, error) {
		interrupt()
		return nil, context.Cause(ctx)
	}
	var out, errs bytes.Buffer
	code := simulate(ctx, run, strings.Fields("a.yaml --json a.json"), &out, &errs)
	if code != 130 || out.Len() > 0 || errs.String() != "abate sim: stopped; nothing is known of a.yaml\n" {
		t.Errorf("exit %d, %q, %q", code, out.String(), errs.String())
	}
	if _, err := os.Stat("a.json"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file of nothing was written: %v", err)
	}
}

func FuzzSimWords(f *testing.F) {
	f.Add("--html x a.yaml --seeds 3 -- --json")
	f.Add("-=  --variant=  --seed -1 --- -h")
	f.Fuzz(func(t *testing.T, words string) {
		o, err := parseSim(strings.Split(words, " "))
		if err != nil && !errors.Is(err, flag.ErrHelp) {
			t.Fatal(err)
		}
		for _, p := range o.problems {
			if !strings.HasPrefix(p, "abate sim: ") {
				t.Errorf("%q", p)
			}
		}
		if err == nil && len(o.problems) == 0 && !o.schema && len(o.paths) == 0 {
			t.Error("nothing to do and nothing to say")
		}
	})
}

func TestInterruptedSimPrintsWhatIsKnown(t *testing.T) {
	scenarios(t, "a.yaml", "b.yaml", "c.yaml")
	ctx, interrupt := context.WithCancel(t.Context())
	r := recorder{stop: interrupt}
	var out, errs bytes.Buffer
	code := simulate(ctx, r.run, strings.Fields("a.yaml b.yaml c.yaml --json all.json"), &out, &errs)
	if code != summary.ExitInterrupted || len(r.names) != 1 ||
		!strings.Contains(errs.String(), "stopped; nothing is known of b.yaml, c.yaml") {
		t.Errorf("exit %d, run %q, %s", code, r.names, errs.String())
	}
	if !strings.Contains(out.String(), "stopped before the end") {
		t.Errorf("standard output:\n%s", out.String())
	}
	var all struct{ Results []sim.Result }
	readJSON(t, "all.json", &all)
	if len(all.Results) != 1 || !all.Results[0].Interrupted {
		t.Errorf("%+v", all)
	}
}

func TestSimExplainsWithoutRunning(t *testing.T) {
	scenarios(t, "a.yaml")
	var r recorder
	code, out, errs := r.sim(t, "a.yaml --explain --variant retrying")
	if code != 0 || errs != "" || len(r.names) > 0 {
		t.Fatalf("exit %d, %s, run %q", code, errs, r.names)
	}
	for _, want := range []string{"Variant retrying", "policy of shop -> db:", "maxRetries: 3", "a run is about ",
		"Not modelled", "amplification(service"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "Variant plain") {
		t.Error("explains a variant that nobody asked for")
	}
}

func TestSimPrintsTheSchema(t *testing.T) {
	var r recorder
	if code, out, errs := r.sim(t, "--schema"); code != 0 || errs != "" || out != string(scenario.Schema()) ||
		!json.Valid([]byte(out)) {
		t.Errorf("exit %d, %s, %s", code, out, errs)
	}
}

func TestSimPlaysAScenarioToTheSameBytes(t *testing.T) {
	scenarios(t, "a.yaml")
	args := strings.Fields("a.yaml --seeds 20 --fast --json -")
	var first string
	for _, processors := range []int{1, 3} {
		before := runtime.GOMAXPROCS(processors)
		var out, errs bytes.Buffer
		code := SimCommand(t.Context(), args, &out, &errs)
		runtime.GOMAXPROCS(before)
		if code != 0 || errs.Len() > 0 {
			t.Fatalf("exit %d, %s", code, errs.String())
		}
		if first == "" {
			first = out.String()
		}
		if out.String() != first {
			t.Errorf("with %d processors another result", processors)
		}
	}
	var result sim.Result
	if err := json.Unmarshal([]byte(first), &result); err != nil || result.Verdict != sim.Pass ||
		result.Variants[1].Runs != 20 {
		t.Errorf("%v, %s", err, first)
	}
}

func TestSimProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Time{}
	p := &simProgress{Live: cli.NewLive(&out), now: func() time.Time { return now }}
	show := p.of("scenarios/a.yaml", 2, 3)
	for range 11 {
		now = now.Add(time.Second)
		show(sim.Progress{Variant: "plain", Stage: "runs", Done: int(now.Sub(time.Time{}) / time.Second), Of: 40,
			Events: 1e7})
	}
	p.End("")
	want := "a.yaml (2 of 3)  plain: runs 5 of 40 after 5 s\na.yaml (2 of 3)  plain: runs 10 of 40 after 10 s\n"
	if out.String() != want {
		t.Errorf("in a log:\n%s\nwant:\n%s", out.String(), want)
	}
	out.Reset()
	p.Terminal = true
	now = now.Add(time.Second)
	show(sim.Progress{Variant: strings.Repeat("long", 50), Stage: "runs", Done: 10, Of: 40, Events: 24e6})
	show(sim.Progress{Done: 11})
	now = now.Add(time.Second)
	show(sim.Progress{Done: 7, Of: 0})
	p.End("")
	p.End("")
	lines := strings.Split(strings.NewReplacer("\x1b[?7l", "", "\x1b[?7h", "").Replace(out.String()), "\r")
	if strings.Contains(out.String(), "\n") || len(lines) != 4 ||
		!strings.HasPrefix(lines[1], "████░░░░░░░░░░░░ 10 of 40  12 s  2.0 M events/s  runs  a.yaml (2 of 3): long") {
		t.Errorf("on a terminal: %q", out.String())
	}
	for _, line := range lines {
		if n := len([]rune(strings.TrimSuffix(line, "\x1b[K"))); n > 79 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	out.Reset()
	p.quiet = true
	now = now.Add(time.Hour)
	show(sim.Progress{})
	if p.End(""); out.Len() > 0 {
		t.Errorf("quiet: %q", out.String())
	}
}
