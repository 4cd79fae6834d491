package kernel_test

import (
	"math"
	"testing"

	"github.com/abate-go/abate/sim/kernel"
)

// ulps is the distance of two numbers in units in the last place of want.
func ulps(got, want float64) float64 {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return 0
	}
	return math.Abs(got-want) / (math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want))
}

// Near the ends of the range the assembly of package math is itself off (on amd64
// Log of a subnormal number, Exp above 709.4); those have a test of their own.
func TestExpAndLogAreExactToTwoUnits(t *testing.T) {
	s := kernel.NewStream(1, 1)
	worstExp, worstLog := 0.0, 0.0
	for range 200_000 {
		x := 1416*s.Float64() - 708
		if s.IntN(2) == 0 {
			x /= 1000
		}
		y := math.Exp(x)
		worstExp = max(worstExp, ulps(kernel.Exp(x), y))
		worstLog = max(worstLog, ulps(kernel.Log(y), math.Log(y)))
	}
	if !(worstExp <= 2 && worstLog <= 2) {
		t.Errorf("Exp is off by %.2f units, Log by %.2f; want at most 2", worstExp, worstLog)
	}
}

func TestExpAndLogAtTheEdges(t *testing.T) {
	inf := math.Inf(1)
	for _, row := range []struct {
		f       func(float64) float64
		x, want float64
	}{
		{kernel.Exp, 0, 1}, {kernel.Exp, math.Copysign(0, -1), 1}, {kernel.Exp, 5e-324, 1}, {kernel.Exp, 1e-17, 1},
		{kernel.Exp, -1e-17, 1},
		{kernel.Exp, inf, inf}, {kernel.Exp, -inf, 0}, {kernel.Exp, math.NaN(), math.NaN()}, {kernel.Exp, 1e300, inf},
		{kernel.Exp, -1e300, 0},
		{kernel.Exp, 709.782712893384, 0x1.fffffffffff2ap+1023}, {kernel.Exp, 709.7827128933841, inf},
		{kernel.Exp, -745.1332191019411, 5e-324}, {kernel.Exp, -745.14, 0}, {kernel.Exp, -744.4400719213812, 5e-324},
		{kernel.Exp, -708.5, 2.006132305331306e-308}, {kernel.Exp, -709, 1.216780750623423e-308},
		{kernel.Exp, -709.5, 7.38014831401258e-309}, {kernel.Exp, 709.5, 1.3549863193146328e+308},
		{kernel.Log, 0, -inf}, {kernel.Log, inf, inf}, {kernel.Log, -1, math.NaN()}, {kernel.Log, math.NaN(), math.NaN()},
		{kernel.Log, 1, 0},
		{kernel.Log, 5e-324, -744.4400719213812}, {kernel.Log, 0x1p-1022, -708.3964185322641},
		{kernel.Log, math.MaxFloat64, 709.782712893384},
		{kernel.Log, 0.7071067811865476, -0.34657359027997264}, {kernel.Log, 0.7071067811865475, -0.3465735902799728},
	} {
		if got := row.f(row.x); !(ulps(got, row.want) <= 2) {
			t.Errorf("f(%v) = %v (%x), want %v", row.x, got, got, row.want)
		}
	}
}

// The bits of these functions are part of every run's result.
func TestExpAndLogKeepTheirBits(t *testing.T) {
	sum := uint64(0)
	for i := range 100_000 {
		x := float64(float64(i)*0.0137) - 700
		sum = sum*31 + math.Float64bits(kernel.Exp(x))
		sum = sum*31 + math.Float64bits(kernel.Log(float64(float64(i)*0.001)+1e-9))
	}
	if want := uint64(0x31cc35401c96120); sum != want {
		t.Errorf("checksum %#x, want %#x", sum, want)
	}
}
