package audit_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
)

// The annotated set is small systems in the formats that an audit reads. A comment "want F301 F402" marks the defects
// of its line, or of the next one if it stands alone; a file called want does so for formats without comments
// ("FILE:LINE RULE"). What is not marked is right, and the folders that end in -clean are the same systems without the
// defects.
const annotated = "testdata/annotated"

// mark is one defect: a rule and where it complains.
type mark struct {
	rule, file string
	line       int
}

func (m mark) String() string { return fmt.Sprintf("%s:%d %s", m.file, m.line, m.rule) }

var (
	wanted = regexp.MustCompile(`(?:#|//|;)[ \t]*want((?:[ \t]+F\d{3})+)[ \t]*$`)
	listed = regexp.MustCompile(`^(\S+):(\d+)((?:[ \t]+F\d{3})+)$`)
)

// marks returns what a file marks.
func marks(t *testing.T, name string, data []byte) (all []mark) {
	t.Helper()
	for i, line := range strings.Split(string(data), "\n") {
		if path.Base(name) == "want" {
			if m := listed.FindStringSubmatch(line); m != nil {
				n, _ := strconv.Atoi(m[2])
				for _, rule := range strings.Fields(m[3]) {
					all = append(all, mark{rule, path.Join(path.Dir(name), m[1]), n})
				}
			} else if line != "" {
				t.Fatalf("%s:%d: write FILE:LINE RULE…", name, i+1)
			}
			continue
		}
		if m := wanted.FindStringSubmatchIndex(line); m != nil {
			at := i + 1
			if strings.TrimSpace(line[:m[0]]) == "" { // alone
				at++
			}
			for _, rule := range strings.Fields(line[m[2]:m[3]]) {
				all = append(all, mark{rule, name, at})
			}
		}
	}
	return all
}

// annotatedCases returns the files of each folder.
func annotatedCases(t *testing.T) map[string][]importer.File {
	t.Helper()
	all := map[string][]importer.File{}
	err := filepath.WalkDir(annotated, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		name := strings.TrimPrefix(filepath.ToSlash(p), annotated+"/")
		dir, _, _ := strings.Cut(name, "/")
		all[dir] = append(all[dir], importer.File{Name: name, Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTheAnnotatedDefectsAreFoundAndNothingElse says how many findings are right (precision) and how many defects are
// found (recall).
func TestTheAnnotatedDefectsAreFoundAndNothingElse(t *testing.T) {
	right, findings, defects := 0, 0, 0
	marked, missed, formats := map[string]int{}, map[string]int{}, map[string]bool{}
	for dir, files := range annotatedCases(t) {
		var want []mark
		given := slices.DeleteFunc(slices.Clone(files), func(f importer.File) bool { return path.Base(f.Name) == "want" })
		for _, f := range files {
			want = append(want, marks(t, f.Name, f.Data)...)
		}
		if strings.HasSuffix(dir, "-clean") == (len(want) > 0) {
			t.Errorf("%s marks %d defects; a folder without any ends in -clean", dir, len(want))
		}
		r := audit.Run(given, audit.Options{})
		for _, s := range r.Files {
			for _, format := range s.Formats {
				formats[format] = true
			}
		}
		defects += len(want)
		for _, m := range want {
			marked[m.rule]++
		}
		for _, f := range r.Findings {
			findings++
			i := slices.Index(want, mark{f.Rule, f.At.File, f.At.Line})
			if i < 0 {
				t.Logf("not marked: %v: %s %s: %s", f.At, f.Severity, f.Rule, f.Message)
				continue
			}
			want = slices.Delete(want, i, i+1)
			right++
			for _, at := range f.Copies { // of which a finding says that they are the same
				findings++
				if i := slices.Index(want, mark{f.Rule, at.File, at.Line}); i >= 0 {
					want = slices.Delete(want, i, i+1)
					right++
				} else {
					t.Logf("a copy is not marked: %v: %s", at, f.Rule)
				}
			}
		}
		for _, m := range want {
			missed[m.rule]++
			t.Logf("not found: %v", m)
		}
	}
	precision, recall := 100*float64(right)/float64(findings), 100*float64(right)/float64(defects)
	t.Logf("%d findings, %d of them right (precision %.1f %%); %d defects, recall %.1f %%; %d formats", findings, right,
		precision, defects, recall, len(formats))
	const least = 95
	if precision < least || recall < least {
		t.Errorf("precision %.1f %%, recall %.1f %%; want %d %%", precision, recall, least)
	}
	for _, rule := range lint.Rules() {
		switch n := marked[rule.ID]; {
		case rule.ID == "F109": // of files that are too many to be marked
		case n == 0:
			t.Errorf("no defect of %s (%s) is marked", rule.ID, rule.Title)
		case 2*missed[rule.ID] >= n: // which the whole would hide
			t.Errorf("%d of %d defects of %s (%s) are not found", missed[rule.ID], n, rule.ID, rule.Title)
		}
	}
	for _, format := range importer.Formats() {
		if !formats[format] {
			t.Errorf("no file of the format %s", format)
		}
	}
}
