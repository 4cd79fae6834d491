package main

import (
	"fmt"
	"strconv"
	"strings"
)

// byteSize is a number of bytes on the command line: 10GiB, 64MiB, 1000000.
type byteSize int64

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

var units = []struct {
	name string
	size float64
}{{"KiB", kib}, {"MiB", mib}, {"GiB", gib}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// Set parses text; it is what the package flag calls.
func (b *byteSize) Set(text string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if n *= u.size; err != nil || !(n >= 1 && n <= 1<<50) {
			break
		}
		*b = byteSize(n)
		return nil
	}
	return fmt.Errorf("want a size of at most 1 PiB, as in 64MiB or 10GiB")
}

// String writes whole binary units as such.
func (b *byteSize) String() string {
	for _, u := range []struct {
		name string
		size byteSize
	}{{"GiB", gib}, {"MiB", mib}, {"KiB", kib}} {
		if *b >= u.size && *b%u.size == 0 {
			return fmt.Sprintf("%d%s", *b/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", *b)
}
