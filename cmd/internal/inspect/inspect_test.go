package inspect_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/cmd/internal/inspect"
)

const calls = `calls:
- from: shop
  to: orders
  layers:
  - {kind: client, product: library, perTry: 10s, overall: 60s, repeats: [{on: ["503"], tries: 4}]}
  - {kind: gateway, product: envoy, perTry: 1s, overall: 5s, repeats: [{on: ["503"], tries: 4}]}
`

func run(command cli.Run, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = command(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnAuditFailsOnErrorsAndSaysWhichLine(t *testing.T) {
	path := write(t, "calls.yaml", calls)
	code, out, errs := run(inspect.AuditCommand, path)
	if code != 1 || errs != "" || !strings.Contains(out, "can become 16 attempts at orders") ||
		!strings.Contains(out, "calls.yaml:6:") {
		t.Errorf("exit code %d, %q\n%s", code, errs, out)
	}
	for _, args := range [][]string{{"--fail-on", "never", path}, {"--max-amplification", "99", "--fail-on=never", path},
		{"--list", path}, {"-h"}, {"--explain", "f101"}} {
		if code, out, errs := run(inspect.AuditCommand, args...); code != 0 || errs != "" || out == "" {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out, errs)
		}
	}
}

func TestWrongWordsAreAllNamed(t *testing.T) {
	code, out, errs := run(inspect.AuditCommand, "--fail-on", "sometimes", "--asume", "x", "--assume", "istio",
		"--assume=app=guess", "--assume=nginy=1", "--assume=istio=abc", "--assume=implementation=x", "--outage", "1ms",
		"--write-baseline", "--fix=all")
	for _, want := range []string{`"sometimes" is no severity`, "--asume is not a flag", `"istio" is no assumption`,
		"app=guess", "did you mean nginx?",
		`"abc" is no version`, "implementation=x is not known", "is too short; write at least 1s",
		"--write-baseline needs --baseline", "allowed: --fix, --fix=write",
		"no path is named", "nothing was read"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in\n%s", want, errs)
		}
	}
	if code != 2 || out != "" {
		t.Errorf("exit code %d, %q", code, out)
	}
	if code, _, errs := run(inspect.AuditCommand, "--explain", "F999"); code != 2 || !strings.Contains(errs, "F101") {
		t.Errorf("--explain of no rule: %d, %s", code, errs)
	}
	if code, out, errs := run(inspect.AuditCommand, filepath.Join(t.TempDir(), "none")); code != 2 || out != "" ||
		!strings.HasSuffix(errs, "none: there is no such file or folder\n") || strings.Count(errs, "\n") != 1 {
		t.Errorf("a path that is not there: %d, %s, %s", code, out, errs)
	}
}

func TestAFolderWithoutConfigurationIsNoSuccess(t *testing.T) {
	code, _, errs := run(inspect.AuditCommand, t.TempDir())
	if code != 2 || !strings.Contains(errs, "none of these files is of a kind that is read") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	// What could only be noted was not read either: a build must not take that for a system without retries.
	utf16 := "\xff\xfe" + strings.Join(strings.Split("apiVersion:", ""), "\x00") + "\x00"
	code, _, errs = run(inspect.AuditCommand, write(t, "shop.yaml", utf16))
	if code != 2 || !strings.Contains(errs, "none of these files is of a kind that is read") {
		t.Errorf("a file in UTF-16: exit code %d, %s", code, errs)
	}
	code, out, _ := run(inspect.AuditCommand, write(t, "calls.yaml", strings.Replace(calls, "client", "cleint", 1)))
	if code != 1 || !strings.Contains(out, "error F606") || !strings.Contains(out, "could not be read") {
		t.Errorf("a slip in the file of calls: exit code %d\n%s", code, out)
	}
}

