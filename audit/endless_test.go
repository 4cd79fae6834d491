package audit_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
)

// On a path that nothing bounds no number is changed that leaves it without a bound: the others are shortened for
// themselves, with as few changes as if it were not there.
func TestAPathWithoutABoundBringsNoChangesOfItsOwn(t *testing.T) {
	const finite = `services: [{name: b, answersWith: "503"}, {name: e, rate: 10}, {name: x, answersWith: "503"}]
calls:
- {from: e, to: b, layers: [{kind: client, overall: 5s, repeats: [{on: [refused, "503"], tries: 9}]}]}
- {from: b, to: c, layers: [{kind: client, overall: 1s, repeats: [{on: [refused, "503"], tries: 2}]}]}
`
	for name, c := range map[string]struct{ more, says string }{
		"alone": {"", "One request then becomes 2 attempts at most.\n"},
		"no limit": {`- {from: a, to: b, layers: [{kind: client, perTry: 1s, repeats: [{on: ["503"], tries: unbounded}]}]}` +
			"\n", "becomes 2 attempts at most, but for what fails at b, where no number in these files bounds it.\n"},
		"a circle": {"- {from: x, to: y}\n- {from: y, to: x}\n- {from: y, to: z, layers: [{kind: client, overall: 1s, " +
			"repeats: [{on: [\"503\"], tries: 3}]}]}\n",
			"becomes 2 attempts at most, but for what the circle x → y → x sends, which no number bounds.\n"},
	} {
		files := []importer.File{{Name: "calls.yaml", Data: []byte(finite + c.more)}}
		r := audit.Run(files, audit.Options{})
		r.Propose(files, lint.Options{})
		if len(r.Changes) != 1 || r.Changes[0].At.Line != 3 {
			t.Errorf("%s: changes %+v", name, r.Changes)
		}
		var text strings.Builder
		if err := audit.Text(&text, r, audit.TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), c.says) {
			t.Errorf("%s: no %q in\n%s", name, c.says, &text)
		}
	}
}

// A circle is no success, although no path beside it is too long.
func TestACircleAloneIsNotSaidToBeShort(t *testing.T) {
	files := []importer.File{{Name: "calls.yaml", Data: []byte("calls:\n- {from: x, to: y, layers: [{kind: client, " +
		"overall: 1s, repeats: [{on: [\"503\"], tries: 3}]}]}\n- {from: y, to: x}\n")}}
	r := audit.Run(files, audit.Options{})
	r.Propose(files, lint.Options{})
	var text strings.Builder
	if err := audit.Text(&text, r, audit.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "No change is proposed: calls go in a circle, x → y → x, and no ") {
		t.Errorf("%s", &text)
	}
}
