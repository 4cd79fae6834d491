// Command advice asks the advisor of "abate sim" about random systems that fail, follows what it says on seeds that it
// has not seen, and where it has nothing to say tries every single change. It is "make advice".
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/abate-go/abate/sim/harm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("advice", flag.ContinueOnError)
	flags.SetOutput(stderr)
	failing := flags.Int("systems", 50, "how many failing systems")
	first := flags.Int("first", 20, "the number of the first system that is looked at")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var rows []row
	for number := *first; len(rows) < *failing; number++ {
		if !harm.ForTest(number) {
			continue
		}
		r, ok, err := system(ctx, number)
		if ctx.Err() != nil {
			break // the table has what is known
		}
		if err != nil {
			fmt.Fprintln(stderr, "advice:", err)
			return 1
		}
		if ok {
			rows = append(rows, r)
			fmt.Fprintf(stderr, "%d of %d  system %d (%s): %s; followed, %d of %d hold\n", len(rows), *failing, r.system, r.kind,
				r.answer, r.holding, r.advice)
		}
	}
	table(stdout, rows)
	return 0
}
