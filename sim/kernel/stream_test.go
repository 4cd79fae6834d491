package kernel_test

import (
	"math"
	"slices"
	"testing"

	"github.com/abate-go/abate/sim/kernel"
)

const draws = 400_000

// A change of these numbers changes the result of every run: say so in CHANGELOG.md.
func TestStreamsKeepTheirNumbers(t *testing.T) {
	for _, row := range []struct {
		seed, entity uint64
		want         [3]uint64
	}{
		{0, 0, [3]uint64{0x4051ca12cb63d684, 0x81a5517c63a672c0, 0x792be74d3aa1981e}},
		{1, 0, [3]uint64{0xe94ad5eda488c902, 0xebb00446d7c0ffcd, 0x352e8e21f411aa51}},
		{0, 1, [3]uint64{0xbb2fa40d0e5b6ba, 0xb45a274e6acf0151, 0x4f4eb2b8d7b64815}},
		{1<<64 - 1, 1<<64 - 1, [3]uint64{0x8c3ab38ec14c3d4, 0x4eadb816ebb00d5f, 0xdb73633e6e4fd548}},
	} {
		s := kernel.NewStream(row.seed, row.entity)
		if got := [3]uint64{s.Uint64(), s.Uint64(), s.Uint64()}; got != row.want {
			t.Errorf("seed %d, entity %d: %#x", row.seed, row.entity, got)
		}
	}
}

func TestVariatesKeepTheirBits(t *testing.T) {
	s := kernel.NewStream(7, 7)
	for _, row := range []struct {
		name string
		next func() uint64
		want uint64
	}{
		{"Float64", func() uint64 { return math.Float64bits(s.Float64()) }, 0x5c202e9532940b08},
		{"Exp", func() uint64 { return math.Float64bits(s.Exp()) }, 0xf46140ea5684623c},
		{"Normal", func() uint64 { return math.Float64bits(s.Normal()) }, 0x73ed76a961d9cf99},
		{"IntN", func() uint64 { return uint64(s.IntN(1000)) }, 0x5341e94f343fd748},
	} {
		sum := uint64(0)
		for range draws { // enough to pass through the rare branches
			sum = sum*31 + row.next()
		}
		if sum != row.want {
			t.Errorf("%s: checksum %#x, want %#x", row.name, sum, row.want)
		}
	}
}

// near fails when a mean of n values with the given standard deviation is further
// than 4 standard errors from what it must be.
func near(t *testing.T, what string, mean, want, sd float64, n int) {
	t.Helper()
	if !(math.Abs(mean-want) <= 4*sd/math.Sqrt(float64(n))) {
		t.Errorf("%s: mean %v, want %v (standard error %v)", what, mean, want, sd/math.Sqrt(float64(n)))
	}
}

func TestVariatesHaveTheirMoments(t *testing.T) {
	s := kernel.NewStream(3, 1)
	factorial := func(n int) float64 { return math.Gamma(float64(n) + 1) }
	for _, row := range []struct {
		name   string
		next   func() float64
		moment func(k int) float64
	}{
		{"Float64", s.Float64, func(k int) float64 { return 1 / float64(k+1) }},
		{"Exp", s.Exp, factorial},
		{"Normal", s.Normal, func(k int) float64 {
			if k%2 == 1 {
				return 0
			}
			return factorial(k) / factorial(k/2) / math.Pow(2, float64(k/2))
		}},
	} {
		var sums [5]float64
		for range draws {
			x := row.next()
			for k, power := 1, x; k < len(sums); k, power = k+1, power*x {
				sums[k] += power
			}
		}
		for k := 1; k < len(sums); k++ {
			want := row.moment(k)
			near(t, row.name+" to the power "+string(rune('0'+k)), sums[k]/draws, want,
				math.Sqrt(row.moment(2*k)-want*want), draws)
		}
	}
}

