package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestACellSaysHowMuchHowSoonAndWhatToThinkOfIt(t *testing.T) {
	const end = int(faultEnd / bucket)
	storm, calm := day{name: "storm"}, day{name: "calm", healthy: true}
	half := cell{day: storm, results: []result{daily(map[int]int{end: 0})}}
	late := daily(nil)
	late.late.most = 2 * lateOnce
	for name, c := range map[string]struct {
		cell cell
		best float64
		want string
	}{
		"the best":                    {half, 0.98, "**98.0 %** / 0.5 s"},
		"a point below":               {half, 0.989, "**98.0 %** / 0.5 s"},
		"more than a point":           {half, 0.991, "98.0 % / 0.5 s"},
		"never back":                  {cell{day: storm, results: []result{daily(map[int]int{49: 0})}}, 1, "98.0 % / never"},
		"disturbed":                   {cell{day: storm, results: []result{late}}, 1, "**100.0 %** / 0 s ~"},
		"a healthy day, nothing back": {cell{day: calm, results: []result{daily(map[int]int{end: 99})}}, 1, "**99.98 %**"},
		"not played":                  {cell{day: storm}, 1, "-"},
	} {
		if got := cellText(c.cell, c.best); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestReportHasEveryDaySummaryAndAbsence(t *testing.T) {
	opt := options{passes: 1, beside: 2, days: allDays, out: t.TempDir(),
		contenders: []contender{{name: "good"}, {name: "half"}, {name: "away"}}}
	l := playing(opt, func(c contender, _ int) (result, error) {
		r := daily(nil)
		if c.name == "half" {
			for i := range r.answered {
				r.answered[i] = 50
			}
		}
		return r, nil
	})
	for j := range allDays {
		l.cell(2, j).absent = "not installed: ask somebody"
	}
	if err := l.play(); err != nil {
		t.Fatal(err)
	}
	text := l.report()
	for _, want := range []string{
		" hang |", " slower for good |", "| good | 100.0 % | 17 of 17 | - | 0.00 |",
		"| half | 50.0 % | 0 of 17 | 50.0 points, hang |",
		"away did not take part: not installed: ask somebody", "medians of 1, 2 contenders at a time; 0 runs repeated",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "BUSY") {
		t.Errorf("a quiet machine is called busy:\n%s", text)
	}
	page, err := os.ReadFile(filepath.Join(opt.out, pageName))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(page), "<polyline"); got != 2*2*len(allDays) {
		t.Errorf("%d lines on the page, want two for each of two contenders on %d days", got, len(allDays))
	}
}

func TestCurvesStayInTheirCharts(t *testing.T) {
	if got, want := points([]float64{0, 0.5, 1, 7}, 1), "28.8,75.0 86.2,38.0 143.8,1.0 201.2,1.0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c := newChart(contender{name: "x"}, cell{day: allDays[len(allDays)-1], results: []result{daily(nil)}})
	if len(c.Trouble) != 1 || c.Trouble[0].X+c.Trouble[0].Width > chartWidth+0.01 {
		t.Errorf("trouble at %v", c.Trouble)
	}
}

func TestTablesGoBetweenTheMarkersAndNowhereElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("before\n"+tableBegins+"\nold\n"+tableEnds+"\nafter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		if err := writeInto(path, "new\n"); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(path)
		if want := "before\n" + tableBegins + "\n\nnew\n\n" + tableEnds + "\nafter\n"; err != nil || string(page) != want {
			t.Errorf("%q, %v; want %q", page, err, want)
		}
	}
	if err := writeInto(filepath.Join(t.TempDir(), "page.md"), "x"); err == nil {
		t.Error("a page that is not there was written")
	}
	if _, err := replaceTable([]byte("no markers\n"), "x"); err == nil || !strings.Contains(err.Error(), tableBegins) {
		t.Errorf("without markers: %v", err)
	}
}

// TestThePageNamesEveryDayAndContender holds docs/arena.md against what is played.
func TestThePageNamesEveryDayAndContender(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "arena.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, d := range allDays {
		if row := "| " + d.name + " | " + d.what + " |\n"; !strings.Contains(page, row) {
			t.Errorf("lacks %q", row)
		}
	}
	for _, c := range allContenders {
		if row := "| " + c.name + " | " + c.what + " |"; !strings.Contains(page, row) {
			t.Errorf("lacks %q", row)
		}
	}
	if _, err := replaceTable(text, ""); err != nil {
		t.Error(err)
	}
}

func TestTimeForAllOfItIsSaidBefore(t *testing.T) {
	opt := options{passes: 2, beside: 4, days: allDays[:3], contenders: allContenders[:5]}
	if got, want := opt.lasts(), 2*3*2*(dayLength+patience); got != want || got < time.Minute {
		t.Errorf("%v, want %v", got, want)
	}
}
