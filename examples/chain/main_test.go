package main

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/needs"
)

// line is one of the printed table.
type line struct {
	checkout, payment, database float64
	most                        int
}

// table reads what a person would.
func table(t *testing.T) map[string]line {
	t.Helper()
	var out bytes.Buffer
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	lines := map[string]line{}
	for text := range strings.Lines(out.String()) {
		words := strings.Fields(text)
		if len(words) < 6 {
			continue
		}
		var l line
		var errs [4]error
		numbers := words[len(words)-4:]
		l.checkout, errs[0] = strconv.ParseFloat(numbers[0], 64)
		l.payment, errs[1] = strconv.ParseFloat(numbers[1], 64)
		l.database, errs[2] = strconv.ParseFloat(numbers[2], 64)
		l.most, errs[3] = strconv.Atoi(numbers[3])
		if errs == [4]error{} {
			lines[strings.Join(words[:len(words)-4], " ")] = l
		}
	}
	if len(lines) != len(protocols)*len(settings()) {
		t.Fatalf("%d lines of numbers in:\n%s", len(lines), out.String())
	}
	return lines
}

func TestThreeTimesThreeTimesThreeIsThree(t *testing.T) {
	needs.Whole(t)
	lines := table(t)
	for _, p := range protocols {
		of := func(setting string) line {
			l, ok := lines[p.name+" "+setting]
			if !ok {
				t.Errorf("no line for %s, %s", p.name, setting)
			}
			return l
		}
		if got := of("nobody"); got != (line{3, 9, 27, 27}) {
			t.Errorf("%s, nobody: %+v", p.name, got)
		}
		for _, setting := range []string{
			"all, owner rule alone: nearest", "all, owner rule alone: edge", "all, with the default policy",
		} {
			if got := of(setting); got.database > 3 || got.most > 3 || got.checkout > 3 || got.payment > 3 || got.checkout < 1 {
				t.Errorf("%s, %s: %+v", p.name, setting, got)
			}
		}
		if got := of("all, owner rule alone: edge"); got != (line{3, 3, 3, 3}) {
			t.Errorf("%s, edge: %+v", p.name, got)
		}
		if got := of("all, owner rule alone: nearest"); got.database != 3 || got.checkout >= 3 {
			t.Errorf("%s, nearest: %+v, want the layers behind to try again", p.name, got)
		}
		// 3 × 3, and a few retries that the budget has at the start.
		if got := of("only checkout, default policy"); got.checkout != 3 || got.database > 12 {
			t.Errorf("%s, only checkout: %+v", p.name, got)
		}
		if got := of("only checkout, owner rule alone"); got != (line{3, 9, 27, 27}) {
			t.Errorf("%s, only checkout, alone: %+v", p.name, got)
		}
	}
}
