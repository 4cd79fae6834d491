package distribution

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/internal/nearest"
	"github.com/abate-go/abate/sim/kernel"
)

// The most that one text may hold, so that drawing a sample stays cheap.
const (
	maxParts  = 32
	maxPoints = 64
	maxCV     = 100
	leastStep = 1e-9 // between two quantiles, in percent
)

// Parse reads one of these forms; a duration is a number and a unit, from 0 to 168h:
//
//	50ms                                          always 50 ms
//	exponential 50ms                              by its mean
//	lognormal median 50ms p99 400ms               or: lognormal mean 50ms cv 1.5
//	uniform 10ms..20ms
//	normal 10ms sd 2ms                            the absolute value of a normal draw
//	quantiles p0 5ms p50 20ms p99 200ms p100 1s   straight lines between the points
//	99.9% exponential 100us, 0.1% 10ms            a mixture; shares add up to 100%
//
// cv is the standard deviation divided by the mean, at most 100. The error is an
// *Error that names everything wrong at once.
func Parse(s string) (Distribution, error) {
	r := &reader{text: s}
	var d Distribution
	if strings.ContainsAny(s, "%,") {
		d = r.mixture()
	} else {
		d = r.shape(strings.Fields(s))
	}
	if err := r.err(); err != nil {
		return Distribution{}, err
	}
	return d, nil
}

// UnmarshalText is Parse. On an error it leaves d alone.
func (d *Distribution) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// mixture reads shares and shapes, separated by commas.
func (r *reader) mixture() Distribution {
	texts := strings.Split(r.text, ",")
	if len(texts) > maxParts {
		r.fail(fmt.Sprintf("a mixture of %d parts", len(texts)), fmt.Sprintf("allowed: at most %d", maxParts))
		return Distribution{}
	}
	d := Distribution{kind: mixture}
	total := 0.0
	for _, text := range texts {
		words := strings.Fields(text)
		if len(words) == 0 {
			r.fail("a part of the mixture is empty", "write a share and a shape between commas, as in 90% 5ms, 10% 50ms")
			continue
		}
		share, isShare := strings.CutSuffix(words[0], "%")
		if !isShare {
			r.fail(strconv.Quote(words[0])+" has no share",
				"every part of a mixture starts with its share, as in 90% 5ms, 10% 50ms")
			r.shape(words)
			continue
		}
		percent := r.percent(share, words[0])
		total += percent
		d.parts = append(d.parts, part{percent, total / 100, r.shape(words[1:])})
	}
	if len(r.problems) == 0 && math.Abs(total-100) > 1e-9 {
		r.fail(fmt.Sprintf("the shares add up to %s%%", number(math.Round(total*1e9)/1e9)), "shares must add up to 100%")
	}
	return d
}

// percent reads the share of one part.
func (r *reader) percent(s, word string) float64 {
	r.broken = false
	v := r.number(s, word)
	if !r.broken && (v <= 0 || v > 100) {
		r.fail(strconv.Quote(word)+" is not a share", "a share is above 0% and at most 100%, as in 0.1%")
	}
	return v
}

// shapes are the words that start a shape, with an example of each.
var shapes = []struct {
	name, example string
	read          func(*reader) Distribution
}{
	{"exponential", "exponential 50ms", (*reader).exponential},
	{"lognormal", "lognormal median 50ms p99 400ms, or lognormal mean 50ms cv 1.5", (*reader).lognormal},
	{"uniform", "uniform 10ms..20ms", (*reader).uniform},
	{"normal", "normal 10ms sd 2ms", (*reader).normal},
	{"quantiles", "quantiles p0 5ms p50 20ms p99 200ms p100 1s", (*reader).quantiles},
}

// shape reads everything but a mixture.
func (r *reader) shape(words []string) Distribution {
	r.broken = false
	if len(words) == 0 {
		r.fail("a duration or a shape is missing", "for example 50ms or exponential 50ms")
		return Distribution{}
	}
	for _, s := range shapes {
		if words[0] != s.name {
			continue
		}
		r.words, r.example = words[1:], s.example
		d := s.read(r)
		if len(r.words) > 0 && !r.broken {
			r.fail(strconv.Quote(r.words[0])+" is too much", "for example "+s.example)
		}
		return d
	}
	if c := words[0][0]; c >= '0' && c <= '9' || strings.IndexByte("+-.", c) >= 0 {
		return r.constant(words)
	}
	fix := "allowed: a duration, exponential, lognormal, uniform, normal, quantiles"
	if near := nearest.To(words[0], []string{"exponential", "lognormal", "uniform", "normal", "quantiles"}); near != "" {
		fix = "did you mean " + near + "? " + fix
	}
	r.fail(strconv.Quote(words[0])+" is not known", fix)
	return Distribution{}
}

