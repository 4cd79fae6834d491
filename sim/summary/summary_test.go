package summary_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/summary"
)

var update = flag.Bool("update", false, "write the golden files anew")

var inputs = map[string]func() *sim.Result{
	"checkout": checkout, "extras": extras, "bare": bare, "interrupted": interrupted, "hostile": hostile,
}

// forms are all the forms that a result, or several, can be written in.
var forms = map[string]func(w io.Writer, r *sim.Result) error{
	"txt": func(w io.Writer, r *sim.Result) error { return summary.Text(w, r, summary.Options{}) },
	"over.txt": func(w io.Writer, r *sim.Result) error {
		return summary.Overview(w, []*sim.Result{r}, summary.Options{})
	},
	"md":  func(w io.Writer, r *sim.Result) error { return summary.Markdown(w, []*sim.Result{r}) },
	"xml": func(w io.Writer, r *sim.Result) error { return summary.JUnit(w, []*sim.Result{r}) },
}

func write(t *testing.T, form func(io.Writer, *sim.Result) error, r *sim.Result) string {
	t.Helper()
	var out bytes.Buffer
	if err := form(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (go test -update writes it anew):\n%s\nwant:\n%s", name, got, want)
	}
}

func TestEveryFormIsAsInItsGoldenFile(t *testing.T) {
	for name, input := range inputs {
		for ext, form := range forms {
			golden(t, name+"."+ext, write(t, form, input()))
		}
	}
	var several bytes.Buffer
	all := []*sim.Result{checkout(), extras(), bare()}
	if err := errors.Join(summary.Overview(&several, all, summary.Options{}), summary.Markdown(&several, all)); err !=
		nil {
		t.Fatal(err)
	}
	golden(t, "several.txt", several.String())
	small := bare()
	small.Variants[0].Expectations = checkout().Variants[0].Expectations
	golden(t, "small.json", write(t, summary.JSON, small))
}

func TestTheSameResultGivesTheSameBytes(t *testing.T) {
	for name, input := range inputs {
		for ext, form := range forms {
			first := write(t, form, input())
			for range 20 {
				if again := write(t, form, input()); again != first {
					t.Fatalf("%s.%s differs from one time to the next", name, ext)
				}
			}
		}
	}
}

func TestTextFitsATerminalAndHoldsNoControlCharacters(t *testing.T) {
	wide := checkout()
	for len(wide.Variants) < 12 {
		wide.Variants = append(wide.Variants, wide.Variants...)
	}
	wide.Name = strings.Repeat("very-long-name-without-spaces", 10)
	wide.Variants[0].Name = wide.Name
	wide.Variants[0].Expectations[0].Text = "latency(p99.9, " + wide.Name + ", after) < 800ms in 99% of runs"
	wide.Variants[0].Advice = []sim.Advice{{Change: wide.Name}}
	results := map[string]*sim.Result{"wide": wide}
	for name, input := range inputs {
		results[name] = input()
	}
	for name, r := range results {
		for _, ext := range []string{"txt", "over.txt"} {
			for line := range strings.Lines(write(t, forms[ext], r)) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > 100 {
					t.Errorf("%s.%s: %d columns: %s", name, ext, n, line)
				}
				if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("%s.%s: not printable: %q", name, ext, line)
				}
				if strings.HasSuffix(line, " ") || strings.Contains(line, "NaN") || strings.Contains(line, "Inf") {
					t.Errorf("%s.%s: %q", name, ext, line)
				}
			}
		}
	}
}

func TestEveryVariantIsInTheTableWhenThereAreMany(t *testing.T) {
	r := checkout()
	for _, name := range strings.Fields("alpha bravo charlie delta echo foxtrot golf hotel") {
		r.Variants = append(r.Variants, variant(name, "PASS", 40, 40, 0, 1))
	}
	table, _, _ := strings.Cut(write(t, forms["txt"], r), "\nunguarded: 3 retries\n")
	for i := range r.Variants {
		if n := strings.Count(table, " "+r.Variants[i].Name); n != 1 {
			t.Errorf("%s stands %d times in the table:\n%s", r.Variants[i].Name, n, table)
		}
	}
	if strings.Count(table, "\nverdict ") < 2 {
		t.Errorf("a table of %d variants in one block:\n%s", len(r.Variants), table)
	}
}

