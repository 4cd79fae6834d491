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

func TestWrapKeepsWordsWhole(t *testing.T) {
	for _, tt := range []struct{ prefix, text, want string }{
		{"", "one two  three – four five", "one two\nthree –\nfour five"},
		{"", "it took 5 s.", "it took\n5 s."},
		{"", "anextremelylongword and more", "anextremelylongword\nand more"},
		{"- ", "one two three", "- one two\n  three"},
	} {
		if got := figures.Wrap(tt.prefix, figures.Words(tt.text), 9); got != tt.want {
			t.Errorf("wrapped to %q, want %q", got, tt.want)
		}
	}
}

func TestPadCountsCharacters(t *testing.T) {
	if got := figures.Pad("µs", 4) + "|" + figures.PadLeft("µs", 4) + figures.Pad("long", 2); got != "µs  |  µslong" {
		t.Errorf("padded to %q", got)
	}
}