// distance is the Kolmogorov-Smirnov distance of a sample from a distribution,
// times the root of the sample's size: above 2.2 once in 10,000 samples.
func distance(sample []float64, cdf func(float64) float64) float64 {
	slices.Sort(sample)
	n, worst := float64(len(sample)), 0.0
	for i, x := range sample {
		p := cdf(x)
		worst = max(worst, p-float64(i)/n, float64(i+1)/n-p)
	}
	return worst * math.Sqrt(n)
}

func TestVariatesFollowTheirDistribution(t *testing.T) {
	s := kernel.NewStream(4, 1)
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	exp := func(x float64) float64 { return -math.Expm1(-x) }
	for _, row := range []struct {
		name string
		next func() float64
		cdf  func(float64) float64
	}{
		{"Float64", s.Float64, func(x float64) float64 { return x }},
		{"Exp", s.Exp, exp},
		{"Normal", s.Normal, phi},
		{"beyond the ziggurat of Exp", beyond(s.Exp, 7.697), exp},
		{"near the top of Exp", func() float64 { return 0.02 - beyond(func() float64 { return 1 - s.Exp() }, 0.98)() },
			func(x float64) float64 { return exp(x) / exp(0.02) }},
		{"right of the ziggurat of Normal", beyond(s.Normal, 3.6541),
			func(x float64) float64 { return 1 - phi(-x-3.6541)/phi(-3.6541) }},
		{"left of the ziggurat of Normal", beyond(func() float64 { return -s.Normal() }, 3.6541),
			func(x float64) float64 { return 1 - phi(-x-3.6541)/phi(-3.6541) }},
	} {
		n := draws
		if row.name != "Float64" && row.name != "Exp" && row.name != "Normal" {
			n = 1000
		}
		sample := make([]float64, n)
		for i := range sample {
			sample[i] = row.next()
		}
		if d := distance(sample, row.cdf); !(d < 2.2) {
			t.Errorf("%s: distance %.2f, want below 2.2", row.name, d)
		}
	}
}

// beyond returns how far the next draws above a bound are above it.
func beyond(next func() float64, bound float64) func() float64 {
	return func() float64 {
		for {
			if x := next(); x > bound {
				return x - bound
			}
		}
	}
}

func TestTailsHaveTheirWeight(t *testing.T) {
	s := kernel.NewStream(5, 1)
	const n = 4_000_000
	exp, left, right := 0.0, 0.0, 0.0
	for range n {
		if s.Exp() > 7.697117470131487 {
			exp++
		}
		if x := s.Normal(); x > 3.6541528853610088 {
			right++
		} else if x < -3.6541528853610088 {
			left++
		}
	}
	p := math.Exp(-7.697117470131487)
	near(t, "Exp", exp/n, p, math.Sqrt(p), n)
	p = math.Erfc(3.6541528853610088/math.Sqrt2) / 2
	near(t, "Normal, right", right/n, p, math.Sqrt(p), n)
	near(t, "Normal, left", left/n, p, math.Sqrt(p), n)
}

// even fails when counts that should be equal differ by more than chance does
// about once in 30,000 tests (chi-square in the approximation by a normal).
func even(t *testing.T, what string, counts []int) {
	t.Helper()
	total := 0
	for _, c := range counts {
		total += c
	}
	mean, chi := float64(total)/float64(len(counts)), 0.0
	for _, c := range counts {
		chi += (float64(c) - mean) * (float64(c) - mean) / mean
	}
	df := float64(len(counts) - 1)
	if z := math.Sqrt(2*chi) - math.Sqrt(2*df-1); !(math.Abs(z) < 4.2) {
		t.Errorf("%s: chi-square %.1f for %.0f degrees of freedom, z = %.1f", what, chi, df, z)
	}
}

