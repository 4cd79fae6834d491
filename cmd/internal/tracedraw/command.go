package tracedraw

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `Usage: abate trace [FLAGS] FILE

Draws a trace of a file that has OTLP in JSON, a batch on each line: what "abate proxy --trace-file
FILE" writes, or the file exporter of OpenTelemetry's collector. Without --id it draws the trace with
the most spans.

  --id ID        the trace whose id begins so; a log line has it as traceId
  -o, --svg FILE write a picture for a page instead of text
  -h, --help     print this

Exit code: 0 drawn, 1 the file could not be read or has no such trace, 2 wrong usage.
`

// Command is "abate trace".
func Command(_ context.Context, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("trace", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	id, to := set.String("id", "", ""), ""
	set.StringVar(&to, "o", "", "")
	set.StringVar(&to, "svg", "", "")
	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if err == nil && set.NArg() != 1 {
		err = fmt.Errorf("it draws one file, and %d are named; flags go before it", set.NArg())
	}
	if err != nil {
		fmt.Fprintf(stderr, "abate trace: %v\n\"abate trace -h\" explains the flags\n", err)
		return 2
	}
	if err := drawFile(set.Arg(0), *id, to, stdout); err != nil {
		fmt.Fprintf(stderr, "abate trace: %v\n", err)
		return 1
	}
	return 0
}

// drawFile draws a trace of a file, to standard output or as a picture.
func drawFile(path, id, to string, stdout io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	spans, err := choose(all, id)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d := draw(spans)
	if to == "" {
		d.text(stdout)
		return nil
	}
	var picture bytes.Buffer
	d.svg(&picture)
	return os.WriteFile(to, picture.Bytes(), 0o644)
}
