package rehearse

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/summary"
	"github.com/abate-go/abate/sim/validation"
)

// validator runs the suite of published numbers: validation.Run.
type validator func(ctx context.Context, progress func(done, of int)) ([]validation.Row, error)

// validate runs "abate sim --validate": exit code 0 if all published numbers fit, else 1.
func validate(ctx context.Context, run validator, quiet bool, stdout, stderr io.Writer) int {
	progress := newSimProgress(stderr, quiet)
	tell := progress.of("published numbers", 1, 1)
	rows, err := run(ctx, func(done, of int) { tell(sim.Progress{Variant: "all", Stage: "runs", Done: done, Of: of}) })
	progress.End("")
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "abate sim: stopped; no number was compared")
		return summary.ExitInterrupted
	case err != nil:
		fmt.Fprintf(stderr, "abate sim: %v\n", err)
		return 1
	}
	if err := table(stdout, rows, quiet); err != nil {
		return written(stderr, err)
	}
	if slices.ContainsFunc(rows, func(r validation.Row) bool { return !r.Pass }) {
		return 1
	}
	return 0
}

// table writes the rows, or when quiet only the last line.
func table(w io.Writer, rows []validation.Row, quiet bool) error {
	var text strings.Builder
	if err := validation.Write(&text, rows); err != nil {
		return err
	}
	lines := strings.SplitAfter(text.String(), "\n")
	if quiet {
		lines = lines[len(lines)-2:]
	}
	return say(w, strings.Join(lines, ""))
}