func TestColourAddsEscapesAndNothingElse(t *testing.T) {
	var plain, coloured bytes.Buffer
	if err := errors.Join(summary.Text(&plain, checkout(), summary.Options{}),
		summary.Text(&coloured, checkout(), summary.Options{Color: true})); err != nil {
		t.Fatal(err)
	}
	text := coloured.String()
	for _, code := range []string{"\x1b[32m", "\x1b[1;31m", "\x1b[33m"} {
		if !strings.Contains(text, code) {
			t.Errorf("no %q", code)
		}
		text = strings.ReplaceAll(text, code, "")
	}
	if text = strings.ReplaceAll(text, "\x1b[0m", ""); text != plain.String() {
		t.Errorf("without its colours:\n%s\nwant:\n%s", text, plain.String())
	}
}

func TestNobodyIsPaintedByTheirName(t *testing.T) {
	r := bare()
	r.Variants[0].Name = "PASS"
	var out bytes.Buffer
	if err := summary.Text(&out, r, summary.Options{Color: true}); err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v\n%q", err, out.String())
	}
}

func TestExitCodeIsTheWorst(t *testing.T) {
	of := func(verdicts ...string) (list []*sim.Result) {
		for _, v := range verdicts {
			list = append(list, &sim.Result{Verdict: v, Interrupted: v == "stopped"})
		}
		return list
	}
	for _, c := range []struct {
		results []*sim.Result
		want    int
	}{
		{nil, 0}, {of("NONE"), 0}, {of("PASS", "NONE"), 0}, {of("PASS", "UNDECIDED"), 2}, {of("UNDECIDED", "PASS"), 2},
		{of("FAIL", "UNDECIDED", "PASS"), 1}, {of("UNDECIDED", "FAIL"), 1}, {of("FAIL", "stopped"), 130},
		{of("stopped", "FAIL"), 130},
	} {
		if got := summary.ExitCode(c.results); got != c.want {
			t.Errorf("%d results: exit code %d, want %d", len(c.results), got, c.want)
		}
	}
}

func TestRecoveryCountsRunsThatNeverRecovered(t *testing.T) {
	for _, c := range []struct {
		recovered int
		want      string
	}{
		{0, "never / never"}, {49, "never / never"}, {50, "12 s / never"}, {98, "7.1 s / never"}, {99, "7 s / 12 s"},
		{100, "6.9 s / 11.9 s"},
	} {
		r := checkout()
		r.Variants = []sim.VariantResult{variant("v", "FAIL", 100, c.recovered, 0, 1)}
		if text := write(t, forms["txt"], r); !strings.Contains(text, c.want+"\n") {
			t.Errorf("%d of 100 recovered, want %q:\n%s", c.recovered, c.want, text)
		}
	}
}

func TestUndecidedSaysHowManyRunsWouldDecide(t *testing.T) {
	for _, c := range []struct {
		text       string
		runs, held int
		want       string
	}{
		{"collapse < 1%", 100, 100, "about 290 more runs would decide if the share stays (--seeds 390)"},
		{"goodput(after) > 95%", 8, 8, "about 27 more runs would decide if the share stays (--seeds 35)"},
		{"goodput(after) > 95% in 50% of runs", 100, 50, "too close to decide by more runs"},
		{"what nobody can read", 100, 50, "too close to decide by more runs"},
	} {
		r := bare()
		r.Variants[0].Expectations = []sim.ExpectationResult{{Text: c.text, Verdict: "UNDECIDED", Runs: c.runs, Held: c.held}}
		got := strings.Join(strings.Fields(write(t, forms["txt"], r)), " ")
		if !strings.Contains(got, c.want) {
			t.Errorf("%s, held in %d of %d, want %q:\n%s", c.text, c.held, c.runs, c.want, got)
		}
	}
}

func TestMarkdownIsFiveLinesWhateverTheNames(t *testing.T) {
	for name, input := range inputs {
		for _, results := range [][]*sim.Result{{input()}, {input(), checkout(), input()}} {
			var out bytes.Buffer
			if err := summary.Markdown(&out, results); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(out.String(), "\n"); n != 5 {
				t.Errorf("%s: %d lines:\n%s", name, n, out.String())
			}
			for line := range strings.Lines(out.String()) {
				if bad := outsideCode(line); strings.ContainsAny(bad, "<>@#|[]&_~\\") {
					t.Errorf("%s: markup outside of code: %q in %q", name, bad, line)
				}
			}
		}
	}
}

// outsideCode is a line of Markdown without its code spans, as CommonMark finds them.
func outsideCode(line string) string {
	var out strings.Builder
	for len(line) > 0 {
		i := strings.IndexByte(line, '`')
		if i < 0 {
			return out.String() + line
		}
		out.WriteString(line[:i])
		line = line[i:]
		fence := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		rest := line[len(fence):]
		end := closing(rest, fence)
		if end < 0 {
			out.WriteString(fence)
			line = rest
			continue
		}
		line = rest[end+len(fence):]
	}
	return out.String()
}