func TestEveryByteIsUniform(t *testing.T) {
	within := kernel.NewStream(6, 1)
	entity := uint64(0)
	for _, source := range []struct {
		name string
		next func() uint64
	}{
		{"one stream", within.Uint64},
		{"first numbers of entities", func() uint64 {
			entity++
			s := kernel.NewStream(6, entity)
			return s.Uint64()
		}},
		{"second numbers of seeds", func() uint64 {
			entity++
			s := kernel.NewStream(entity, 6)
			s.Uint64()
			return s.Uint64()
		}},
	} {
		var single [8][256]int
		var pairs [65536]int // low byte against high byte
		for range 4 * draws {
			x := source.next()
			for i := range single {
				single[i][byte(x>>(8*i))]++
			}
			pairs[x&0xff|x>>56<<8]++
		}
		for i := range single {
			even(t, source.name+", byte "+string(rune('0'+i)), single[i][:])
		}
		even(t, source.name+", pairs", pairs[:])
	}
}

func TestIntNIsUniform(t *testing.T) {
	s := kernel.NewStream(8, 1)
	for _, n := range []int{2, 3, 10, 1000} {
		counts := make([]int, n)
		for range draws {
			counts[s.IntN(n)]++
		}
		even(t, "IntN", append(counts, draws/n)) // one more, so that 2 has degrees to spare
	}
	var thirds [3]int // without the second draw one third would come half as often again
	for range draws {
		thirds[s.IntN(3<<61)%3]++
	}
	even(t, "IntN(3<<61)", thirds[:])
	if s.IntN(1) != 0 {
		t.Error("IntN(1) is not 0")
	}
	for _, n := range []int{0, -1} {
		panics(t, "IntN", func() { s.IntN(n) })
	}
}

// correlation of two sequences of draws numbers: 0 with a standard error of 1/sqrt(draws).
func correlation(a, b func() float64) float64 {
	sum := 0.0
	for range draws {
		sum += (a() - 0.5) * (b() - 0.5) * 12
	}
	return sum / draws
}

func TestStreamsAreIndependent(t *testing.T) {
	check := func(what string, a, b kernel.Stream) {
		t.Helper()
		near(t, what, correlation(a.Float64, b.Float64), 0, 1, draws)
	}
	for i := range uint64(10) {
		check("neighbouring entities", kernel.NewStream(1, i), kernel.NewStream(1, i+1))
		check("neighbouring seeds", kernel.NewStream(i, 5), kernel.NewStream(i+1, 5))
		check("seed and entity exchanged", kernel.NewStream(i, i+1), kernel.NewStream(i+1, i))
		check("one bit", kernel.NewStream(1, 3), kernel.NewStream(1, 3^1<<(6*i)))
		late := kernel.NewStream(1, i)
		late.Uint64()
		check("one stream and itself a step later", kernel.NewStream(1, i), late)
	}
	entity := uint64(0)
	first := func() float64 {
		entity++
		s := kernel.NewStream(2, entity)
		return s.Float64()
	}
	next := func() float64 {
		s := kernel.NewStream(2, entity+1)
		return s.Float64()
	}
	near(t, "first numbers of neighbours", correlation(first, next), 0, 1, draws)
}

func TestNoTwoStreamsAreTheSame(t *testing.T) {
	seen := make(map[uint64]bool)
	for seed := range uint64(300) {
		for entity := range uint64(300) {
			s := kernel.NewStream(seed, entity)
			seen[s.Uint64()] = true
		}
	}
	if len(seen) != 300*300 {
		t.Errorf("%d different first numbers of %d streams", len(seen), 300*300)
	}
}

func BenchmarkStream(b *testing.B) {
	s := kernel.NewStream(1, 1)
	for _, row := range []struct {
		name string
		draw func() float64
	}{
		{"Uint64", func() float64 { return float64(s.Uint64()) }},
		{"Exp", s.Exp},
		{"Normal", s.Normal},
		{"lognormal", func() float64 { return kernel.Exp(s.Normal()) }},
		{"IntN", func() float64 { return float64(s.IntN(1000)) }},
		{"NewStream", func() float64 { s := kernel.NewStream(1, 2); return s.Float64() }},
	} {
		b.Run(row.name, func(b *testing.B) {
			for b.Loop() {
				row.draw()
			}
		})
	}
}
