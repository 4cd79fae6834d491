package rehearse

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/cmd/internal/cli"
)

// fromOptions are the words of "abate sim --from".
type fromOptions struct {
	from, service, out string
	outage             time.Duration
	rate               float64
	problems           []string
}

func (o *fromOptions) wrong(format string, args ...any) {
	o.problems = append(o.problems, "abate sim --from: "+fmt.Sprintf(format, args...))
}

// asksFrom reports whether the words ask for a scenario that is made from files.
func asksFrom(args []string) bool {
	for _, a := range args {
		if a == "--from" || strings.HasPrefix(a, "--from=") {
			return true
		}
	}
	return false
}

// from writes the scenario of an outage for files that an audit reads.
func from(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := &fromOptions{}
	f := flag.NewFlagSet("from", flag.ContinueOnError)
	f.StringVar(&o.from, "from", "", "")
	f.StringVar(&o.service, "service", "", "")
	f.StringVar(&o.out, "o", cli.ToStdout, "")
	f.DurationVar(&o.outage, "outage", 30*time.Second, "")
	f.Float64Var(&o.rate, "rate", audit.AssumedRate, "")
	words, err := cli.ReadFlags(f, args, o.wrong)
	if err != nil {
		return written(stderr, say(stdout, simHelp))
	}
	if o.from == "" {
		o.wrong("needs a file or a folder, for example --from .")
	}
	cli.CheckOutage(o.outage, o.rate, audit.AssumedRate, o.wrong)
	if len(o.problems) > 0 {
		for _, p := range o.problems {
			fmt.Fprintln(stderr, p)
		}
		return exitUsage
	}
	files, err := audit.Collect(ctx, append([]string{o.from}, words...), os.Stdin, nil)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "abate sim --from: %v\n", err)
		return exitUsage
	}
	var text []byte
	if ctx.Err() != nil || !cli.Interruptible(ctx, func() {
		text, err = audit.Run(files, audit.Options{}).ScenarioOf(o.service,
			audit.SimulateOptions{Outage: o.outage, Rate: o.rate})
	}) {
		fmt.Fprintln(stderr, "abate sim --from: interrupted; nothing was written.")
		return 130
	}
	if err != nil {
		fmt.Fprintf(stderr, "abate sim --from: %v\n", err)
		return exitUsage
	}
	return written(stderr, cli.Output(stdout, "o", o.out, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}))
}
