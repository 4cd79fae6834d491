package main

import (
	"bufio"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// results holds every sample of every row: row name → unit → values. A row name
// has neither the leading "Benchmark" nor the trailing number of processors.
type results map[string]map[string][]float64

// procs is the "-8" that the testing package appends to a benchmark's name.
var procs = regexp.MustCompile(`-\d+$`)

// parse adds the benchmark lines of r to into and skips every other line.
func parse(into results, r io.Reader) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := procs.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		// fields[1] is the number of iterations; then value, unit, value, unit …
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				break
			}
			into.add(name, fields[i+1], value)
		}
	}
	return lines.Err()
}

func (r results) add(name, unit string, value float64) {
	if r[name] == nil {
		r[name] = make(map[string][]float64)
	}
	r[name][unit] = append(r[name][unit], value)
}

// median returns the middle sample of a row, and whether the row ran at all.
func (r results) median(name, unit string) (float64, bool) {
	samples := slices.Sorted(slices.Values(r[name][unit]))
	n := len(samples)
	if n == 0 {
		return 0, false
	}
	return (samples[(n-1)/2] + samples[n/2]) / 2, true
}
