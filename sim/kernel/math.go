package kernel

import "math"

// The functions of package math may differ in the last bit between processors:
// some are written in assembly for one of them, and a compiler may fuse x*y + z
// into one operation with one rounding. Here every product is rounded by an explicit
// conversion, so that a run has the same bits everywhere.

const (
	ln2      = 0x1.62e42fefa39efp-1
	ln2High  = 0x1.62e42feep-1 // ln2 to 32 bits: its product with a small integer is exact
	ln2Low   = 0x1.a39ef35793c76p-33
	sqrtHalf = 0x1.6a09e667f3bcdp-1
)

// Exp returns e**x with the same bits on every processor, within 2 units in the
// last place. It returns +Inf above 709.78 and 0 below -745.13.
func Exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 709.782712893384:
		return math.Inf(1)
	case x < -745.1332191019412:
		return 0
	}
	// x = (32 k + j) ln2/32 + r, so that e**x = 2**k * 2**(j/32) * e**r.
	n := math.Floor(float64(x*(32/ln2)) + 0.5)
	r := x - float64(n*(ln2High/32)) - float64(n*(ln2Low/32))
	rr := float64(r * r)
	// |r| <= ln2/64: the terms left out are below the last bit.
	series := r + float64(rr*(0.5+float64(r*(1.0/6)))) +
		float64(float64(rr*rr)*(1.0/24+float64(r*(1.0/120))+float64(rr*(1.0/720))))
	k, root := int(n)>>5, roots[int(n)&31]
	sum := root + float64(root*series)
	if k < -1021 || k > 1022 {
		return math.Ldexp(sum, k)
	}
	return float64(sum * math.Float64frombits(uint64(k+1023)<<52))
}

// roots are the powers 2**(j/32).
var roots = func() (table [32]float64) {
	for j := range table {
		r := float64(float64(j) * (ln2 / 32))
		sum := 1.0
		for n := 22.0; n >= 1; n-- {
			sum = 1 + float64(r*sum)/n
		}
		table[j] = sum
	}
	return table
}()

// Log returns the natural logarithm of x with the same bits on every processor,
// within 2 units in the last place. It returns -Inf for 0 and NaN below 0.
func Log(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return math.Log(x)
	}
	m, e := math.Frexp(x)
	if m < sqrtHalf {
		m, e = m*2, e-1
	}
	// log m = 2 artanh s, and |s| < 0.172.
	s := (m - 1) / (m + 1)
	ss := float64(s * s)
	sum := 0.0
	for n := 23.0; n >= 3; n -= 2 {
		sum = float64(ss * (1/n + sum))
	}
	k := float64(e)
	return float64(k*ln2High) + (float64(k*ln2Low) + float64(2*s*sum) + 2*s)
}
