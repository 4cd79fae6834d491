package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/abate-go/abate/policyfile"
)

const checkUsage = `Usage: abate check [-q] FILE...
       abate check --schema

Checks policy files, plain or in a Kubernetes ConfigMap, and prints the policy in force: every default written out, as
a policy file again. "-" reads standard input. Mistakes go to standard error, one per line, as file:line:col.

  -q        only say for each file whether it is good
  --schema  print the JSON Schema of a policy file

Exit code: 0 all files are good, 1 one is not, 2 wrong usage.
`

// stdinName is what messages call standard input.
const stdinName = "<stdin>"

// checkCommand is "abate check".
func checkCommand(_ context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	quiet := flags.Bool("q", false, "")
	schema := flags.Bool("schema", false, "")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, checkUsage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "abate check: %v\n\n%s", err, checkUsage)
		return 2
	case *schema && flags.NArg() == 0:
		_, _ = stdout.Write(policyfile.Schema())
		return 0
	case flags.NArg() == 0 || *schema:
		fmt.Fprint(stderr, checkUsage)
		return 2
	}
	code := 0
	for i, name := range flags.Args() {
		if name == "-" {
			name = stdinName
		}
		file, err := checkFile(name)
		if err != nil {
			code = 1
			complain(name, err, *quiet, stdout, stderr)
			continue
		}
		verdict := fmt.Sprintf("%s: ok, %s", file.Name, count(len(file.Services), "service"))
		if *quiet {
			fmt.Fprintln(stdout, verdict)
			continue
		}
		if i > 0 {
			fmt.Fprintln(stdout, "---")
		}
		fmt.Fprintf(stdout, "# %s\n%s", verdict, file.Format())
	}
	return code
}

func checkFile(name string) (*policyfile.File, error) {
	in := os.Stdin
	if name != stdinName {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := policyfile.Read(name, in)
	if err != nil {
		return nil, err
	}
	return policyfile.Parse(name, data)
}

// complain prints the mistakes of one file: all of them, or with quiet only how many.
func complain(name string, err error, quiet bool, stdout, stderr io.Writer) {
	var mistakes policyfile.Errors
	switch {
	case !errors.As(err, &mistakes):
		fmt.Fprintf(stderr, "abate check: %v\n", err)
	case quiet:
		fmt.Fprintf(stdout, "%s: %s\n", name, count(len(mistakes), "mistake"))
	default:
		fmt.Fprintln(stderr, mistakes)
	}
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
