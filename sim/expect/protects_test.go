package expect_test

import (
	"testing"

	"github.com/abate-go/abate/sim/expect"
)

func TestSomeExpectationsProtectAndOthersShow(t *testing.T) {
	for text, want := range map[string][2]bool{ // protects, wants a collapse
		"collapse < 1%": {true, false}, "collapse(db) <= 10%": {true, false}, "collapse > 90%": {false, true},
		"collapse(batch) >= 90%": {false, true}, "goodput(after) > 95%": {true, false},
		"goodput(after) < 95%": {false, false},
		"recovery < 10s":       {true, false}, "recovery > 10s": {false, false}, "yield(db, after) >= 90%": {true, false},
		"offered > 900/s": {false, false}, "offered < 900/s": {false, false}, "utilization(db) < 80%": {false, false},
		"amplification(db) < 1.2": {true, false}, "amplification(db) > 26": {false, false},
	} {
		e, err := expect.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{e.Protects(), e.WantsCollapse()}; got != want {
			t.Errorf("%s protects, wants a collapse: %v, want %v", text, got, want)
		}
	}
}
