package basics

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/policyfile"
)

const checkUsage = `Usage: abate check [-q] FILE...
       abate check --schema

Checks policy files, plain or in a Kubernetes ConfigMap, and prints the policy in force: a policy
file with every default written out, below a line for each service that it protects. "-" reads
standard input. Mistakes go to standard error, one per line, as file:line:col. All arguments after
"--" are files.

  -q        only report for each file whether it is good
  --schema  print the JSON Schema of a policy file

Exit code: 0 all files are good, 1 one is not, 2 wrong usage.
`

// CheckCommand is "abate check".
func CheckCommand(_ context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	quiet := flags.Bool("q", false, "")
	schema := flags.Bool("schema", false, "")
	files, err := cli.ParseAll(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, checkUsage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "abate check: %v\n\n%s", err, checkUsage)
		return 2
	case *schema && len(files) == 0:
		_, _ = stdout.Write(policyfile.Schema())
		return 0
	case len(files) == 0 || *schema:
		fmt.Fprint(stderr, checkUsage)
		return 2
	}
	code := 0
	for i, name := range files {
		if name == "-" {
			name = cli.StdinName
		}
		file, err := cli.PolicyFile(name)
		if err != nil {
			code = 1
			complain(name, err, *quiet, stdout, stderr)
			continue
		}
		verdict := fmt.Sprintf("%s: ok, %s", file.Name, contents(file))
		if *quiet {
			fmt.Fprintln(stdout, verdict)
			continue
		}
		if i > 0 {
			fmt.Fprintln(stdout, "---")
		}
		fmt.Fprintf(stdout, "# %s\n%s%s", verdict, protections(file), file.Format())
	}
	return code
}

// contents says how much is in a file.
func contents(f *policyfile.File) string {
	text := cli.Count(len(f.Services), "service")
	if n := len(f.Protect); n > 0 {
		text += fmt.Sprintf(", %d protected", n)
	}
	return text
}

// protections says in a line for each what arrives where, and what can be refused there: the answer to "are we
// protected".
func protections(f *policyfile.File) string {
	var b strings.Builder
	fleet, keys := false, false
	for i := range f.Protect {
		p := f.Protect[i].Protection.WithDefaults()
		where := "in a Go program"
		if p.Listen != "" {
			where = "on " + p.Listen + " before " + strings.Join(p.Upstreams, ", ")
		}
		fmt.Fprintf(&b, "# protects %s, %s: %s\n", f.Protect[i].Name, where, cli.Parts(&p))
		fleet = fleet || p.RateLimit.Fleet || p.Idempotency.Fleet
		keys = keys || p.Idempotency.Fleet && p.Idempotency.Enabled()
	}
	for i := range f.Services {
		p := &f.Services[i].Policy
		fleet = fleet || p.RetryBudget.Fleet || p.CircuitBreaker.Fleet
	}
	if f.Redis.Enabled() && !fleet && !f.Defaults.RetryBudget.Fleet && !f.Defaults.CircuitBreaker.Fleet {
		b.WriteString("# redis is used for nothing: no rateLimit, idempotency, retryBudget or circuitBreaker says fleet: " +
			"true\n")
	}
	if keys && f.Redis.CanForgetKeys() {
		b.WriteString("# redis.replicas is 0: a failover can forget idempotency keys, and what was done under them is done " +
			"again; set it to the number of replicas of each master\n")
	}
	return b.String()
}

// complain prints the mistakes of one file: all of them, or with quiet only how many.
func complain(name string, err error, quiet bool, stdout, stderr io.Writer) {
	var mistakes policyfile.Errors
	switch {
	case !errors.As(err, &mistakes):
		fmt.Fprintf(stderr, "abate check: %v\n", err)
	case quiet:
		fmt.Fprintf(stdout, "%s: %s\n", name, cli.Count(len(mistakes), "mistake"))
	default:
		fmt.Fprintln(stderr, mistakes)
	}
}
