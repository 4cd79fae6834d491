package drill // the top of the scale is private

import (
	"strings"
	"testing"
)

func TestPlotDrawsGoodputInFrontOfAttempts(t *testing.T) {
	setup := Setup{BeforeSeconds: 1, TroubleSeconds: 1, Trouble: "db is down for 1 s"}
	a := ActResult{Act: "unguarded", BinSeconds: 0.5, Series: []SeriesBin{
		{AtSeconds: 0, Attempts: 100, Answered: 100},
		{AtSeconds: 0.5, Attempts: 100, Answered: 100},
		{AtSeconds: 1, Attempts: 200},
		{AtSeconds: 1.5, Attempts: 400},
		{AtSeconds: 2, Attempts: 400, Answered: 25},
		{AtSeconds: 2.5, Attempts: 50, Answered: 50},
	}}
	r := Result{Acts: []ActResult{a}}
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
	if got := a.Plot(setup, r.plotTop()); got != want {
		t.Errorf("plot:\n%swant:\n%s", got, want)
	}
}

func TestPlotTopIsARoundNumberAboveEverything(t *testing.T) {
	for attempts, want := range map[int]float64{0: 1, 1: 2, 55: 120, 126: 260, 500: 1000, 565: 1200, 49_999: 100_000} {
		r := Result{Acts: []ActResult{{BinSeconds: 0.5, Series: []SeriesBin{{Attempts: attempts}}}}}
		if got := r.plotTop(); got != want {
			t.Errorf("top for %d attempts in 0.5 s = %v, want %v", attempts, got, want)
		}
	}
}

func TestNumbersAreGroupedInThrees(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 18641.4: "18,641", 1234567: "1,234,567"} {
		if got := thousands(v); got != want {
			t.Errorf("thousands(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestWrapKeepsWordsWhole(t *testing.T) {
	text := wrap("one two  three – four five", 9)
	if want := "one two\nthree –\nfour five"; text != want {
		t.Errorf("wrapped to %q, want %q", text, want)
	}
	if got := wrap("anextremelylongword and more", 5); !strings.HasPrefix(got, "anextremelylongword\n") {
		t.Errorf("wrapped to %q", got)
	}
}
