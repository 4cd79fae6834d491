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
