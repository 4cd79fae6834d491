package summary_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/summary"
)

// level is a variant with so many attempts and answers in every second.
func level(name string, attempts, answers float64) sim.VariantResult {
	s := sim.Series{Seed: 1, BinSeconds: 1, Services: []sim.ServiceSeries{{Name: "db"}}}
	for range 20 {
		s.Services[0].Attempts = append(s.Services[0].Attempts, attempts)
		s.Goodput = append(s.Goodput, answers)
	}
	return sim.VariantResult{Name: name, Runs: 1, Run: s}
}

func TestAChartShowsFewAttemptsBesideMany(t *testing.T) {
	for about, c := range map[string]struct {
		few  float64
		want []string
	}{
		"beside 10,000": {400, []string{
			"Each row is about twice the one below it",
			"10,000 ┤░░░░░░░░░░░░░░░░░░░░ 10,000 ┤ 5,000",
			"1,000 ┤░░░░░░░░░░░░░░░░░░░░ 1,000 ┤ 500 ┤░░░░░░░░░░░░░░░░░░░░ 500 ┤░░░░░░░░░░░░░░░░░░░░ 200",
			"200 ┤░░░░░░░░░░░░░░░░░░░░ 200 ┤████████████████████ 100 ┤████████████████████ 100 ┤████████████████████",
		}},
		"as many": {9000, []string{
			"10,000 ┤░░░░░░░░░░░░░░░░░░░░ 10,000 ┤ ┤░░░░░░░░░░░░░░░░░░░░ ┤░░░░░░░░░░░░░░░░░░░░", " 0 ┤",
		}},
	} {
		r := &sim.Result{Name: "x", Seconds: 20, Variants: []sim.VariantResult{
			level("storm", 10_000, 100), level("calm", c.few, 200),
		}}
		var text strings.Builder
		if err := summary.Text(&text, r, summary.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
				t.Errorf("%s: %q is not in\n%s", about, want, text.String())
			}
		}
	}
}