func TestAFixThatIsWrittenNamesTheFiles(t *testing.T) {
	path := write(t, "calls.yaml", calls)
	_, _, errs := run(inspect.AuditCommand, "--fix=write", path)
	if !strings.Contains(errs, "changed: "+path+"; what is said above is from before") {
		t.Errorf("nothing says what was written: %q", errs)
	}
	if _, _, errs = run(inspect.AuditCommand, "--fix=write", path); strings.Contains(errs, "changed:") {
		t.Errorf("nothing is left to change, and it says: %s", errs)
	}
}

func TestNoFindingFailsAJUnitReportOfAnAuditThatNeverFails(t *testing.T) {
	_, out, _ := run(inspect.AuditCommand, "--fail-on", "never", "--junit", "-", write(t, "calls.yaml", calls))
	if !strings.Contains(out, `failures="0"`) || strings.Contains(out, "<failure") {
		t.Errorf("%s", out)
	}
}

func TestAFixIsWrittenOnlyWhenItIsAskedFor(t *testing.T) {
	path := write(t, "calls.yaml", calls)
	_, out, _ := run(inspect.AuditCommand, "--fix", path)
	if data, err := os.ReadFile(path); err != nil || string(data) != calls || !strings.Contains(out, "\n-  - {kind") {
		t.Errorf("%v\n%s", err, out)
	}
	if code, _, errs := run(inspect.AuditCommand, "--fix=write", "--quiet", "--fail-on=never", path); code != 0 {
		t.Errorf("exit code %d, %s", code, errs)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Count(string(data), "tries: 4") != 1 || strings.Count(string(data), "tries: 1}") != 1 {
		t.Errorf("%v\n%s", err, data)
	}
	if code, out, _ := run(inspect.AuditCommand, path); code != 0 {
		t.Errorf("what was fixed still fails:\n%s", out)
	}
}

func TestABaselineIsWrittenAndRead(t *testing.T) {
	path, base := write(t, "calls.yaml", calls), filepath.Join(t.TempDir(), "base.json")
	if code, _, errs := run(inspect.AuditCommand, "--baseline", base, path); code != 2 || errs == "" {
		t.Errorf("a baseline that is not there: %d, %s", code, errs)
	}
	if code, _, errs := run(inspect.AuditCommand, "--baseline", base, "--write-baseline", path); code != 0 ||
		!strings.Contains(errs, base+" accepts") {
		t.Errorf("the first baseline: %d, %s", code, errs)
	}
	if code, out, errs := run(inspect.AuditCommand, "--baseline", base, path); code != 0 || errs != "" {
		t.Errorf("exit code %d, %s\n%s", code, errs, out)
	}
}

// What was accepted of a path that cannot be read now is not forgotten.
func TestABaselineOfLessThanAllIsNotWritten(t *testing.T) {
	path, base := write(t, "calls.yaml", calls), filepath.Join(t.TempDir(), "base.json")
	run(inspect.AuditCommand, "--baseline", base, "--write-baseline", path)
	before, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	other, gone := write(t, "policy.yaml", policy), filepath.Join(t.TempDir(), "gone.yaml")
	code, _, errs := run(inspect.AuditCommand, "--baseline", base, "--write-baseline", other, gone)
	if code != 2 || !strings.Contains(errs, base+" was not written") {
		t.Errorf("%d, %s", code, errs)
	}
	if after, err := os.ReadFile(base); string(after) != string(before) {
		t.Errorf("%v, the baseline is now %s", err, after)
	}
	code, _, errs = run(inspect.AuditCommand, "--baseline", base, "--write-baseline", "--list", path)
	if code != 2 || !strings.Contains(errs, "--list") {
		t.Errorf("with --list: %d, %s", code, errs)
	}
}

func TestOutputsGoToFilesOrTakeThePlaceOfTheText(t *testing.T) {
	path, page := write(t, "calls.yaml", calls), filepath.Join(t.TempDir(), "page.html")
	_, out, errs := run(inspect.AuditCommand, "--json", "-", "--html", page, path)
	data, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(data), "<svg") || !strings.HasPrefix(out, "{") || errs != "" {
		t.Errorf("%v, %s, %.80q", err, errs, out)
	}
	if code, _, errs := run(inspect.AuditCommand, "--sarif", filepath.Join(page, "x"), path); code != 2 ||
		!strings.Contains(errs, "--sarif") {
		t.Errorf("a file that cannot be written: %d, %s", code, errs)
	}
}

