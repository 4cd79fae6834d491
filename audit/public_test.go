package audit_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
)

// counted is what was looked at of the findings of all rules.
type counted struct{ all, seen, right, noise, wrong, doubtful int }

// add adds the columns of one rule, and reports whether they add up, and whether what is not right is explained.
func (c *counted) add(cells []string, why string) bool {
	var n [6]int
	for k := range n {
		var err error
		if n[k], err = strconv.Atoi(cells[k]); err != nil {
			return false
		}
	}
	c.all, c.seen, c.right = c.all+n[0], c.seen+n[1], c.right+n[2]
	c.noise, c.wrong, c.doubtful = c.noise+n[3], c.wrong+n[4], c.doubtful+n[5]
	return n[1] == min(n[0], 10) && n[2]+n[3]+n[4]+n[5] == n[1] && (n[2] < n[1]) == (why != "")
}

func (c *counted) percent() float64 { return 100 * float64(c.right) / float64(c.seen) }

// TestWhatPeopleSayOfFindingsInPublicRepositories holds docs/audit.md to the file of what was looked at.
func TestWhatPeopleSayOfFindingsInPublicRepositories(t *testing.T) {
	data, err := os.ReadFile("testdata/public.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var was, is counted
	var first, unseen []string
	var attacks, counts, again, blind, second, third, fourth [][]string
	for i, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		switch name, _, _ := strings.Cut(cells[0], ","); name {
		case "first":
			first = cells[1:]
		case "unseen":
			unseen = cells[1:]
		case "attack":
			attacks = append(attacks, cells[1:])
		case "count":
			counts = append(counts, cells[1:])
		case "again":
			again = append(again, cells[1:])
		case "blind":
			blind = append(blind, cells[1:])
		case "blind3":
			third = append(third, cells[1:])
		case "blind4":
			fourth = append(fourth, cells[1:])
		case "blind2":
			second = append(second, cells[1:])
		default:
			if len(cells) != 15 {
				t.Fatalf("line %d has %d cells", i+1, len(cells))
			}
			if _, known := lint.RuleOf(cells[0]); !known {
				t.Errorf("line %d: there is no rule %s", i+1, cells[0])
			}
			if !was.add(cells[1:7], cells[13]) || !is.add(cells[7:13], cells[14]) {
				t.Errorf("line %d does not add up: %s", i+1, line)
			}
		}
	}
	if is.wrong > 0 {
		t.Errorf("%d are false, and the page says none", is.wrong)
	}
	if 100*is.right < 95*is.seen {
		t.Errorf("%d of %d findings are right, want 95 %%", is.right, is.seen)
	}
	page, err := os.ReadFile("../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, sentence := range []string{
		fmt.Sprintf("made %d findings in 149 trees of 37 public repositories", was.all),
		fmt.Sprintf("of the %d that were looked at %d were right (%.0f %%), %d noise, %d false and %d doubtful", was.seen,
			was.right, was.percent(), was.noise, was.wrong, was.doubtful),
		fmt.Sprintf("%d of %d are right (%.0f %%), %d noise, none false and %d doubtful", is.right, is.seen, is.percent(),
			is.noise, is.doubtful),
		fmt.Sprintf("%s of %s were right, after %s of %s findings had been mended away", first[4], first[3], first[1],
			first[0]),
		fmt.Sprintf("%s of the %s findings there are right", unseen[1], unseen[0]),
		fmt.Sprintf("Of %s findings of a warning or more, %s were right", attacks[0][0], attacks[0][1]),
		fmt.Sprintf("%s noise and %s false", attacks[0][2], attacks[0][3]),
		fmt.Sprintf("he had listed %s defects in those files; it found %s of them", attacks[0][4], attacks[0][5]),
		fmt.Sprintf("%s of %s were right and %s of the %s were found", attacks[1][1], attacks[1][0], attacks[1][5],
			attacks[1][4]),
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
		fmt.Sprintf("%s of %s findings were right (40 %%), %s noise and %s false", third[0][1], third[0][0], third[0][2],
			third[0][3]),
		fmt.Sprintf("after mending %s of %s", third[1][1], third[1][0]),
		fmt.Sprintf("all %s are right, which is too few", third[2][0]),
		fmt.Sprintf("Of %s findings %s were right (55 %%), %s noise and %s false", second[0][0], second[0][1], second[0][2],
			second[0][3]),
		fmt.Sprintf("after mending %s of %s are, and %s are noise", second[1][1], second[1][0], second[1][2]),
		fmt.Sprintf("Of %s findings %s were right (49 %%), %s noise and %s false", fourth[0][0], fourth[0][1], fourth[0][2],
			fourth[0][3]),
		fmt.Sprintf("%s of %s, %s of %s, %s of %s, %s of %s, %s of %s and %s of %s were right", fourth[1][1], fourth[1][0],
			fourth[2][1], fourth[2][0], fourth[3][1], fourth[3][0], fourth[4][1], fourth[4][0], fourth[5][1], fourth[5][0],
			fourth[6][1], fourth[6][0]),
		fmt.Sprintf("%s of %s (95 %%), %s noise and none false, and in twelve more %s of %s", fourth[7][1], fourth[7][0],
			fourth[7][2], fourth[8][1], fourth[8][0]),
		fmt.Sprintf("%s of %s findings were right at first look, and in five more %s of %s", second[2][1], second[2][0],
			second[3][1], second[3][0]),
	} {
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), sentence) {
			t.Errorf("docs/audit.md lacks %q", sentence)
		}
	}
}
