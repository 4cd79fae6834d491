package figures_test

import (
	"math"
	"testing"

	"github.com/abate-go/abate/sim/figures"
)

func TestNumbersForPeople(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{figures.Thousands(999.4), "999"},
		{figures.Thousands(1000), "1,000"},
		{figures.Thousands(-1234567), "-1,234,567"},
		{figures.Thousands(math.NaN()), figures.Nothing},
		{figures.Decimals(1.50, 2), "1.5"},
		{figures.Decimals(100, 2), "100"},
		{figures.Decimals(-0.001, 2), "0"},
		{figures.Decimals(math.Inf(1), 2), figures.Nothing},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
