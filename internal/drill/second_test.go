package drill_test

import (
	"testing"

	"github.com/abate-go/abate/internal/drill"
)

func TestASecondIsWellOnlyIfItIs(t *testing.T) {
	for _, tt := range []struct {
		about  string
		second drill.Second
		want   bool
	}{
		{"nobody asked", drill.Second{}, true},
		{"all answered", drill.Second{Offered: 250, Answered: 250}, true},
		{"a queue drains", drill.Second{Offered: 250, Answered: 400}, true},
		{"95 %", drill.Second{Offered: 200, Answered: 190}, true},
		{"less", drill.Second{Offered: 200, Answered: 189}, false},
		{"three of few", drill.Second{Offered: 20, Answered: 17}, true},
		{"four of few", drill.Second{Offered: 20, Answered: 16}, false},
		{"none of few", drill.Second{Offered: 2}, false},
		{"a tenth is extra", drill.Second{Offered: 100, Answered: 100, Extra: 10}, true},
		{"more is", drill.Second{Offered: 100, Answered: 100, Extra: 11}, false},
		{"a circuit is open", drill.Second{Offered: 100, Answered: 100, Circuits: drill.Circuits{All: 50, Open: 1}}, false},
		{"one probes", drill.Second{Offered: 100, Answered: 100, Circuits: drill.Circuits{All: 50, HalfOpen: 1}}, false},
		{"all are closed", drill.Second{Offered: 100, Answered: 100, Circuits: drill.Circuits{All: 50}}, true},
	} {
		if got := tt.second.Well(); got != tt.want {
			t.Errorf("%s: well %v", tt.about, got)
		}
	}
}

func TestSharesAreNotRoundedToWhatIsNot(t *testing.T) {
	for want, s := range map[string]drill.Second{
		"–": {}, "0 %": {Offered: 9}, "99 %": {Offered: 1000, Answered: 999}, "100 %": {Offered: 9, Answered: 12},
		"42 %": {Offered: 100, Answered: 42}, "<1 %": {Offered: 1000, Answered: 1},
	} {
		if got := s.Share(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

func TestCircuitsInWords(t *testing.T) {
	for want, c := range map[string]drill.Circuits{
		"none": {}, "closed": {All: 3}, "open": {All: 1, Open: 1}, "half-open": {All: 1, HalfOpen: 1},
		"2 open": {All: 3, Open: 2}, "3 half-open": {All: 3, HalfOpen: 3},
		"1 open, 2 half-open": {All: 3, Open: 1, HalfOpen: 2},
	} {
		if got := c.String(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
