package shed_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

func TestTmp(t *testing.T) {
	for _, k := range []struct {
		name string
		c    service
	}{{"10 workers", workers}, {"10 shares", sharing}, {"10 shares, random", random}, {"10 workers, mixed", mixed},
		{"50 workers, random", slow}, {"2 shares", twoCores}, {"slows down", thrashes}} {
		for _, a := range []shed.Algorithm{shed.Gradient, shed.BBR} {
			c := spike(k.c)
			o := c.run(shed.Config{Concurrency: a}, 40*sec)
			mean, worst := o.goodput(c, 20*sec, 30*sec)
			after, _ := o.goodput(c, 31*sec, 40*sec)
			times := float64(o.quantile(0.99, 20*sec, 30*sec)) / float64(o.quantile(0.99, 10*sec, 20*sec))
			t.Logf("%-20s %-9s %3.0f %3.0f p99 %5.1f p95 %v p90 %v after %3.0f queued %d limits %v", k.name, a, 100*mean, 100*worst, times, o.quantile(0.95, 20*sec, 30*sec), o.quantile(0.9, 20*sec, 30*sec), 100*after, o.queued,
				[]int{o.limits[1990], o.limits[2005], o.limits[2010], o.limits[2020], o.limits[2050], o.limits[2200], o.limits[2900]})
		}
	}
	for _, a := range []shed.Algorithm{shed.Gradient, shed.BBR} {
		c := random
		c.timeout, c.load = 300*ms, between(2, 2, 0, 0)
		c.slower = func(now time.Duration) float64 { return 1 + 2*min(math.Floor(now.Seconds()/20), 1) }
		o := c.run(shed.Config{Concurrency: a}, 50*sec)
		mean, _ := o.goodput(&c, 20*sec, 30*sec)
		mean2, _ := o.goodput(&c, 40*sec, 50*sec)
		t.Logf("slower for good %v: %3.0f %3.0f %5v %5v", a, 300*mean, 300*mean2, o.quantile(0.99, 20*sec, 30*sec).Round(ms),
			o.quantile(0.99, 40*sec, 50*sec).Round(ms))
		for _, c := range []service{sharing, workers, slow} {
			c.timeout, c.load = sec, between(2, 2, 0, 0)
			o := c.run(shed.Config{Concurrency: a}, 20*sec)
			m0, w0 := o.goodput(&c, 1*sec, 10*sec)
			mean, _ := o.goodput(&c, 10*sec, 20*sec)
			t.Logf("2x from first %v: %.2f %.2f then %.2f p50 %v alone %v", a, m0, w0, mean, o.quantile(.5, 10*sec, 20*sec), c.mean)
		}
		c = sharing
		c.timeout, c.load = 300*ms, between(2, 2, 0, 0)
		o = c.run(shed.Config{Concurrency: a}, 120*sec)
		m0, w0 := o.goodput(&c, 10*sec, 120*sec)
		t.Logf("2 min %v: %.2f %.2f %5v %5v", a, m0, w0, o.quantile(0.99, 10*sec, 40*sec).Round(ms), o.quantile(0.99, 90*sec, 120*sec).Round(ms))
	}
}
