package drill // the top of the scale is private

import (
	"strings"
	"testing"
)

func TestPlotDrawsWhatWasDoneInFrontOfAttempts(t *testing.T) {
	p := Plot{Done: "answers", BinSeconds: 0.5, From: 1, To: 2, Note: "db is down for 1 s", Columns: []Column{
		{200, 200}, {200, 200}, {400, 0}, {800, 0}, {800, 50}, {100, 100},
	}}
	r := Report{Acts: []ActReport{{Act: "unguarded", Plot: p}}}
	want := `unguarded: attempts ░ and answers █ per second, one column is 0.5 s
     800 ┤   ░░
         ┤   ░░
         ┤   ░░
         ┤   ░░
         ┤  ░░░
         ┤  ░░░
         ┤██░░░
       0 ┤██░░▄█
         └──══──
            ▲ db is down for 1 s
`
	if got := p.draw("unguarded", r.top()); got != want {
		t.Errorf("plot:\n%swant:\n%s", got, want)
	}
}

func TestPlotTopIsARoundNumberAboveEverything(t *testing.T) {
	for attempts, want := range map[float64]float64{
		0: 1, 2: 2, 110: 120, 252: 260, 1000: 1000, 1130: 1200, 99_998: 100_000,
	} {
		r := Report{Acts: []ActReport{{Plot: Plot{Columns: []Column{{Attempts: attempts}}}}}}
		if got := r.top(); got != want {
			t.Errorf("top for %v attempts/s = %v, want %v", attempts, got, want)
		}
	}
}

func TestWhatIsFarAboveTheCapacityIsCutOff(t *testing.T) {
	r := Report{Capacity: 100, Acts: []ActReport{{Plot: Plot{Columns: []Column{{Attempts: 5000}}}}}}
	if got := r.top(); got != 400 {
		t.Errorf("top %v, want 400", got)
	}
}

func TestHalfACellIsShadedAndANoteFitsTheLine(t *testing.T) {
	p := Plot{Done: "answers", BinSeconds: 1, From: 20, To: 20,
		Note: "note of some length, longer than what is left of a line for it", Columns: []Column{
			{3, 0}, {4, 0}, {60, 13}, {1e9, 1e9},
		}}
	_, got, _ := strings.Cut(p.draw("x", 64), "\n")
	want := `      64 ┤  ░█
         ┤  ░█
         ┤  ░█
         ┤  ░█
         ┤  ░█
         ┤  ░█
         ┤  ▅█
       0 ┤ ░██
         └────
                ▲ note of some length, longer than what is left of a line for it
`
	if got != want {
		t.Errorf("drawn:\n%swant:\n%s", got, want)
	}
}

func TestAPlotOfManyColumnsFitsTheLine(t *testing.T) {
	p := Plot{BinSeconds: 1, Columns: make([]Column, 100), From: 10, To: 20}
	for i := range p.Columns {
		p.Columns[i].Attempts = float64(i % 2)
	}
	p.fit()
	if len(p.Columns) != 50 || p.BinSeconds != 2 || p.Columns[7].Attempts != 0.5 {
		t.Errorf("%d columns of %v s: %v", len(p.Columns), p.BinSeconds, p.Columns)
	}
}
