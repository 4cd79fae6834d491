package lint_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
)

// What is proved may be less than the first line of an audit says, which counts what files leave open too.
func TestWhatIsProvedSaysWhatMayBeMore(t *testing.T) {
	const open = " (proved; at most 60, however that fails)"
	for services, more := range map[string]bool{`answersWith: "503"`: false, `replicas: 1`: true} {
		form := "services: [{name: b, " + services + "}, {name: c}]\ncalls:\n- from: a\n  to: b\n  layers:\n" +
			"  - {kind: client, " + on("5", "503") + "}\n- from: b\n  to: c\n  layers:\n  - {kind: client, " +
			on("12", "503") + "}\n"
		got := of("F101", lint.Run(parse(t, form), lint.Options{}))
		if len(got) != 1 || strings.Contains(got[0].Message, open) != more ||
			more == strings.Contains(got[0].Message, "60 attempts") {
			t.Errorf("%s: %+v", services, got)
		}
	}
}

// Nothing is more than without a limit, and "at most without a limit" is no sentence.
func TestWhatMayBeMoreIsSaidInWordsThatFitTheNumber(t *testing.T) {
	for _, c := range []struct{ outer, inner, want, never string }{
		{"unbounded", "12", "12 attempts (proved; nothing bounds what it may be)", "at most without"},
		{"2", "unbounded", "attempts without a limit at c", "(proved"},
		{"2", "999999", "999999 attempts (proved; at most 2.0e+06, however that fails)", "without"},
	} {
		form := "services: [{name: b, replicas: 1}, {name: c}]\ncalls:\n- from: a\n  to: b\n  layers:\n  - {kind: client, " +
			on(c.outer, "503") + "}\n- from: b\n  to: c\n  layers:\n  - {kind: client, " + on(c.inner, "503") + "}\n"
		said := false
		for _, f := range of("F101", lint.Run(parse(t, form), lint.Options{})) {
			said = said || strings.Contains(f.Message, c.want)
			if strings.Contains(f.Message, c.never) {
				t.Errorf("%s, %s: %s", c.outer, c.inner, f.Message)
			}
		}
		if !said {
			t.Errorf("%s, %s: nothing says %q", c.outer, c.inner, c.want)
		}
	}
}

// A value that is not known, for another failure, adds nothing to what has no limit, and a number that is written the
// same is no other number.
func TestWhatIsProvedIsNotSaidToBeMoreThanItCanBe(t *testing.T) {
	unlimited := "{name: b}]\ncalls:\n- from: a\n  to: b\n  layers:\n  - {kind: client, repeats: [{on: [\"503\"], " +
		"tries: unbounded}, {on: [\"500\"], tries: unknown (template)}]}\n"
	large := "{name: b, replicas: 1}, {name: c}]\ncalls:\n- from: a\n  to: c\n  layers:\n  - {kind: client, " +
		on("1200000", "503") + "}\n- from: a\n  to: b\n  layers:\n  - {kind: client, " + on("2", "503") +
		"}\n- from: b\n  to: c\n  layers:\n  - {kind: client, " + on("2", "503") + "}\n"
	for form, want := range map[string]string{unlimited: "attempts without a limit at b",
		large: "up to 1.2e+06 attempts at c"} {
		got := of("F101", lint.Run(parse(t, "services: ["+form), lint.Options{}))
		if len(got) != 1 || !strings.Contains(got[0].Message, want) {
			t.Errorf("no %q in %+v", want, got)
		}
	}
}
