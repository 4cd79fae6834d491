package audit_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
)

// TestWhatPeopleSayOfFindingsInPublicRepositories holds docs/audit.md to the file of what was looked at.
func TestWhatPeopleSayOfFindingsInPublicRepositories(t *testing.T) {
	data, err := os.ReadFile("testdata/public.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var before, gone, now, seen, right, noise int
	var unseen []string
	var attacks, counts, again, blind [][]string
	for i, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if cells[0] == "unseen" {
			unseen = cells[1:]
			continue
		}
		if strings.HasPrefix(cells[0], "attack") {
			attacks = append(attacks, cells[1:])
			continue
		}
		if strings.HasPrefix(cells[0], "count") {
			counts = append(counts, cells[1:])
			continue
		}
		if strings.HasPrefix(cells[0], "again") {
			again = append(again, cells[1:])
			continue
		}
		if strings.HasPrefix(cells[0], "blind") {
			blind = append(blind, cells[1:])
			continue
		}
		if len(cells) != 9 {
			t.Fatalf("line %d has %d cells", i+1, len(cells))
		}
		if _, known := lint.RuleOf(cells[0]); !known {
			t.Errorf("line %d: there is no rule %s", i+1, cells[0])
		}
		var n [6]int
		for k := range n {
			if n[k], err = strconv.Atoi(cells[k+1]); err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
		}
		if n[3] != min(n[2], 10) || n[4]+n[5] != n[3] || n[1] > n[0] || (n[1] > 0) != (cells[7] != "") ||
			(n[5] > 0) != (cells[8] != "") {
			t.Errorf("line %d does not add up: %s", i+1, line)
		}
		before, gone, now = before+n[0], gone+n[1], now+n[2]
		seen, right, noise = seen+n[3], right+n[4], noise+n[5]
	}
	if 100*right < 95*seen {
		t.Errorf("%d of %d findings are right, want 95 %%", right, seen)
	}
	page, err := os.ReadFile("../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, sentence := range []string{
		fmt.Sprintf("%d of the %d that were looked at are right (%.0f %%)", right, seen, 100*float64(right)/float64(seen)),
		fmt.Sprintf("%d were noise and none was false", noise),
		fmt.Sprintf("made %d findings in 94 trees of 43 public repositories", now),
		fmt.Sprintf("%s of the %s findings there are right", unseen[1], unseen[0]),
		fmt.Sprintf("Of %s findings of a warning or more, %s were right", attacks[0][0], attacks[0][1]),
		fmt.Sprintf("%s noise and %s false", attacks[0][2], attacks[0][3]),
		fmt.Sprintf("he had listed %s defects in those files; it found %s of them", attacks[0][4], attacks[0][5]),
		fmt.Sprintf("%s of %s were right and %s of the %s were found", attacks[1][1], attacks[1][0], attacks[1][5],
			attacks[1][4]),
		fmt.Sprintf("%d findings, %d of which were false or noise", before, gone),
		fmt.Sprintf("Of %s findings %s were right", counts[0][0], counts[0][1]),
		fmt.Sprintf("%s noise, %s false and %s doubtful; of %s defects listed before, %s were found", counts[0][2],
			counts[0][3], counts[0][4], counts[0][5], counts[0][6]),
		fmt.Sprintf("%s of %s are right, %s noise, none false and %s doubtful, and %s of the %s are found", counts[1][1],
			counts[1][0], counts[1][2], counts[1][4], counts[1][6], counts[1][5]),
		fmt.Sprintf("Of %s findings %s were right (70 %%), %s false and %s doubtful", again[0][0], again[0][1], again[0][3],
			again[0][4]),
		fmt.Sprintf("%s of %s are right, none false and %s doubtful", again[1][1], again[1][0], again[1][4]),
		fmt.Sprintf("%s of %s are right and %s is noise", again[2][1], again[2][0], again[2][2]),
		fmt.Sprintf("Of %s findings %s were right (61 %%), %s noise, %s false and %s doubtful", blind[0][0], blind[0][1],
			blind[0][2], blind[0][3], blind[0][4]),
		fmt.Sprintf("of %s things that an expert would say of those files, it said %s", blind[0][5], blind[0][6]),
		fmt.Sprintf("%s of %s are right, %s noise, none false and %s doubtful, and it says %s of the %s", blind[1][1],
			blind[1][0], blind[1][2], blind[1][4], blind[1][6], blind[1][5]),
		fmt.Sprintf("%s of %s findings were right (60 %%), after it %s of %s", blind[2][1], blind[2][0], blind[3][1],
			blind[3][0]),
	} {
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), sentence) {
			t.Errorf("docs/audit.md lacks %q", sentence)
		}
	}
}
