package balance_test

import (
	"testing"

	"github.com/abate-go/abate/policy/balance"
)

func TestWhereAllFailNobodyIsEjected(t *testing.T) {
	b := balance.New(three, 3)
	attempts(t, b, 0, 0, "FF")
	attempts(t, b, 0, 1, "FF")
	attempts(t, b, 0, 2, "FFFF")
	attempts(t, b, 0, 1, "FF")
	attempts(t, b, 0, 0, "FF")
	if n := out(b, 3, 0); n != 0 {
		t.Errorf("%d are out", n)
	}
	attempts(t, b, s, 0, "S") // one does better than the others
	attempts(t, b, s, 1, "F")
	wantEjected(t, b, s, 1, 11*s)
}

func TestWhenThoseThatAreLeftFailTooAllComeBack(t *testing.T) {
	b := balance.New(three, 3)
	attempts(t, b, 0, 0, "FFF")
	wantEjected(t, b, 0, 0, 10*s)
	attempts(t, b, s, 1, "FF")
	attempts(t, b, s, 2, "FFF")
	wantEjected(t, b, s, 0, 10*s)
	attempts(t, b, 2*s, 1, "F")
	if n := out(b, 3, 2*s); n != 0 {
		t.Errorf("%d are out", n)
	}
	attempts(t, b, 2*s, 1, "S") // and the first one goes on failing
	attempts(t, b, 3*s, 0, "FFF")
	wantEjected(t, b, 3*s, 0, 23*s)
}