// closing is where a row of exactly as many backticks stands, -1 without one.
func closing(text, fence string) int {
	for i := 0; i < len(text); {
		if text[i] != '`' {
			i++
			continue
		}
		n := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
		if n == len(fence) {
			return i
		}
		i += n
	}
	return -1
}

func TestJUnitIsWellFormedAndCountsRight(t *testing.T) {
	type counts struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
	}
	var all []*sim.Result
	for _, input := range inputs {
		all = append(all, input())
	}
	var out bytes.Buffer
	if err := summary.JUnit(&out, all); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		counts
		Suites []struct {
			counts
			Cases []struct {
				Class   string    `xml:"classname,attr"`
				Failure *struct{} `xml:"failure"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if len(doc.Suites) != len(all) {
		t.Errorf("%d suites, want %d", len(doc.Suites), len(all))
	}
	var sum counts
	for _, s := range doc.Suites {
		var c counts
		for _, k := range s.Cases {
			c.Tests++
			if k.Failure != nil {
				c.Failures++
			}
			if k.Skipped != nil {
				c.Skipped++
			}
		}
		if c != s.counts {
			t.Errorf("a suite says %+v and has %+v", s.counts, c)
		}
		sum = counts{sum.Tests + c.Tests, sum.Failures + c.Failures, sum.Skipped + c.Skipped}
	}
	if sum != doc.counts || sum.Failures == 0 || sum.Skipped == 0 {
		t.Errorf("in all %+v, said %+v", sum, doc.counts)
	}
}

func TestJSONIsTheResultAndNothingIfItCannotBe(t *testing.T) {
	var back sim.Result
	text := write(t, summary.JSON, checkout())
	if err := json.Unmarshal([]byte(text), &back); err != nil || back.Name != "checkout outage" ||
		len(back.Variants) != 3 {
		t.Errorf("%v, %+v", err, back)
	}
	if again := write(t, summary.JSON, &back); again != text {
		t.Error("read and written again it is another text")
	}
	var out bytes.Buffer
	if err := summary.JSONList(&out, []*sim.Result{checkout(), bare()}); err != nil {
		t.Fatal(err)
	}
	var list struct {
		Version int
		Results []sim.Result
	}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || list.Version != sim.Version || len(list.Results) != 2 {
		t.Errorf("%v, version %d, %d results", err, list.Version, len(list.Results))
	}
	out.Reset()
	broken := bare()
	broken.Seconds = math.NaN()
	if err := summary.JSON(&out, broken); err == nil || out.Len() > 0 {
		t.Errorf("NaN: error %v, %d bytes", err, out.Len())
	}
	if err := summary.JSONList(&out, nil); err != nil || !strings.Contains(out.String(), `"results": []`) {
		t.Errorf("no results: %v, %s", err, out.String())
	}
}

// failing is a disk that is full.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestAWriteThatFailsIsReported(t *testing.T) {
	all := map[string]func(io.Writer, *sim.Result) error{"json": summary.JSON}
	for ext, form := range forms {
		all[ext] = form
	}
	for ext, form := range all {
		if err := form(failing{}, checkout()); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: error %v", ext, err)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("checkout", "guarded", "collapse < 1%", uint64(0))
	f.Add("`a` **b**\n# c", "<b>\x1b[2J", "recovery < ", math.Float64bits(math.NaN()))
	f.Fuzz(func(t *testing.T, name, variant, text string, number uint64) {
		r := checkout()
		v := &r.Variants[1]
		r.Name, r.About, v.Name, v.Expectations[0].Text = name, name, variant, text
		v.Expectations[0].Value.P50 = at(math.Float64frombits(number))
		v.Run.Goodput[0], r.TroubleFrom = math.Float64frombits(number), math.Float64frombits(number)
		for line := range strings.Lines(write(t, forms["txt"], r)) {
			if utf8.RuneCountInString(line) > 101 || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) {
				t.Errorf("text: %q", line)
			}
		}
		if md := write(t, forms["md"], r); strings.Count(md, "\n") != 5 {
			t.Errorf("markdown: %q", md)
		}
		if err := xml.Unmarshal([]byte(write(t, forms["xml"], r)), new(struct{})); err != nil {
			t.Error(err)
		}
		write(t, forms["over.txt"], r)
	})
}
