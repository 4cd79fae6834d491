package summary

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/abate-go/abate/sim"
)

// Rare prints the probability that a run misses an expectation, its interval, and what it cost. An error is the
// writer's.
func Rare(w io.Writer, r *sim.Rare) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, variant %s\n", r.File, r.Variant)
	if r.Verdict != sim.None {
		fmt.Fprintf(&b, "  %-10s %s\n", r.Verdict, r.Text)
	}
	fmt.Fprintf(&b, "  missed     %s: in %s of runs (95 %% interval %s to %s)\n", r.Text, digits(r.Probability),
		digits(r.Low), digits(r.High))
	levels := make([]string, len(r.Levels))
	for i, level := range r.Levels {
		levels[i] = strconv.Itoa(level)
	}
	fmt.Fprintf(&b, "  way        a queue of %s\n", strings.Join(levels, ", "))
	fmt.Fprintf(&b, "  cost       %d runs and parts of runs, %s events, for %d independent estimates\n", r.Runs,
		digits(float64(r.Events)), r.Replications)
	if r.PlainRuns > 0 {
		fmt.Fprintf(&b, "  plain      an interval as narrow needs %s whole runs, %s events: %s times as many\n",
			digits(r.PlainRuns), digits(r.PlainEvents), digits(r.PlainEvents/float64(r.Events)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// digits is a number of any size with two digits that count.
func digits(x float64) string { return strconv.FormatFloat(x, 'g', 2, 64) }

// RareJSON writes the probabilities of several variants as {"version": …, "rare": […]}, the same bytes for the same
// numbers. Nothing is written on an error.
func RareJSON(w io.Writer, all []*sim.Rare) error {
	return writeJSON(w, struct {
		Version int         `json:"version"`
		Rare    []*sim.Rare `json:"rare"`
	}{sim.Version, all})
}