const policy = "services:\n  orders:\n    maxRetries: 2\n    attemptTimeout: 1s\n    retryOn: [gateway-error]\n"

func TestExportAndImportSayWhatIsLost(t *testing.T) {
	path, loss := write(t, "policy.yaml", policy), filepath.Join(t.TempDir(), "loss.json")
	export := inspect.Exports(nil)
	code, out, errs := run(export, "istio", "-c", path)
	if code != 0 || !strings.Contains(out, "kind: VirtualService") || !strings.Contains(errs, "settings exact") {
		t.Errorf("exit code %d, %s\n%s", code, errs, out)
	}
	code, _, errs = run(export, "nginx", "-c", path, "--loss", loss, "--fail-on-loss")
	if data, err := os.ReadFile(loss); code != 1 || errs != "" || err != nil || !strings.Contains(string(data),
		`"dropped"`) {
		t.Errorf("exit code %d, %s, %v, %s", code, errs, err, data)
	}
	code, _, errs = run(export, "istio", "-c", path, "--strict")
	if first, _, _ := strings.Cut(errs, "\n"); code != 1 || !strings.HasPrefix(first, "warning: istio repeats POST") ||
		!strings.Contains(errs, "    as exported: ") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	code, _, errs = run(export, "envoy", "-c", path, "--strict", "--no-cost")
	if code != 0 || strings.Contains(errs, "warning") || strings.Contains(errs, "as exported") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if code, _, errs := run(export, "envoy", "extra"); code != 2 || !strings.Contains(errs, "-c FILE is missing") ||
		!strings.Contains(errs, `"extra" is one word too many`) {
		t.Errorf("exit code %d, %s", code, errs)
	}
	code, out, errs = run(inspect.ImportCommand, write(t, "calls.yaml", calls))
	if code != 0 || !strings.Contains(out, "maxRetries: 3") || !strings.Contains(errs, "still repeats the same calls") {
		t.Errorf("exit code %d, %s\n%s", code, errs, out)
	}
	if code, _, errs := run(inspect.ImportCommand); code != 2 || !strings.Contains(errs, "no path is named") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

func TestAnExportThatIsInterruptedSaysSoAndWritesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	place := filepath.Join(t.TempDir(), "vs.yaml")
	var out, errs strings.Builder
	code := inspect.Exports(nil)(ctx, []string{"istio", "-c", write(t, "policy.yaml", policy), "-o", place}, &out, &errs)
	if _, err := os.Stat(place); code != 130 || !os.IsNotExist(err) || out.Len() > 0 ||
		!strings.Contains(errs.String(), "abate export istio: interrupted; nothing was written") {
		t.Errorf("exit code %d, %v, %s%s", code, err, &errs, &out)
	}
}

// interrupting is a context that is done as soon as somebody waits for it a number of times: each waits in one step.
type interrupting struct {
	context.Context
	cancel context.CancelFunc
	left   int
}

func (c *interrupting) Done() <-chan struct{} {
	if c.left--; c.left <= 0 {
		c.cancel()
	}
	return c.Context.Done()
}

