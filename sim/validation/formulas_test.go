//go:build !race

package validation_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// The formulas behind the published numbers, so that no digit was copied wrong.
func TestPublishedNumbersFollowTheirFormulas(t *testing.T) {
	if testing.Short() {
		return // the suite takes half a minute: make storms
	}
	formulas := []struct {
		form string
		of   func(x []float64) float64
	}{
		{"erlang-c/%g-1-%g/delayed", func(x []float64) float64 { return erlangC(x[0], x[1]) }},
		{"erlang-c/%g-1-%g/wait", func(x []float64) float64 { return erlangC(x[0], x[1]) / (x[1] - x[0]) }},
		{"erlang-b/%g-%g-", func(x []float64) float64 { return erlangB(x[0], x[1]) }},
		{"timeouts/%g-%g-%g", func(x []float64) float64 { return math.Exp(-(x[1] - x[0]) * x[2]) }},
		{"m-m-1-k/%g-%g/refused", func(x []float64) float64 { return refusedOf(x[0], x[1]) }},
		{"m-m-1-k/%g-%g/number", func(x []float64) float64 { return numberOf(x[0], x[1]) }},
		{"m-m-1-k/%g-%g/time", func(x []float64) float64 {
			return numberOf(x[0], x[1]) / x[0] / (1 - refusedOf(x[0], x[1]))
		}},
		{"patience/%g-%g-%g", func(x []float64) float64 { return gone(x[0], x[1], x[2]) }},
		{"m-g-1/%g-constant", func(x []float64) float64 { return x[0] / 2 / (1 - x[0]) }},
		{"m-g-1/%g-mixture", func(x []float64) float64 { return x[0] * 5 / 2 / (1 - x[0]) }},
		{"m-g-1/%g-lognormal", func(x []float64) float64 { return x[0] * 5 / 2 / (1 - x[0]) }},
		{"attempts/%g-%g/success", func(x []float64) float64 { return 1 - math.Pow(x[1], x[0]) }},
		{"attempts/%g-%g/load", func(x []float64) float64 { return series(x[1], x[0]) }},
		{"ratio/%g", func(x []float64) float64 { return series(x[0], 101) }},
		{"chain/%g-%g-%g/load", func(x []float64) float64 { load, _ := layers(x[0], x[1], x[2]); return load }},
		{"chain/%g-%g-%g/success", func(x []float64) float64 { _, success := layers(x[0], x[1], x[2]); return success }},
		{"breaker/%g-%g-%g/one", func(x []float64) float64 { return binomialTail(int(x[0]), int(x[1]), x[2]) }},
		{"breaker/%g-%g-%g/any", func(x []float64) float64 {
			return 1 - math.Pow(1-binomialTail(int(x[0]), int(x[1]), x[2]), 50)
		}},
		{"budget/success-%g/success", func(x []float64) float64 { return (1 - x[0]) / (1 - 0.1*(1-x[0])) }},
		{"budget/success-%g/load", func(x []float64) float64 { return 1 + 0.1*(1-x[0])/(1-0.1*(1-x[0])) }},
		{"budget/call-%g/success", func(x []float64) float64 { return 1.1 * (1 - x[0]) }},
		{"tail/fan-out", func([]float64) float64 { return 1 - math.Pow(0.99, 100) }},
		{"threads/%g", func([]float64) float64 { return 200 / (0.3*10 + 0.7*0.1) }},
	}
	checked := make([]int, len(formulas))
	for _, r := range rowsOf(t) {
		for i, f := range formulas {
			x := make([]float64, 3)
			n := strings.Count(f.form, "%g")
			got, err := fmt.Sscanf(r.ID+" ", f.form+" ", pointers(x)[:n]...)
			if got < n || err != nil && !strings.HasSuffix(f.form, "-") || n == 0 && r.ID != f.form {
				continue
			}
			checked[i]++
			if want := f.of(x); math.Abs(r.Published-want) > 2e-6*max(1, want) {
				t.Errorf("%s: published %v, the formula gives %v", r.ID, r.Published, want)
			}
		}
	}
	for i, n := range checked {
		if n == 0 {
			t.Errorf("no row has the form %s", formulas[i].form)
		}
	}
}

func pointers(x []float64) []any {
	var all []any
	for i := range x {
		all = append(all, &x[i])
	}
	return all
}

func erlangB(load, servers float64) float64 {
	b := 1.0
	for k := 1.0; k <= servers; k++ {
		b = load * b / (k + load*b)
	}
	return b
}

func erlangC(load, servers float64) float64 {
	b := erlangB(load, servers)
	return b / (1 - load/servers*(1-b))
}

// refusedOf and numberOf are of M/M/1/K.
func refusedOf(load, places float64) float64 {
	return math.Pow(load, places) * (1 - load) / (1 - math.Pow(load, places+1))
}

func numberOf(load, places float64) float64 {
	sum, weighted := 0.0, 0.0
	for n := 0.0; n <= places; n++ {
		p := math.Pow(load, n)
		sum, weighted = sum+p, weighted+n*p
	}
	return weighted / sum
}

// gone is the share that leaves an M/M/c queue after a constant patience. The offered wait has the density
// λ P(c−1) exp(−(cμ−λ)t) up to the patience and, as nobody joins behind it any more, falls with cμ after it.
func gone(load, servers, patience float64) float64 {
	below, last := 0.0, 0.0 // states 0 to c−1, in parts of the last one
	p := 1.0
	for k := servers - 1; k >= 0; k-- {
		below += p
		p *= k / load
	}
	last = 1
	spare := servers - load
	within := load * last * patience
	if spare != 0 {
		within = load * last * (1 - math.Exp(-spare*patience)) / spare
	}
	beyond := load * last * math.Exp(-spare*patience) / servers
	return beyond / (below + within + beyond)
}

// series is the mean number of attempts, at most n, when a share p fails.
func series(p, n float64) float64 {
	if p == 1 {
		return n
	}
	return (1 - math.Pow(p, n)) / (1 - p)
}

// layers applies the series once per layer.
func layers(n, attempts, p float64) (load, success float64) {
	load = 1
	for range int(n) {
		load *= series(p, attempts)
		p = math.Pow(p, attempts)
	}
	return load, 1 - p
}
