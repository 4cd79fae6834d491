package distribution_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/distribution"
	"github.com/abate-go/abate/sim/kernel"
)

const ms = time.Millisecond

func parse(t testing.TB, s string) distribution.Distribution {
	t.Helper()
	d, err := distribution.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// texts are one of each kind and some edges: mean, squared coefficient of variation
// and largest value are worked out by hand.
var texts = []struct {
	text string
	mean time.Duration
	cv2  float64
	max  time.Duration
}{
	{"0s", 0, 0, 0},
	{"50ms", 50 * ms, 0, 50 * ms},
	{"168h", 168 * time.Hour, 0, 168 * time.Hour},
	{"exponential 50ms", 50 * ms, 1, 0},
	{"exponential 1ns", 1, 1, 0},
	{"lognormal mean 50ms cv 1.5", 50 * ms, 2.25, 0},
	{"lognormal mean 50ms cv 0.1", 50 * ms, 0.01, 0},
	{"lognormal median 50ms p99 400ms", 74553766, 1.2233056, 0},
	{"uniform 10ms..20ms", 15 * ms, 100. / 12 / 225, 20 * ms},
	{"uniform 0s..1ms", ms / 2, 1. / 3, ms},
	{"normal 10ms sd 2ms", 10000000, 0.04, 0},
	{"normal 0s sd 1ms", 797885, math.Pi/2 - 1, 0},
	{"normal 1s sd 1us", time.Second, 1e-12, 0},
	{"normal 1ms sd 1ms", 1166630, 0.4694777, 0},
	{"quantiles p0 0s p100 1ms", ms / 2, 1. / 3, ms},
	{"quantiles p0 0s p50 10ms p100 10ms", 7500 * time.Microsecond, 0.185185, 10 * ms},
	{"quantiles p0 5ms p50 20ms p90 50ms p99 200ms p100 1s", 37500 * time.Microsecond, 3.4912593, time.Second},
	{"quantiles p0 5ms p100 5ms", 5 * ms, 0, 5 * ms},
	{"50% 0s, 50% 10ms", 5 * ms, 1, 10 * ms},
	{"100% exponential 1ms", ms, 1, 0},
	{"99.9% exponential 100ms, 0.1% exponential 10s", 109900 * time.Microsecond, 17.2132653, 0},
	{"33.3% 5ms, 33.3% 5ms, 33.4% 5ms", 5 * ms, 0, 5 * ms},
	{"10% uniform 1ms..2ms, 20% quantiles p0 1ms p100 2ms, 70% 1.5ms", 1500 * time.Microsecond, 0.3 / 12 / 2.25, 2 * ms},
}

func TestMomentsAreThoseOfTheFormulas(t *testing.T) {
	for _, row := range texts {
		d := parse(t, row.text)
		if got := d.Mean(); math.Abs(float64(got-row.mean)) > 1+1e-6*float64(row.mean) {
			t.Errorf("%s: mean %v, want %v", row.text, got, row.mean)
		}
		if got := d.CV2(); !(math.Abs(got-row.cv2) <= 1e-4*row.cv2) {
			t.Errorf("%s: CV2 %v, want %v", row.text, got, row.cv2)
		}
		if got := d.Max(); got != row.max {
			t.Errorf("%s: max %v, want %v", row.text, got, row.max)
		}
		value, always := d.Constant()
		if constant := row.cv2 == 0; always != constant || always && value != int64(row.mean) {
			t.Errorf("%s: constant %v, %v", row.text, value, always)
		}
		if d.IsZero() != (row.mean == 0) {
			t.Errorf("%s: IsZero %v", row.text, d.IsZero())
		}
	}
}

func TestSamplesHaveTheMomentsOfTheFormulas(t *testing.T) {
	const n = 200_000
	for i, row := range texts {
		d := parse(t, row.text)
		s := kernel.NewStream(1, uint64(i))
		mean, cv2 := float64(d.Mean()), d.CV2()
		sum, squares, fourths, largest := 0.0, 0.0, 0.0, int64(0)
		for range n {
			x := d.Sample(&s)
			if x < 0 {
				t.Fatalf("%s: sample %d", row.text, x)
			}
			largest = max(largest, x)
			e := float64(x) - mean
			sum += e
			squares += e * e
			fourths += e * e * e * e
		}
		rounding := 0.6 // of means and of samples, in ns
		if sd := mean * math.Sqrt(cv2); math.Abs(sum/n) > 4*sd/math.Sqrt(n)+rounding {
			t.Errorf("%s: mean of samples is off by %v, standard error %v", row.text, sum/n, sd/math.Sqrt(n))
		}
		variance := squares / n
		if want, sd := cv2*mean*mean, math.Sqrt(fourths/n-variance*variance); mean > 10 &&
			math.Abs(variance-want) > 4*sd/math.Sqrt(n)+1 {
			t.Errorf("%s: variance %v, want %v, standard error %v", row.text, variance, want, sd/math.Sqrt(n))
		}
		if m := d.Max(); m > 0 && largest > int64(m) {
			t.Errorf("%s: sample %d above the maximum", row.text, largest)
		}
	}
}

func TestSamplesHaveTheQuantilesOfTheWords(t *testing.T) {
	const n = 100_000
	for _, row := range []struct {
		text     string
		quantile map[float64]time.Duration
	}{
		{"exponential 100ms", map[float64]time.Duration{0.5: 69314718, 0.99: 460517019}},
		{"lognormal median 50ms p99 400ms", map[float64]time.Duration{
			0.5: 50 * ms, 0.99: 400 * ms, 0.01: 6250 * time.Microsecond,
		}},
		{"lognormal mean 50ms cv 1", map[float64]time.Duration{0.5: 35355339}},
		{"uniform 10ms..20ms", map[float64]time.Duration{0.1: 11 * ms, 0.5: 15 * ms, 0.9: 19 * ms}},
		{"normal 10ms sd 2ms", map[float64]time.Duration{0.5: 10 * ms, 0.977249868: 14 * ms, 0.022750132: 6 * ms}},
		{"quantiles p0 5ms p50 20ms p90 50ms p99 200ms p100 1s", map[float64]time.Duration{
			0.25: 12500 * time.Microsecond, 0.5: 20 * ms, 0.7: 35 * ms, 0.9: 50 * ms, 0.99: 200 * ms, 0.995: 600 * ms}},
		{"99% 1ms, 1% uniform 10ms..20ms", map[float64]time.Duration{0.5: ms, 0.995: 15 * ms}},
	} {
		d := parse(t, row.text)
		s := kernel.NewStream(2, 1)
		sample := make([]int64, n)
		for i := range sample {
			sample[i] = d.Sample(&s)
		}
		slices.Sort(sample)
		for p, want := range row.quantile {
			spread := 4 * math.Sqrt(p*(1-p)/n)
			low, high := sample[int((p-spread)*n)], sample[min(n-1, int((p+spread)*n))]
			if int64(want) < low || int64(want) > high {
				t.Errorf("%s: p%v of samples in %v..%v, want %v", row.text, 100*p, time.Duration(low), time.Duration(high), want)
			}
		}
	}
}

// A change of these numbers changes the result of every run: say so in CHANGELOG.md.
func TestSamplesKeepTheirBits(t *testing.T) {
	sum := uint64(0)
	for i, row := range texts {
		d := parse(t, row.text)
		s := kernel.NewStream(9, uint64(i))
		for range 20_000 {
			sum = sum*31 + uint64(d.Sample(&s))
		}
		sum = sum*31 + uint64(d.Mean())
		sum = sum*31 + math.Float64bits(d.CV2())
	}
	if want := uint64(0xfc721bab252631d2); sum != want {
		t.Errorf("checksum %#x, want %#x", sum, want)
	}
}

func TestWhatDrawsTakesRandomNumbersAndNothingElseDoes(t *testing.T) {
	for _, c := range texts {
		d, stream := parse(t, c.text), kernel.NewStream(1, 7)
		before := stream
		d.Sample(&stream)
		if took := stream != before; took != d.Draws() {
			t.Errorf("%s: Draws says %v, a sample took random numbers: %v", c.text, d.Draws(), took)
		}
	}
}

func TestTextComesBack(t *testing.T) {
	for _, row := range texts {
		d := parse(t, row.text)
		if got := d.String(); got != row.text {
			t.Errorf("%q comes back as %q", row.text, got)
		}
	}
	for text, want := range map[string]string{
		"0":                             "0s",
		"  1.5s ":                       "1.5s",
		"60m":                           "1h",
		"90m":                           "1h30m",
		"10m":                           "10m",
		"100µs":                         "100us",
		"exponential\t0.5us":            "exponential 500ns",
		"lognormal mean 1s cv 01.50":    "lognormal mean 1s cv 1.5",
		"uniform 0..1h0m1s":             "uniform 0s..1h0m1s",
		"50%1ms,50% 2ms":                "",
		"50.0% 1ms,50% exponential 2ms": "50% 1ms, 50% exponential 2ms",
	} {
		d, err := distribution.Parse(text)
		if got := d.String(); want != "" && (err != nil || got != want) {
			t.Errorf("%q becomes %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestDistributionsLiveInJSON(t *testing.T) {
	var config struct{ Latency distribution.Distribution }
	if err := json.Unmarshal([]byte(`{"Latency":"exponential 5ms"}`), &config); err != nil {
		t.Fatal(err)
	}
	if out, err := json.Marshal(config); err != nil || string(out) != `{"Latency":"exponential 5ms"}` {
		t.Errorf("comes back as %s, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"Latency":"5"}`), &config); err == nil {
		t.Error("no error for 5")
	}
	if got := config.Latency.String(); got != "exponential 5ms" {
		t.Errorf("a bad text left %q behind", got)
	}
}

func TestMadeIsTheSameAsParsed(t *testing.T) {
	for _, row := range []struct {
		d    distribution.Distribution
		text string
	}{
		{distribution.Distribution{}, "0s"},
		{distribution.Fixed(5 * ms), "5ms"},
		{distribution.Fixed(-5 * ms), "0s"},
		{distribution.Exponential(5 * ms), "exponential 5ms"},
		{distribution.Exponential(0), "0s"},
		{distribution.Exponential(-1), "0s"},
	} {
		if got, want := fmt.Sprintf("%#v", row.d), fmt.Sprintf("%#v", parse(t, row.text)); got != want {
			t.Errorf("%s: made %s, parsed %s", row.text, got, want)
		}
	}
}

func TestSamplesAreBoundedAndFree(t *testing.T) {
	s := kernel.NewStream(1, 1)
	wild := parse(t, "lognormal mean 168h cv 100")
	for range 200_000 {
		if x := wild.Sample(&s); x < 0 || x > int64(87600*time.Hour) {
			t.Fatalf("sample %d", x)
		}
	}
	for _, row := range texts {
		d := parse(t, row.text)
		if n := testing.AllocsPerRun(100, func() { d.Sample(&s) }); n != 0 {
			t.Errorf("%s: %v allocations per sample", row.text, n)
		}
	}
}

func TestBadTextSaysWhatAndHowToFix(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "a duration or a shape is missing; for example 50ms",
		"50":                       `"50" has no unit; did you mean 50ms?`,
		"50 ms":                    `"ms" follows "50"; did you mean 50ms?`,
		"50ms 60ms":                `"60ms" follows "50ms"; write one duration`,
		"50 60ms":                  `"60ms" follows "50"; write one duration`,
		"-5ms":                     `"-5ms" is negative; allowed: 0s to 168h`,
		"169h":                     `"169h" is too long; allowed: 0s to 168h`,
		"999999999999h":            `"999999999999h" is not a duration`,
		"1e3ms":                    `"1e3ms" is not a duration`,
		"NaN":                      `"NaN" is not known; allowed: a duration, exponential`,
		"exponentiel 50ms":         `"exponentiel" is not known; did you mean exponential?`,
		"Normal 50ms sd 1ms":       `"Normal" is not known; did you mean normal?`,
		"quantile p0 1ms p100 2ms": `did you mean quantiles?`,
		"exponential":              "the mean is missing; for example exponential 50ms",
		"exponential 0s":           "the mean is 0; for what takes no time write 0s alone",
		"exponential Infms":        `"Infms" is not a duration`,
		"exponential 5ms 6ms":      `"6ms" is too much; for example exponential 50ms`,
		"lognormal 50ms": `"50ms" stands where the word median or mean belongs; for example lognormal ` +
			`median`,
		"lognormal":                      "the word median or mean is missing",
		"lognormal median 50ms":          "the word p99 is missing",
		"lognormal median 50ms p99":      "the p99 is missing",
		"lognormal median 50ms p99 50ms": "p99 is not above the median; for a constant write 50ms alone",
		"lognormal median 1ns p99 168h":  "the mean is above 168h",
		"lognormal mean 50ms cv":         "the cv, a number is missing",
		"lognormal mean 50ms cv NaN":     `"NaN" holds no number`,
		"lognormal mean 50ms cv 1e2":     `"1e2" holds no number`,
		"lognormal mean 50ms cv 0":       "cv 0 is out of range; allowed: above 0, at most 100",
		"lognormal mean 50ms cv 101":     "cv 101 is out of range",
		"lognormal mean x cv y":          `"x" is not a duration; "y" holds no number`,
		"uniform":                        "the range, as in 10ms..20ms is missing",
		"uniform 10ms 20ms":              `"10ms" is not a range; for example uniform 10ms..20ms`,
		"uniform 20ms..10ms":             "does not rise",
		"uniform 10ms..10ms":             "does not rise",
		"uniform 10..-20ms":              `"10" has no unit; "-20ms" is negative`,
		"normal 10ms":                    "the word sd is missing",
		"normal 10ms sd 0s":              "the standard deviation is 0",
		"quantiles":                      "the quantiles do not reach from p0 to p100",
		"quantiles p0 1ms p50 2ms":       "the quantiles do not reach from p0 to p100",
		"quantiles p1 1ms p100 2ms":      "the quantiles do not reach from p0 to p100",
		"quantiles p0 5ms p100 2ms":      `"p100 2ms" follows p0 5ms; quantiles and their values must rise`,
		"quantiles p0 1ms p0 2ms":        `"p0 2ms" follows p0 1ms`,
		"quantiles p0 1ms px 2ms":        `"px" holds no number`,
		"quantiles p0 1ms 50 2ms":        `"50" is not a quantile`,
		"quantiles p0 1ms p100":          "the value of p100 is missing",
		"50% 1ms":                        "the shares add up to 50%; shares must add up to 100%",
		"50% 1ms, 50.1% 2ms":             "the shares add up to 100.1%",
		"50% 1ms, 2ms":                   `"2ms" has no share`,
		"50% 1ms,, 50% 2ms":              "a part of the mixture is empty",
		"exponential 50ms,":              `"exponential" has no share; a part of the mixture is empty`,
		"0% 1ms, 100% 2ms":               `"0%" is not a share`,
		"-50% 1ms, 150% 2ms":             `"-50%" holds no number; "150%" is not a share`,
		"50% 1ms, 50%":                   "a duration or a shape is missing",
		"50% normal 1ms, 50% expnential": `the word sd is missing; "expnential" is not known; for example normal 10ms sd ` +
			`2ms; did you mean exponential?`,
		"50% x, 49% 50":                    `"x" is not known; "50" has no unit`,
		strings.Repeat("1% 1ms,", 100):     "a mixture of 101 parts; allowed: at most 32",
		"quantiles" + manyQuantiles(65):    "65 quantiles; allowed: at most 64",
		strings.Repeat("x", 1000) + " 5ms": "is not known",
	} {
		d, err := distribution.Parse(text)
		var e *distribution.Error
		if !errors.As(err, &e) {
			t.Errorf("%q: error %v", text, err)
			continue
		}
		if !strings.Contains(e.Problem+"; "+e.Fix(), want) {
			t.Errorf("%q:\n got %s\nwant %s", text, e.Problem+"; "+e.Fix(), want)
		}
		if e.Text != text || e.Fix() == "" || d.String() != "0s" || !strings.Contains(err.Error(), e.Fix()) {
			t.Errorf("%q: text %q, fix %q, distribution %v", text, e.Text, e.Fix(), d)
		}
	}
}

func manyQuantiles(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " p%v 1ms", float64(i)*100/float64(n-1))
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	for _, row := range texts {
		f.Add(row.text)
	}
	f.Add("quantiles p0 1ms p0.000000000000000000001 2ms p100 3ms")
	f.Add("50% x, -1% 5, 1e400% p")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := distribution.Parse(text)
		if err != nil {
			var e *distribution.Error
			if !errors.As(err, &e) || e.Problem == "" || e.Fix() == "" {
				t.Errorf("%q: error %#v", text, err)
			}
			return
		}
		again := parse(t, d.String())
		if fmt.Sprintf("%#v", again) != fmt.Sprintf("%#v", d) {
			t.Errorf("%q becomes %#v, then %#v", text, d, again)
		}
		if m := d.Mean(); m < 0 || m > 2*distribution.Longest { // folding lengthens a normal
			t.Errorf("%q: mean %v", text, m)
		}
		if cv2 := d.CV2(); !(cv2 >= 0) || math.IsInf(cv2, 0) {
			t.Errorf("%q: CV2 %v", text, cv2)
		}
		s := kernel.NewStream(1, 1)
		for range 50 {
			if x, m := d.Sample(&s), d.Max(); x < 0 || x > int64(87600*time.Hour) || m > 0 && x > int64(m) {
				t.Errorf("%q: sample %d", text, x)
			}
		}
	})
}

func BenchmarkSample(b *testing.B) {
	for _, text := range []string{"50ms", "exponential 50ms", "lognormal median 50ms p99 400ms", "uniform 10ms..20ms",
		"normal 10ms sd 2ms",
		"quantiles p0 5ms p50 20ms p90 50ms p99 200ms p100 1s", "99.9% exponential 100us, 0.1% 10ms"} {
		b.Run(text, func(b *testing.B) {
			d, s := parse(b, text), kernel.NewStream(1, 1)
			for b.Loop() {
				d.Sample(&s)
			}
		})
	}
}
