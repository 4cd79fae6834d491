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
a policy file again. "-" reads standard input. Mistakes go to standard error, one per line, as file:line:col. After "--" all words are files.

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
	files, err := parseAll(flags, args)
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

// parseAll reads flags wherever they stand, after files too, and returns the files.
func parseAll(flags *flag.FlagSet, args []string) (files []string, err error) {
	for len(args) > 0 && err == nil {
		err = flags.Parse(args)
		rest := flags.Args()
		if end := len(args) - len(rest); end > 0 && args[end-1] == "--" {
			return append(files, rest...), err
		}
		if args = rest; len(args) > 0 {
			files, args = append(files, args[0]), args[1:]
		}
	}
	return files, err
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
