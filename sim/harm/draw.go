package harm

import (
	"math"
	"strconv"
	"time"

	"github.com/abate-go/abate/sim/kernel"
)

// draw makes the random choices about one system. Its results are the same on every machine.
type draw struct{ stream kernel.Stream }

// chance reports true with a probability.
func (d *draw) chance(p float64) bool { return d.stream.Float64() < p }

// between returns a number from low to high.
func (d *draw) between(low, high float64) float64 {
	return low + float64((high-low)*d.stream.Float64())
}

// log returns a number from low to high, each order of magnitude as likely as the other. It is low where high is less.
func (d *draw) log(low, high float64) float64 {
	u := d.stream.Float64()
	if high <= low {
		return low
	}
	return float64(low * kernel.Exp(float64(u*kernel.Log(high/low))))
}

// count is log for whole numbers.
func (d *draw) count(low, high int) int {
	return min(max(int(d.log(float64(low), float64(high)+1)), low), max(low, high))
}

// pick returns one of several words.
func (d *draw) pick(words ...string) string { return words[d.stream.IntN(len(words))] }

// span is log for durations.
func (d *draw) span(low, high time.Duration) time.Duration {
	return round(time.Duration(d.log(float64(low), float64(high))))
}

// digits is how many digits of a number there are in a file.
const digits = 3

// short rounds a number to as many digits as a reader wants to see.
func short(x float64) float64 {
	y, err := strconv.ParseFloat(number(x), 64)
	if err != nil {
		return x
	}
	return y
}

// number writes a number that short has rounded, or would.
func number(x float64) string {
	if x >= 1e6 || x < 1e-6 {
		return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	}
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	return strconv.FormatFloat(y, 'f', -1, 64)
}

// percent writes a share.
func percent(x float64) string { return number(100*x) + "%" }

// round rounds a duration to as many digits as a reader wants to see.
func round(x time.Duration) time.Duration {
	unit := time.Duration(1)
	for x/unit >= 1000 {
		unit *= 10
	}
	return x.Round(unit)
}

// seconds is a duration of so many seconds.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
