package audit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/topology"
)

const before = `# who calls whom
a: {retries: 3} # stays
b: "12"
c: 1
d: 1
e: 1
f: 1
g: 1
h: 1
i: ü 5`

func edit(line, column int, from, to string) audit.Edit {
	return audit.Edit{At: topology.Position{File: "f.yaml", Line: line, Column: column}, Old: from, New: to}
}

func TestEditsChangeNothingButTheNumbers(t *testing.T) {
	files := []importer.File{{Name: "f.yaml", Data: []byte(before)}, {Name: "g.yaml", Data: []byte("x")}}
	got, left := audit.Apply(files, []audit.Edit{edit(2, 14, "3", "0"), edit(3, 4, "12", "1"), edit(10, 6, "5", "10"),
		edit(4, 4, "7", "8"), edit(99, 1, "1", "2")})
	want := strings.NewReplacer("retries: 3", "retries: 0", `"12"`, `"1"`, "ü 5", "ü 10").Replace(before)
	if string(got[0].Data) != want || string(got[1].Data) != "x" {
		t.Errorf("got\n%s\nwant\n%s", got[0].Data, want)
	}
	if len(left) != 2 {
		t.Errorf("%d edits were left, want the two that found something else: %+v", len(left), left)
	}
	if string(files[0].Data) != before {
		t.Error("the file given has changed")
	}
}

func TestADiffIsWhatGitApplies(t *testing.T) {
	files := []importer.File{{Name: "f.yaml", Data: []byte(before)}}
	changed, _ := audit.Apply(files, []audit.Edit{edit(2, 14, "3", "0"), edit(3, 4, "12", "1"), edit(10, 6, "5", "10")})
	diff := audit.Diff("f.yaml", files[0].Data, changed[0].Data)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f.yaml"), files[0].Data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, diff)
	}
	got, err := os.ReadFile(filepath.Join(dir, "f.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(changed[0].Data) {
		t.Errorf("git made\n%s\nof\n%s", got, diff)
	}
	if audit.Diff("f.yaml", []byte(before), []byte(before)) != "" {
		t.Error("a file that has not changed has a diff")
	}
}