func (r *reader) constant(words []string) Distribution {
	if len(words) > 1 {
		fix := "write one duration, or start with the shape, as in exponential 50ms"
		if slices.Contains([]string{"ns", "us", "ms", "s", "m", "h"}, words[1]) {
			fix = "did you mean " + words[0] + words[1] + "?"
		}
		r.fail(strconv.Quote(words[1])+" follows "+strconv.Quote(words[0]), fix)
		return Distribution{}
	}
	r.words, r.example = words, "50ms"
	return Fixed(r.duration("duration"))
}

func (r *reader) exponential() Distribution { return Exponential(r.positive("mean")) }

func (r *reader) lognormal() Distribution {
	if r.keyword("median", "mean") == "median" {
		median := r.positive("median")
		r.keyword("p99")
		p99 := r.positive("p99")
		if r.broken {
			return Distribution{}
		}
		if p99 <= median {
			r.fail("p99 is not above the median", "for a constant write "+duration(median)+" alone")
			return Distribution{}
		}
		x := kernel.Log(float64(median))
		y := (kernel.Log(float64(p99)) - x) / z99
		if x+float64(y*y/2) > kernel.Log(float64(Longest)) {
			r.fail("p99 is so far above the median that the mean is above "+duration(Longest), "for example "+r.example)
			return Distribution{}
		}
		return Distribution{kind: lognormalMedian, a: median, b: p99, x: x, y: y}
	}
	mean := r.positive("mean")
	r.keyword("cv")
	word := r.next("cv, a number")
	cv := r.number(word, word)
	if !r.broken && (cv <= 0 || cv > maxCV) {
		r.fail("cv "+word+" is out of range", "allowed: above 0, at most 100; for example 1.5")
	}
	if r.broken {
		return Distribution{}
	}
	ss := kernel.Log(1 + float64(cv*cv))
	return Distribution{
		kind: lognormalMean, a: mean, cv: cv, x: kernel.Log(float64(mean)) - float64(ss/2), y: math.Sqrt(ss),
	}
}

func (r *reader) uniform() Distribution {
	word := r.next("range, as in 10ms..20ms")
	low, high, isRange := strings.Cut(word, "..")
	if !r.broken && !isRange {
		r.fail(strconv.Quote(word)+" is not a range", "for example "+r.example)
	}
	if r.broken {
		return Distribution{}
	}
	a, b := r.parseDuration(low), r.parseDuration(high)
	if !r.broken && a >= b {
		r.fail(strconv.Quote(word)+" does not rise", "put the smaller bound first; for a constant write one duration alone")
	}
	return Distribution{kind: uniform, a: a, b: b, x: float64(a), y: float64(b - a)}
}

func (r *reader) normal() Distribution {
	mean := r.duration("mean")
	r.keyword("sd")
	sd := r.positive("standard deviation")
	return Distribution{kind: normal, a: mean, b: sd, x: float64(mean), y: float64(sd)}
}

func (r *reader) quantiles() Distribution {
	d := Distribution{kind: quantiles}
	for len(r.words) > 0 && !r.broken {
		word := r.next("quantile")
		p, isQuantile := strings.CutPrefix(word, "p")
		if !isQuantile {
			r.fail(strconv.Quote(word)+" is not a quantile", "for example "+r.example)
			break
		}
		percent := r.number(p, word)
		value := r.duration("value of " + word)
		if n := len(d.points); n > 0 && !r.broken {
			last := &d.points[n-1]
			if percent < last.percent+leastStep || value < last.value {
				r.fail(strconv.Quote(word+" "+duration(value))+" follows p"+number(last.percent)+" "+duration(last.value),
					"quantiles and their values must rise")
				break
			}
			last.slope = float64(value-last.value) / (percent/100 - last.share)
		}
		d.points = append(d.points, point{percent: percent, value: value, share: percent / 100})
	}
	if n := len(d.points); !r.broken && (n < 2 || d.points[0].percent != 0 || d.points[n-1].percent != 100) {
		r.fail("the quantiles do not reach from p0 to p100",
			"give the smallest value as p0 and the largest as p100; for example "+r.example)
	}
	if len(d.points) > maxPoints {
		r.fail(fmt.Sprintf("%d quantiles", len(d.points)), fmt.Sprintf("allowed: at most %d", maxPoints))
	}
	return d
}