// Steps that only compute do not look whether they are to stop, and may take seconds.
func TestAnAuditIsInterruptedInEachStep(t *testing.T) {
	for step, want := range map[int]string{1: "interrupted; nothing was judged.",
		2: "interrupted; what was known by then is printed."} {
		path := write(t, "calls.yaml", calls)
		inner, cancel := context.WithCancel(t.Context())
		var out, errs strings.Builder
		code := inspect.AuditCommand(&interrupting{inner, cancel, step}, []string{"--fix=write", path}, &out, &errs)
		if data, err := os.ReadFile(path); code != 130 || err != nil || string(data) != calls ||
			!strings.HasSuffix(errs.String(), want+"\n") || (out.Len() > 0) != (step > 1) {
			t.Errorf("step %d: exit code %d, %v, %s%s\n%s", step, code, err, &errs, &out, data)
		}
		cancel()
	}
	inner, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs strings.Builder
	code := inspect.ImportCommand(&interrupting{inner, cancel, 1}, []string{write(t, "calls.yaml", calls)}, &out, &errs)
	if code != 130 || errs.String() != "abate import: interrupted; nothing was written.\n" || out.Len() > 0 {
		t.Errorf("exit code %d, %s%s", code, &errs, &out)
	}
}

// What is no number would switch the rule off, or keep the simulator busy for ever.
func TestWhatIsNoNumberIsRefused(t *testing.T) {
	path := write(t, "calls.yaml", calls)
	for _, words := range [][]string{{"--max-amplification", "NaN"}, {"--max-amplification", "0"},
		{"--max-amplification", "-3"}, {"--rate", "NaN"}, {"--rate", "+Inf"}, {"--rate", "0"}, {"--rate", "-1"},
		{"--runs", "0"},
		{"--runs", "-1"}, {"--runs", "1001"},
		{"--outage", "0s"}, {"--window", "0"}, {"--window", "-5m"}, {"--window", "100y"}, {"--window", "soon"}} {
		if code, out, errs := run(inspect.AuditCommand, append(words, path)...); code != 2 || out != "" ||
			!strings.Contains(errs, words[0]+": ") || !strings.Contains(errs, "; write ") {
			t.Errorf("%v: exit code %d, %s\n%s", words, code, errs, out)
		}
	}
}

// A typing error in the name of the service must not look like an outage without harm.
func TestAnOutageOfNoServiceIsSaid(t *testing.T) {
	path := write(t, "calls.yaml", calls)
	code, _, errs := run(inspect.AuditCommand, "--simulate", "--service", "nosuch", "--quiet", path)
	if code != 2 || !strings.Contains(errs, `"nosuch" is no service`) {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// SARIF's semanticVersion is a semantic version and nothing else; what the program calls itself has the commit in it.
func TestSARIFSaysTheVersionAsText(t *testing.T) {
	path := write(t, "calls.yaml", calls)
	if _, out, _ := run(inspect.AuditCommand, "--sarif", "-", path); strings.Contains(out, "semanticVersion") ||
		!strings.Contains(out, `"version": "`) {
		t.Errorf("%.400s", out)
	}
}

func TestTwoDocumentsDoNotShareStandardOutput(t *testing.T) {
	path := write(t, "calls.yaml", calls)
	for _, words := range [][]string{{"--sarif", "-", "--json", "-"}, {"--markdown=-", "--github"}} {
		code, out, errs := run(inspect.AuditCommand, append(words, path)...)
		if code != 2 || out != "" || !strings.Contains(errs, "one document has room") {
			t.Errorf("%q: exit code %d, %s\n%s", words, code, errs, out)
		}
	}
}

func TestAnExportOfNothingKnownNamesAllThatIs(t *testing.T) {
	reached := ""
	export := inspect.Exports(func(_ context.Context, args []string, _, _ io.Writer) int {
		reached = args[0]
		return 0
	}, "grafana")
	code, _, errs := run(export, "-c", "envoy", "zzz")
	for _, want := range []string{`"zzz"`, "grafana", "envoy", "istio", "gateway-api", "linkerd", "grpc", "spring",
		"nginx",
		"haproxy"} {
		if code != 2 || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, no %s in %s", code, want, errs)
		}
	}
	if code, _, errs := run(export, "grafana", "-o", "envoy"); code != 0 || reached != "grafana" {
		t.Errorf("a file called like a format: exit code %d, %s", code, errs)
	}
}
